"""The card: a run's progress and, in the end, its answer or why there is none."""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, islice

from bot.view.member import names
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Title, Tone
from bot.view.objections import heard
from bot.view.passages import clearest, passages
from bot.view.state import (
    EXACT_POSITIONS,
    ROUND_STAGES,
    Answered,
    Failed,
    RunFailure,
    RunView,
    Seat,
    StageView,
    State,
    Working,
)
from bot.view.wording import card as wording
from bot.view.wording import failures, figures, inputs, terminal, worth
from bot.view.wording.figures import listing
from council.document.results import ChairNotes, Stage3Result
from council.events import Stage
from council.notes import named
from council.text import clip

TITLE_LENGTH = 80
QUESTION_LENGTH = 160
"""How much of the question a finished card repeats: about two lines."""
NOTE_LENGTH = 400
"""How much of each of the chairman's notes a card shows; the transcript has all of it."""
SENTENCE_LENGTH = 180
"""How much a card shows of the sentence that the reviews changed, before and after."""
MISHAPS = 500
"""How much room a card gives to what went wrong; behind it are the answer and its notes."""
SEPARATOR = " \u00b7 "


def card(view: RunView, now: float) -> Message:
    """Return the card in its present state: progress, then the answer or the error."""
    if view.error is not None:
        return Message("card", _error(view, view.error, now), "failed")
    if view.conversation_id is not None and view.final is not None:
        return Message("card", _finished(view, view.final, now), _tone(view, view.final))
    return progress(view, now)


def title(view: RunView) -> str:
    """Return the conversation's title, else the question's beginning."""
    return view.title or clip(" ".join(view.question.split()), TITLE_LENGTH)


# ── while it runs ────────────────────────────────────────────────────────────────────────────────


def progress(view: RunView, now: float) -> Message:
    """Return the question, a line per stage, a mark per member, and the answer written so far."""
    short = names(view)
    written = view.final.response if view.final else view.text
    blocks: list[Block] = [
        Quote(view.question),
        Line(asked(view)),
        *map(Line, origin(view)),
        *_history(view),
        *([] if written else map(Line, expected(view))),
        *_queued(view),
        *([Line(view.held)] if view.held else []),
        Pairs(tuple(stage_line(view, stage, now) for stage in view.stages)),
        Pairs(tuple((short[seat.name], _mark(seat, now)) for seat in view.seats), listed=True),
    ]
    if written:
        blocks += [Heading(wording.FINAL_ANSWER, 3), Prose(written)]
    if effort := _effort(view, now):
        blocks.append(Footer(_joined(effort) if view.is_over else wording.so_far(effort)))
    return Message("card", tuple(blocks), "running")


def asked(view: RunView) -> str:
    """Return who asked which council."""
    council = wording.council(
        view.profile,
        _members(view, len(view.seats)),
        rounds=view.rounds,
        strategy=view.strategy,
    )
    return " ".join(
        (
            *([wording.by(view.asker)] if view.asker else []),
            council,
            *([wording.criteria(view.criteria)] if view.criteria else []),
            *([wording.WEB] if view.web else []),
        )
    )


def origin(view: RunView) -> Iterator[str]:
    """Return where the texts come from if no real models are asked."""
    if view.demonstration:
        yield wording.DEMONSTRATION
    if view.example:
        yield terminal.ON_CARD


def expected(view: RunView) -> Iterator[str]:
    """Return what a question takes there, measured or estimated."""
    if said := wording.expected(view.typical, view.estimated):
        yield said


def _members(view: RunView, number: int) -> str:
    return wording.role(number, consultants=view.consultants)


def _history(view: RunView) -> list[Line]:
    """Return what was read with the question of its thread and its conversation."""
    thread = [Line(wording.thread(view.context))] if view.context else []
    files = [*map(Line, _files(view))]
    return [*thread, *files, *([Line(wording.conversation(view.history))] if view.history else [])]


def _files(view: RunView) -> Iterator[str]:
    """Return what was read of the question's files and links, those who saw pictures by short names."""
    if (given := view.files) is None:
        return iter(())
    short = names(view)
    files = [
        each.model_copy(update={"seen_by": [short.get(name, name) for name in each.seen_by]})
        if each.seen_by
        else each
        for each in given.files
    ]
    return inputs.files_read(files, given.links, given.earlier)


def _queued(view: RunView) -> list[Line]:
    if view.position is None:
        return []
    is_exact = view.position <= EXACT_POSITIONS
    return [Line(wording.queued(view.position, is_exact=is_exact))]


def stage_line(view: RunView, stage: StageView, now: float) -> tuple[str, str]:
    """Return a stage's name and how far it is."""
    name = wording.STAGE_NAMES[stage.stage]
    if stage.stage in ROUND_STAGES:
        name = wording.stage(name, view.number)
    if stage.progress == "running":
        said = _writing(view, now) if stage.stage == "stage3" else _count_done(view, stage)
    elif stage.progress == "done" and stage.started is not None and stage.ended is not None:
        said = wording.stage_done(stage.ended - stage.started, *_given(view, stage))
    elif stage.stage == "stage2" and stage.progress == "waiting" and _is_compared(view):
        said = worth.COMPARING
    else:
        said = stage.progress
    return name, said


def _is_compared(view: RunView) -> bool:
    """Return whether the judge is reading the answers just now."""
    return view.asks_judge and view.depth is None and view.stage("stage1").progress == "done"


def _states(view: RunView, stage: StageView) -> list[State]:
    """Return the states of members a stage waits for; until it says whom, of those with an answer."""
    return [
        seat.state(stage.stage)
        for seat in view.seats
        if (seat.name in stage.members if stage.members else seat.answer)
    ]


def _count_done(view: RunView, stage: StageView) -> str:
    states = _states(view, stage)
    done = sum(isinstance(state, Answered | Failed) for state in states)
    return wording.stage_running(done, len(states))


def _given(view: RunView, stage: StageView) -> tuple[int, int]:
    """Count the members that delivered what a stage asks, and those it asked, without the chairman."""
    if stage.stage == "stage3":
        return 0, 0
    states = _states(view, stage)
    return sum(isinstance(state, Answered) for state in states), len(states)


def _writing(view: RunView, now: float) -> str:
    short = names(view)
    said: list[str] = []
    for writer in view.chair:
        match writer.state:
            case Failed(failure):
                said.append(wording.failed(short[writer.name], failures.cause(failure)))
            case Working():
                doing = _doing(wording.WRITING, writer.state, now)
                said.append(wording.is_doing(short[writer.name], doing))
            case _:
                said.append(wording.has_written(short[writer.name]))
    return ", ".join(said) or wording.RUNNING


def _mark(seat: Seat, now: float) -> str:
    """Return what a member is doing now, or else what it did last."""
    if isinstance(seat.answering, Failed):
        return wording.member_failed(failures.failure(seat.answering.failure))
    stages = (
        (seat.answering, wording.ANSWERING, _answering(seat)),
        (seat.reviewing, wording.REVIEWING, _reviewing(seat)),
        (seat.correcting, wording.CORRECTING, correction(seat)),
    )
    doing = [_doing(what, state, now) for state, what, _ in stages if isinstance(state, Working)]
    done = [said for state, _, said in stages if isinstance(state, Answered | Failed)]
    return ", ".join(doing) or (done[-1] if done else wording.WAITING)


def _answering(seat: Seat) -> str:
    took = seat.answering.latency_ms if isinstance(seat.answering, Answered) else None
    cut_off = bool(seat.answer and seat.answer.truncated)
    return wording.member_answered(None if took is None else took / 1000, cut_off=cut_off)


def _reviewing(seat: Seat) -> str:
    if isinstance(seat.reviewing, Failed):
        return wording.member_not_reviewed(failures.cause(seat.reviewing.failure))
    if seat.review is None or seat.review.parsed_ranking:
        return wording.REVIEWED
    return wording.REVIEW_CUT_OFF if seat.review.truncated else wording.UNREADABLE


def correction(seat: Seat) -> str:
    """Return whether a member changed its answer."""
    if isinstance(seat.correcting, Failed):
        if seat.correcting.failure.cause == "stopped":
            return wording.NOT_CORRECTED
        return wording.correction_failed(
            failures.cause(seat.correcting.failure), wording.kept_answer(seat.number)
        )
    return wording.CORRECTED if seat.has_changed else wording.KEPT


def _doing(what: str, work: Working, now: float) -> str:
    if work.retried is None:
        return what
    return wording.again(what, work.again_at - now, failures.cause(work.retried))


# ── when it is over ──────────────────────────────────────────────────────────────────────────────


def _finished(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    return (
        _question(view),
        *cautions(view, final),
        Title(title(view)),
        *_in_sum(view, final),
        *_body(view, final, now, NOTE_LENGTH),
    )


def answer(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    """Return the final answer: what a reader must know first, its text, notes, facts about the run."""
    return (*cautions(view, final), *_body(view, final, now))


def stored(view: RunView) -> tuple[Block, ...]:
    """Return a stored run's final answer; without one, that there is none and whose calls failed."""
    if view.final is not None:
        return answer(view, view.final, now=0.0)
    short = names(view)
    states = [(seat.name, seat.answering) for seat in view.seats]
    states += [(writer.name, writer.state) for writer in view.chair]
    lost = (
        wording.failed(short[name], failures.failure(state.failure))
        for name, state in states
        if isinstance(state, Failed)
    )
    said = wording.NO_FINAL if any(seat.answer for seat in view.seats) else wording.NOTHING
    return (Line(" ".join(filter(None, (said, wording.sentence(lost))))),)


def _body(
    view: RunView, final: Stage3Result, now: float, note_length: int | None = None
) -> tuple[Block, ...]:
    return (
        Prose(final.response),
        *([Line(wording.CUT_OFF)] if final.truncated else []),
        *_notes(view, final.notes, note_length),
        Footer(_joined([*_voices(view, final, is_card=note_length is not None), *_effort(view, now)])),
    )


def _question(view: RunView) -> Pairs:
    """Return who asked what, shortened."""
    question = clip(" ".join(view.question.split()), QUESTION_LENGTH)
    return Pairs(((wording.asked_by(view.asker), question),))


def _in_sum(view: RunView, final: Stage3Result) -> tuple[Line, ...]:
    """Return one line: who disagrees, whom reviews corrected, whether anybody objects or asks."""
    short, facts = names(view), list[str]()
    answered = [seat for seat in view.seats if seat.answer]
    notes = final.notes or ChairNotes()
    if notes.dissent:
        models = {seat.name: seat.name.partition("#")[0] for seat in answered}
        dissent = [
            name
            for name in models
            if named(notes.dissent, short[name], name, models[name].rpartition("/")[2])
        ]
        facts.append(wording.disagree(len(dissent), len(answered)) if dissent else wording.DISSENT_BELOW)
    moved = [short[seat.name] for seat in answered if seat.correction and seat.has_changed]
    if moved:
        facts.append(wording.were_corrected(moved, len(answered)))
    elif len(answered) > 1 and all(isinstance(seat.correcting, Answered) for seat in answered):
        facts.append(wording.all_kept(len(answered)))
    if len(answered) > 1 and all(heard(view, seat).has_none for seat in answered):
        facts.append(wording.NO_OBJECTION)
    if notes.ask:
        facts.append(wording.OPEN_QUESTION)
    return (Line(_joined(facts)),) if facts else ()


def _changed_sentence(view: RunView) -> Iterator[tuple[str, str]]:
    """Return the one sentence that a serious objection changed, before and after, if it is clear."""
    for seat in view.seats:
        if not (seat.answer and seat.correction and seat.correction.changed):
            continue
        points = [point for _, said in heard(view, seat).objections for point in said]
        found = clearest(passages(seat.answer.response, seat.correction.corrected_response), points)
        if found:
            before, after = clip(found.before, SENTENCE_LENGTH), clip(found.after, SENTENCE_LENGTH)
            yield wording.changed_in(names(view)[seat.name]), wording.became(before, after)


def _notes(view: RunView, notes: ChairNotes | None, length: int | None) -> tuple[Block, ...]:
    notes = notes or ChairNotes()
    said = (
        (wording.DISSENT, notes.dissent),
        (wording.ONLY, notes.only),
        (wording.CHANGED, notes.changed),
        *islice(_changed_sentence(view), 1),
        (wording.ASK, notes.ask),
    )
    rows = tuple((name, clip(text, length) if length else text) for name, text in said if text)
    return (Pairs(rows),) if rows else ()


def _tone(view: RunView, final: Stage3Result) -> Tone:
    return "weakened" if any(_weaknesses(view, final)) else "answered"


def cautions(view: RunView, final: Stage3Result) -> tuple[Line, ...]:
    """Return one line: what a reader must know before believing an answer, and what its members read."""
    weak = " ".join(_weaknesses(view, final))
    skipped = worth.skipped(view.depth, by_member=view.judged_by_member) if view.depth else ""
    return (
        *([Line(weak, strong=True)] if weak else []),
        *([Line(skipped)] if skipped else []),
        *_history(view),
    )


def _weaknesses(view: RunView, final: Stage3Result) -> Iterator[str]:
    """List how an answer falls short of the chairman's after a full run, the worst first."""
    short = names(view)
    if final.source == "single":
        yield wording.only_answer(short[final.model])
    given = sum(seat.answer is not None for seat in view.seats)
    absent = [*_failures(view, short, "stage1")]
    if given < len(view.seats) and final.source != "single":
        absent = [wording.answered(given, _members(view, len(view.seats))), *absent]
    if said := wording.sentence(_as_many_as_fit(absent)):
        yield said
    yield from _writer(view, final, short)
    if final.answered_by:
        yield wording.answered_by(final.answered_by, short[final.model])
    if final.stopped_early:
        yield wording.STOPPED_EARLY
    if final.truncated:
        yield wording.CUT_OFF_BELOW
    lost = [*_failures(view, short, "stage2"), *_failures(view, short, "stage2_5")]
    if said := wording.sentence(_as_many_as_fit(lost)):
        yield said
    yield from origin(view)


def _writer(view: RunView, final: Stage3Result, short: dict[str, str]) -> Iterator[str]:
    """Return who wrote an answer if it wasn't the chairman."""
    failed = [
        wording.failed(short[writer.name], failures.cause(writer.state.failure))
        for writer in view.chair
        if isinstance(writer.state, Failed)
    ]
    why = listing(failed) if failed else ""
    if final.source in ("fallback", "best_ranked"):
        yield wording.replaced_chairman(short[final.model], why)
    elif final.source == "verbatim":
        yield wording.verbatim(short[final.model], why, ranked=view.rank(final.model) is not None)


def _failures(view: RunView, short: dict[str, str], stage: Stage) -> Iterator[str]:
    """Return what failed in a stage; members that were only stopped are counted."""
    what, said = _MISSED[stage]
    missed = [
        (short[seat.name], state.failure)
        for seat in view.seats
        if isinstance(state := seat.state(stage), Failed)
    ]
    stopped = sum(why.cause == "stopped" for _, why in missed)
    if stopped > 1:
        yield wording.were_stopped(_members(view, stopped), what)
    for name, why in missed:
        if why.cause != "stopped" or stopped == 1:
            yield said(name, failures.cause(why))
    if stage == "stage2":
        for seat in view.seats:
            if seat.review and not seat.review.parsed_ranking:
                yield wording.vote_lost(short[seat.name], truncated=seat.review.truncated)


_MISSED: Mapping[Stage, tuple[str, Callable[[str, str], str]]] = {
    "stage1": (wording.ANSWER_FAILED, wording.failed),
    "stage2": (wording.REVIEW_FAILED, wording.no_review),
    "stage2_5": (wording.CORRECTION_FAILED, wording.no_correction),
}


def _as_many_as_fit(facts: list[str]) -> list[str]:
    lengths = accumulate(len(fact) + len(SEPARATOR) for fact in facts)
    shown = [fact for fact, length in zip(facts, lengths, strict=True) if length <= MISHAPS]
    more = len(facts) - len(shown)
    return [*shown, wording.more(more)] if more else shown


def _error(view: RunView, error: RunFailure, now: float) -> tuple[Block, ...]:
    short = names(view)
    causes = failures.causes(error.failures)
    return (
        _question(view),
        Heading(wording.NOT_SAVED if view.final else wording.NO_ANSWER),
        Line(error.message),
        *(
            [
                Pairs(
                    tuple(
                        (listing(short.get(name, name) for name in names), why) for names, why in causes
                    )
                )
            ]
            if causes
            else []
        ),
        *map(Line, origin(view)),
        *_kept(view.final),
        Footer(_joined([*_effort(view, now), wording.run(error.run_id)])),
    )


def _kept(unsaved: Stage3Result | None) -> tuple[Block, ...]:
    if unsaved is None:
        return (Line(wording.NOTHING_ADDED),)
    return (Line(wording.ONLY_HERE), Prose(unsaved.response))


def _voices(view: RunView, final: Stage3Result, *, is_card: bool) -> Iterator[str]:
    """Return who took part, how answers were combined, and how alike the reviewers ranked.

    A card doesn't name the chairman; the transcript does. If the chairman names dissent, readers need
    that: alike rankings are no agreement.
    """
    short = names(view)
    given = sum(seat.answer is not None for seat in view.seats)
    members = _members(view, len(view.seats))
    yield members if given == len(view.seats) else wording.part_of(given, members)
    if final.source == "chairman" and not is_card:
        yield wording.chairman(short[final.model])
    if view.strategy != "consensus" and final.source not in ("verbatim", "single"):
        yield wording.strategy(view.strategy)
    named = final.notes is not None and final.notes.dissent is not None
    if view.ranking and not named and (alike := wording.agreement(view.ranking.agreement_word)):
        yield alike
    if view.depth and (why := worth.reviewed(view.depth, by_member=view.judged_by_member)):
        yield why
    if view.iteration and view.iteration.max_rounds > 1:
        yield wording.rounds(view.iteration)
    yield from _by_criteria(view, short)


def _by_criteria(view: RunView, short: dict[str, str]) -> Iterator[str]:
    """Return which answer scores best, and which are disqualified."""
    answers = view.scores.answers if view.scores else []
    best = next((each for each in answers if not each.is_disqualified), None)
    if best and best.total is not None:
        yield wording.best_by_criteria(short.get(best.model, best.model), best.total)
    for each in answers:
        if each.is_disqualified:
            yield wording.disqualified(short.get(each.model, each.model), each.failed)


def _effort(view: RunView, now: float) -> list[str]:
    """Return what the run has taken so far: time and cost."""
    elapsed = view.elapsed(now)
    facts = [] if elapsed is None else [figures.duration(elapsed)]
    if view.usage is not None:
        facts.append(
            figures.NO_COST if view.demonstration or view.example else figures.money(view.usage)
        )
    return facts


def _joined(facts: list[str]) -> str:
    return SEPARATOR.join(facts)

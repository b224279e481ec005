"""The card: a run's progress and, in the end, its answer or why there is none."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice

from bot.view import run
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Title
from bot.view.passages import clearest
from bot.view.run import Answered, Failed, RunView, Seat, StageView, Working
from bot.view.wording import card as wording
from bot.view.wording import failures, figures, inputs, terminal, worth
from bot.view.wording.figures import listing
from council.document.results import ChairNotes, Stage3Result
from council.events import RunFailed, Stage
from council.notes import named
from council.text import clip

TITLE_LENGTH = 80
QUESTION_LENGTH = 130
"""How much of the question a finished card repeats: about two lines."""
NOTE_LENGTH = 400
"""How much of each of the chairman's notes a card shows; the transcript has all of it."""
SENTENCE_LENGTH = 180
"""How much a card shows of the sentence that the reviews changed, before and after."""
MOST_NAMED = 6
"""How many members one cause names; the rest are counted."""
MISHAPS = 500
"""How much room a card gives to what went wrong; behind it are the answer and its notes."""
SEPARATOR = " \u00b7 "


def card(view: RunView, now: float) -> Message:
    """Return the card in its present state: progress, then the answer or the error."""
    if view.error is not None:
        return Message("card", _error(view, view.error, now), "failed")
    if view.conversation_id is not None and view.final is not None:
        warned = cautions(view, view.final)
        blocks = (
            _question(view),
            *warned,
            Title(title(view)),
            *_in_sum(view, view.final),
            *_body(view, view.final, now, NOTE_LENGTH),
        )
        return Message("card", blocks, "weakened" if any(each.strong for each in warned) else "answered")
    return progress(view, now)


def title(view: RunView) -> str:
    return view.title or clip(" ".join(view.question.split()), TITLE_LENGTH)


# ── while it runs ────────────────────────────────────────────────────────────────────────────────


def progress(view: RunView, now: float) -> Message:
    short, at = view.names, view.position
    place = at and (figures.ordinal(at) if at <= run.EXACT_POSITIONS else f"among the first {at:,}")
    written = view.final.response if view.final else view.text
    blocks: list[Block] = [
        Quote(view.question),
        Line(asked(view)),
        *map(Line, origin(view)),
        *_history(view),
        *([] if written else map(Line, expected(view))),
        *([Line(f"Waiting for its turn: {place} in the queue.")] if place else []),
        *([Line(view.held)] if view.held else []),
        Pairs(tuple(stage_line(view, stage, now) for stage in view.stages)),
        Pairs(tuple((short[seat.name], _mark(seat, now)) for seat in view.seats), listed=True),
    ]
    if written:
        blocks += [Heading("Final answer", 3), Prose(written)]
    if effort := _effort(view, now):
        blocks.append(Footer(SEPARATOR.join(effort) if view.is_over else wording.so_far(effort)))
    return Message("card", tuple(blocks), "running")


def asked(view: RunView) -> str:
    profile, council = view.profile, _members(view, len(view.seats))
    if profile.name not in (None, "", "default"):  # the usual one needs no name
        council = f"Council \u201c{profile.name}\u201d, {council}"
    if profile.max_rounds != 1:
        council += f", up to {profile.max_rounds} rounds"
    if view.strategy != "consensus":
        council += f", strategy {view.strategy}"
    said = [f"{wording.ASKED} by {view.asker}."] if view.asker else []
    said.append(f"{council}.")
    if view.criteria:
        said.append(f"Criteria: {view.criteria}.")
    if profile.web:
        said.append("Members search the web.")
    return " ".join(said)


def origin(view: RunView) -> Iterator[str]:
    if view.profile.demonstration:
        yield wording.DEMONSTRATION
    if view.profile.example:
        yield terminal.ON_CARD


def expected(view: RunView) -> Iterator[str]:
    if said := figures.expected(view.typical, view.estimated):
        yield f"{said[:1].upper()}{said[1:]}."


def _members(view: RunView, number: int) -> str:
    consultants = view.profile.answer_format == "structured"
    return figures.count(number, "consultant" if consultants else "member")


def _history(view: RunView) -> Iterator[Line]:
    if view.context:
        yield Line(wording.thread(view.context))
    if given := view.files:
        files = [
            each.model_copy(update={"seen_by": each.seen_by and [*map(view.name, each.seen_by)]})
            for each in given.files
        ]
        yield from map(Line, inputs.files_read(files, given.links, given.earlier))
    if view.history:
        yield Line(wording.conversation(view.history))


def stage_line(view: RunView, stage: StageView, now: float) -> tuple[str, str]:
    name = wording.STAGE_NAMES[stage.stage]
    if stage.stage in run.ROUND_STAGES:
        name = f"{name}, round {view.number}" if view.number > 1 else name
    # Until a stage says whom it waits for, it is those with an answer.
    states = [
        seat.state(stage.stage)
        for seat in view.seats
        if (seat.name in stage.members if stage.members else seat.answer) and stage.stage != "stage3"
    ]
    given = sum(isinstance(state, Answered) for state in states)
    is_judged = view.profile.asks_judge and view.message.depth is None
    if stage.progress == "running" and stage.stage == "stage3":
        said = _writing(view, now)
    elif stage.progress == "running":
        failed = sum(isinstance(state, Failed) for state in states)
        said = f"{wording.RUNNING}, {given + failed} of {len(states)} done"
    elif stage.progress == "done" and stage.started is not None and stage.ended is not None:
        part = f", {given} of {len(states)}" if given < len(states) else ""
        said = f"done in {figures.duration(stage.ended - stage.started)}{part}"
    elif (stage.stage, stage.progress) == ("stage2", "waiting") and (
        is_judged and view.stage("stage1").progress == "done"
    ):
        said = "the judge compares the answers"
    else:
        said = stage.progress
    return name, said


def _writing(view: RunView, now: float) -> str:
    short = view.names
    said: list[str] = []
    for name, state in view.chair.items():
        match state:
            case Failed(failure):
                said.append(wording.MEMBER_LOST.format(short[name], failures.cause(failure)))
            case Working():
                doing = _doing("writing", state, now)
                said.append(f"{short[name]} is {doing}")
            case _:
                said.append(f"{short[name]} has written the answer")
    return ", ".join(said) or wording.RUNNING


def _mark(seat: Seat, now: float) -> str:
    if isinstance(seat.answering, Failed):
        return f"failed: {failures.failure(seat.answering.failure)}"
    stages = (
        (seat.answering, "answering", _answering(seat)),
        (seat.reviewing, "reviewing", _reviewing(seat)),
        (seat.correcting, "correcting", correction(seat)),
    )
    doing = [_doing(what, state, now) for state, what, _ in stages if isinstance(state, Working)]
    done = [said for state, _, said in stages if isinstance(state, Answered | Failed)]
    return ", ".join(doing) or (done[-1] if done else "waiting")


def _answering(seat: Seat) -> str:
    latency = seat.answering.latency_ms if isinstance(seat.answering, Answered) else None
    took = "" if latency is None else f" in {figures.duration(latency / 1000)}"
    return f"answered{took}{' (cut off)' if seat.answer and seat.answer.truncated else ''}"


def _reviewing(seat: Seat) -> str:
    if isinstance(seat.reviewing, Failed):
        return f"no review ({failures.cause(seat.reviewing.failure)})"
    if seat.review is None or seat.review.parsed_ranking:
        return "reviewed"
    return "reviewed, cut off before its vote" if seat.review.truncated else "reviewed, vote unreadable"


def correction(seat: Seat) -> str:
    if isinstance(seat.correcting, Failed):
        if seat.correcting.failure.cause == "stopped":
            return "not corrected: the run was stopped"
        kept = wording.kept_answer(seat.view.number)
        return f"correction failed ({failures.cause(seat.correcting.failure)}); {kept} kept"
    return "corrected" if seat.has_changed else "kept its answer"


def _doing(what: str, work: Working, now: float) -> str:
    if work.retried is None:
        return what
    seconds, why = work.again_at - now, failures.cause(work.retried)
    return f"{what} again{f' in {figures.duration(seconds)}' if seconds > 0 else ''} ({why})"


# ── when it is over ──────────────────────────────────────────────────────────────────────────────


def answer(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    return (*cautions(view, final), *_body(view, final, now))


def stored(view: RunView) -> tuple[Block, ...]:
    """Return a stored run's final answer; without one, that there is none and whose calls failed."""
    if view.final is not None:
        return answer(view, view.final, now=0.0)
    short = view.names
    states = [*((seat.name, seat.answering) for seat in view.seats), *view.chair.items()]
    failed = ((short[each], state.failure) for each, state in states if isinstance(state, Failed))
    lost = _by_cause(wording.MEMBER_LOST, ((name, failures.failure(why)) for name, why in failed))
    said = "It has no final answer." if any(seat.answer for seat in view.seats) else "It has no answer."
    return (Line(" ".join(filter(None, (said, wording.sentence(lost))))),)


def _body(
    view: RunView, final: Stage3Result, now: float, note_length: int | None = None
) -> tuple[Block, ...]:
    facts = (*_voices(view, final, is_card=note_length is not None), *_effort(view, now))
    return (
        Prose(final.response),
        *([Line("The answer reached its length limit and ends here.")] if final.truncated else []),
        *_notes(view, final.notes, note_length),
        Footer(SEPARATOR.join(filter(None, facts))),
    )


def _question(view: RunView) -> Pairs:
    asked = clip(" ".join(view.question.split()), QUESTION_LENGTH)
    return Pairs(((f"{view.asker} asked" if view.asker else wording.ASKED, asked),))


def _in_sum(view: RunView, final: Stage3Result) -> tuple[Line, ...]:
    facts, notes = list[str](), final.notes or ChairNotes()
    answered = [seat for seat in view.seats if seat.answer]
    if said := notes.dissent:
        dissent = sum(
            named(said, seat.short, seat.name, seat.name.partition("#")[0].rpartition("/")[2])
            for seat in answered
        )
        disagree = "disagrees" if dissent == 1 else "disagree"
        facts.append(f"{dissent} of {len(answered)} {disagree}" if dissent else "dissent below")
    # The built-in model finds nothing because it can't.
    are_peers = len(answered) > 1 and not view.profile.demonstration
    if moved := [seat.short for seat in answered if seat.has_changed]:
        whose = listing(moved) if len(moved) < 3 else f"{len(moved)} of {len(answered)}"
        facts.append(f"reviews corrected {whose}")
    elif are_peers and all(isinstance(seat.correcting, Answered) for seat in answered):
        facts.append(f"{'both' if len(answered) == 2 else f'all {len(answered)}'} kept their answers")
    if are_peers and all(seat.criticism.has_none for seat in answered):
        facts.append("no objection")
    if notes.ask:
        facts.append("one open question")
    return (Line(SEPARATOR.join(facts)),) if facts else ()


def _changed_sentence(view: RunView) -> Iterator[tuple[str, str]]:
    """Return the one sentence that a serious objection changed, before and after, if it is clear."""
    for seat in view.seats:
        if not (seat.answer and seat.correction and seat.correction.changed):
            continue
        points = [point for _, said in seat.criticism.objections for point in said]
        found = clearest(seat.passages, points)
        if found:
            before, after = clip(found.before, SENTENCE_LENGTH), clip(found.after, SENTENCE_LENGTH)
            yield f"Changed in {seat.short}'s answer", f"\u201c{before}\u201d \u2192 \u201c{after}\u201d"


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


def cautions(view: RunView, final: Stage3Result) -> tuple[Line, ...]:
    """Return one line: what a reader must know before believing an answer, and what its members read."""
    weak = " ".join(_weaknesses(view, final))
    depth = view.message.depth
    skipped = worth.skipped(depth, by_member=view.profile.judged_by_a_member) if depth else ""
    return (
        *([Line(weak, strong=True)] if weak else []),
        *([Line(skipped)] if skipped else []),
        *_history(view),
    )


def _weaknesses(view: RunView, final: Stage3Result) -> Iterator[str]:
    """List how an answer falls short of the chairman's after a full run, the worst first."""
    short = view.names
    if final.source == "single":
        yield f"Only {short[final.model]} answered, so nobody reviewed it."
    given = sum(seat.answer is not None for seat in view.seats)
    absent = [*_failures(view, short, "stage1")]
    if given < len(view.seats) and final.source != "single":
        absent = [f"{given} of {_members(view, len(view.seats))} answered", *absent]
    if said := wording.sentence(_as_many_as_fit(absent)):
        yield said
    yield from _writer(view, final, short)
    if final.answered_by:
        yield f"The model {final.answered_by} answered in place of {short[final.model]}."
    if final.stopped_early:
        yield "Stopped early: written from the answers so far."
    if final.truncated:
        yield "The answer is cut off at its length limit."
    lost = [*_failures(view, short, "stage2"), *_failures(view, short, "stage2_5")]
    if said := wording.sentence(_as_many_as_fit(lost)):
        yield said
    yield from origin(view)


def _writer(view: RunView, final: Stage3Result, short: dict[str, str]) -> Iterator[str]:
    lost = (
        (short[name] + wording.AS_CHAIRMAN * (name in view.members), failures.cause(state.failure))
        for name, state in view.chair.items()
        if isinstance(state, Failed)
    )
    failed = [*_by_cause(wording.MEMBER_LOST, lost)]
    why = listing(failed) if failed else ""
    if final.source in ("fallback", "best_ranked"):
        yield f"Written by {short[final.model]}{f'; {why}' if why else ''}."
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
        yield f"{_members(view, stopped)} {what} (they were stopped)"
    others = (each for each in missed if each[1].cause != "stopped" or stopped == 1)
    yield from _by_cause(said, ((name, failures.cause(why)) for name, why in others))
    if stage == "stage2":
        lost = [seat for seat in view.seats if seat.review and not seat.review.parsed_ranking]
        for cut_off, said in wording.VOTES_LOST.items():
            those = (seat for seat in lost if seat.review and seat.review.truncated is cut_off)
            yield from _by_cause(said, ((short[seat.name], "") for seat in those))


def _by_cause(said: str, missed: Iterable[tuple[str, str]]) -> Iterator[str]:
    concerned = defaultdict[str, list[str]](list)
    for name, why in missed:
        concerned[why].append(name)
    for why, names in concerned.items():
        more = len(names) - MOST_NAMED
        shown = [*names[:MOST_NAMED], f"{more} more"] if more > 1 else names
        number = {"s": "s", "were": "were"} if len(names) > 1 else {"s": "", "were": "was"}
        yield said.format(listing(shown), why, **number)


_MISSED: Mapping[Stage, tuple[str, str]] = {
    "stage1": ("failed", wording.MEMBER_LOST),
    "stage2": ("gave no review", "{} gave no review ({})"),
    "stage2_5": ("kept their answers", "{}'s correction{s} failed ({})"),
}


def _as_many_as_fit(facts: list[str]) -> list[str]:
    lengths = accumulate(len(fact) + len(SEPARATOR) for fact in facts)
    shown = [fact for fact, length in zip(facts, lengths, strict=True) if length <= MISHAPS]
    more = len(facts) - len(shown)
    return [*shown, f"{more} more"] if more else shown


def _error(view: RunView, error: RunFailed, now: float) -> tuple[Block, ...]:
    unsaved = view.final
    causes = [(listing(map(view.name, names)), why) for names, why in failures.causes(error.failures)]
    return (
        _question(view),
        Heading("An answer that could not be saved" if unsaved else "No answer"),
        Line(error.message),
        *([Pairs(tuple(causes))] if causes else []),
        *map(Line, origin(view)),
        *(
            [
                Line(f"{wording.NOTHING_ADDED} The answer is kept only here; copy it if you need it."),
                Prose(unsaved.response),
            ]
            if unsaved
            else [Line(wording.NOTHING_ADDED)]
        ),
        Footer(SEPARATOR.join([*_effort(view, now), f"run {error.run_id[:8]}"])),
    )


def _voices(view: RunView, final: Stage3Result, *, is_card: bool) -> Iterator[str]:
    """Return who took part, how answers were combined, and how alike the reviewers ranked.

    A card doesn't name the chairman; the transcript does. If the chairman names dissent, readers need
    that: alike rankings are no agreement.
    """
    given = sum(seat.answer is not None for seat in view.seats)
    members = _members(view, len(view.seats))
    yield members if given == len(view.seats) else f"{given} of {members}"
    if final.source == "chairman" and not is_card:
        yield f"chairman {view.name(final.model)}"
    if view.strategy != "consensus" and final.source not in ("verbatim", "single"):
        yield f"strategy {view.strategy}"
    depth, iteration, ranking = view.message.depth, view.message.iteration, view.round.ranking
    if ranking and not (final.notes and final.notes.dissent):
        yield wording.agreement(ranking.agreement_word)
    if depth:
        yield worth.reviewed(depth, by_member=view.profile.judged_by_a_member)
    if iteration and iteration.max_rounds > 1:
        yield wording.rounds(iteration)
    scored = view.round.scores.answers if view.round.scores else []
    best = next((each for each in scored if not each.is_disqualified), None)
    if best and best.total is not None:
        yield f"best by criteria: {view.name(best.model)} ({best.total:.1f} of 10)"
    for each in scored:
        if each.is_disqualified:
            yield f"{view.name(each.model)} disqualified ({listing(each.failed)})"


def _effort(view: RunView, now: float) -> list[str]:
    elapsed = view.elapsed(now)
    facts = [] if elapsed is None else [figures.duration(elapsed)]
    if view.usage is not None:
        facts.append(
            figures.NO_COST
            if view.profile.demonstration or view.profile.example
            else figures.money(view.usage)
        )
    return facts

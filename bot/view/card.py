"""The card: how far a run is, and in the end its answer, or why there is none."""

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate

from bot.view import words
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Title, Tone
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
from council.document.results import ChairNotes, Stage3Result
from council.events import Stage

TITLE_LENGTH = 80
QUESTION_LENGTH = 160
"""How much of the question a finished card repeats: about two lines."""
NOTE_LENGTH = 400
"""How much of each of the chairman's notes a card shows; the transcript has all of it."""
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
    return view.title or words.clip(" ".join(view.question.split()), TITLE_LENGTH)


def names(view: RunView) -> dict[str, str]:
    """Return everybody in this run the short name they go by."""
    personas = {seat.name: seat.persona for seat in view.seats if seat.persona}
    short = words.short_names((seat.name for seat in view.seats), personas)
    # Members keep their short names when somebody who reads alike takes the chair later.
    taken = {*short.values()}
    chair = [writer.name for writer in view.chair] + ([view.final.model] if view.final else [])
    for name, said in words.short_names(chair).items():
        short.setdefault(name, name if said in taken else said)
    return short


# ── while it runs ────────────────────────────────────────────────────────────────────────────────


def progress(view: RunView, now: float) -> Message:
    """Return the question, a line a stage, a mark a member, and the answer as far as it is written."""
    short = names(view)
    blocks: list[Block] = [
        Quote(view.question),
        Line(asked(view)),
        *([Line(wording.DEMONSTRATION)] if view.demonstration else []),
        *_history(view),
        *_queued(view),
        *([Line(view.held)] if view.held else []),
        Pairs(tuple(stage_line(view, stage, now) for stage in view.stages)),
        Pairs(tuple((short[seat.name], _mark(seat, now)) for seat in view.seats)),
    ]
    if written := view.final.response if view.final else view.text:
        blocks += [Heading(wording.FINAL_ANSWER, 3), Prose(written)]
    if effort := _effort(view, now):
        blocks.append(Footer(_joined(effort) if view.is_over else f"{', '.join(effort)} so far"))
    return Message("card", tuple(blocks), "running")


def asked(view: RunView) -> str:
    """Say who asked which council."""
    council = wording.council(
        view.profile,
        words.count(len(view.seats), _role(view)),
        rounds=view.rounds,
        strategy=view.strategy,
    )
    return " ".join(
        (
            *([f"{wording.ASKED} by {view.asker}."] if view.asker else []),
            council,
            *([wording.criteria(view.criteria)] if view.criteria else []),
            *([wording.WEB] if view.web else []),
        )
    )


def _role(view: RunView) -> str:
    return "consultant" if view.consultants else "member"


def _history(view: RunView) -> list[Line]:
    """Say what was read with the question, of its thread and of its conversation."""
    thread = [Line(words.context(view.context))] if view.context else []
    return [*thread, *([Line(words.history(view.history))] if view.history else [])]


def _queued(view: RunView) -> list[Line]:
    if view.position is None:
        return []
    is_exact = view.position <= EXACT_POSITIONS
    place = words.ordinal(view.position) if is_exact else f"among the first {view.position:,}"
    return [Line(wording.queued(place))]


def stage_line(view: RunView, stage: StageView, now: float) -> tuple[str, str]:
    """Return a stage's name and how far it is."""
    name = words.STAGE_NAMES[stage.stage]
    if view.number > 1 and stage.stage in ROUND_STAGES:
        name = f"{name}, round {view.number}"
    if stage.progress == "running":
        said = _writing(view, now) if stage.stage == "stage3" else _count_done(view, stage)
    elif stage.progress == "done" and stage.started is not None and stage.ended is not None:
        said = f"done in {words.duration(stage.ended - stage.started)}{_missing(view, stage)}"
    else:
        said = stage.progress
    return name, said


def _states(view: RunView, stage: StageView) -> list[State]:
    """Return how far each member is that a stage waits for; until it says whom, those with an answer."""
    return [
        seat.state(stage.stage)
        for seat in view.seats
        if (seat.name in stage.members if stage.members else seat.answer)
    ]


def _count_done(view: RunView, stage: StageView) -> str:
    states = _states(view, stage)
    done = sum(isinstance(state, Answered | Failed) for state in states)
    return f"running, {done} of {len(states)} done"


def _missing(view: RunView, stage: StageView) -> str:
    if stage.stage == "stage3":
        return ""
    states = _states(view, stage)
    given = sum(isinstance(state, Answered) for state in states)
    return f", {given} of {len(states)}" if given < len(states) else ""


def _writing(view: RunView, now: float) -> str:
    short = names(view)
    said: list[str] = []
    for writer in view.chair:
        match writer.state:
            case Failed(failure):
                said.append(wording.failed(short[writer.name], words.cause(failure)))
            case Working():
                said.append(f"{short[writer.name]} is {_doing('writing', writer.state, now)}")
            case _:
                said.append(f"{short[writer.name]} has written")
    return ", ".join(said) or "running"


def _mark(seat: Seat, now: float) -> str:
    """Say what a member does now, or else what it did last."""
    if isinstance(seat.answering, Failed):
        return f"failed: {words.failure(seat.answering.failure)}"
    stages = (
        (seat.answering, _answering(seat)),
        (seat.reviewing, _reviewing(seat)),
        (seat.correcting, correction(seat)),
    )
    doing = [
        _doing(what, state, now)
        for what, (state, _) in zip(("answering", "reviewing", "correcting"), stages, strict=True)
        if isinstance(state, Working)
    ]
    done = [said for state, said in stages if isinstance(state, Answered | Failed)]
    return ", ".join(doing) or (done[-1] if done else wording.WAITING)


def _answering(seat: Seat) -> str:
    took = seat.answering.latency_ms if isinstance(seat.answering, Answered) else None
    cut_off = " (cut off)" if seat.answer and seat.answer.truncated else ""
    return f"answered{'' if took is None else f' in {words.duration(took / 1000)}'}{cut_off}"


def _reviewing(seat: Seat) -> str:
    if isinstance(seat.reviewing, Failed):
        return f"no review ({words.cause(seat.reviewing.failure)})"
    if seat.review is None or seat.review.parsed_ranking:
        return wording.REVIEWED
    return wording.REVIEW_CUT_OFF if seat.review.truncated else wording.UNREADABLE


def correction(seat: Seat) -> str:
    """Say whether a member changed its answer."""
    if isinstance(seat.correcting, Failed):
        return wording.correction_failed(words.cause(seat.correcting.failure), before(seat))
    return wording.CORRECTED if seat.has_changed else wording.KEPT


def before(seat: Seat) -> str:
    """Name the answer that a correction starts from."""
    return "first answer" if seat.number == 1 else "answer of the round before"


def _doing(what: str, work: Working, now: float) -> str:
    if work.retried is None:
        return what
    wait = work.again_at - now
    again = f"again in {words.duration(wait)}" if wait > 0 else "again"
    return f"{what} {again} ({words.cause(work.retried)})"


# ── when it is over ──────────────────────────────────────────────────────────────────────────────


def _finished(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    return (
        _question(view),
        *cautions(view, final),
        Title(title(view)),
        *_body(view, final, now, NOTE_LENGTH),
    )


def answer(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    """Return the final answer: what a reader must know first, its text, its notes, facts of the run."""
    return (*cautions(view, final), *_body(view, final, now))


def _body(
    view: RunView, final: Stage3Result, now: float, note_length: int | None = None
) -> tuple[Block, ...]:
    return (
        Prose(final.response),
        *([Line(wording.CUT_OFF)] if final.truncated else []),
        *_notes(final.notes, note_length),
        Footer(_joined([*_voices(view, final), *_effort(view, now)])),
    )


def _question(view: RunView) -> Pairs:
    """Return who asked what, shortened."""
    question = words.clip(" ".join(view.question.split()), QUESTION_LENGTH)
    return Pairs(((wording.asked_by(view.asker), question),))


def _notes(notes: ChairNotes | None, length: int | None) -> tuple[Block, ...]:
    if notes is None:
        return ()
    said = (
        (wording.DISSENT, notes.dissent),
        (wording.ONLY, notes.only),
        (wording.CHANGED, notes.changed),
        (wording.ASK, notes.ask),
    )
    rows = tuple((name, words.clip(text, length) if length else text) for name, text in said if text)
    return (Pairs(rows),) if rows else ()


def _tone(view: RunView, final: Stage3Result) -> Tone:
    return "weakened" if any(_weaknesses(view, final)) else "answered"


def cautions(view: RunView, final: Stage3Result) -> tuple[Line, ...]:
    """Return in a line what a reader must know before believing an answer, and what its members read."""
    weak = " ".join(_weaknesses(view, final))
    return (*([Line(weak)] if weak else []), *_history(view))


def _weaknesses(view: RunView, final: Stage3Result) -> Iterator[str]:
    """Say how an answer falls short of the chairman's after a full run, the gravest first."""
    short = names(view)
    if final.source == "single":
        yield wording.only_answer(short[final.model])
    given = sum(seat.answer is not None for seat in view.seats)
    absent = [*_failures(view, short, "stage1")]
    if given < len(view.seats) and final.source != "single":
        absent = [wording.answered(given, words.count(len(view.seats), _role(view))), *absent]
    if said := wording.sentence(_as_many_as_fit(absent)):
        yield said
    yield from _origin(view, final, short)
    if final.answered_by:
        yield wording.answered_by(final.answered_by, short[final.model])
    if final.stopped_early:
        yield wording.STOPPED_EARLY
    if final.truncated:
        yield wording.CUT_OFF_BELOW
    lost = [*_failures(view, short, "stage2"), *_failures(view, short, "stage2_5")]
    if said := wording.sentence(_as_many_as_fit(lost)):
        yield said
    if view.demonstration:
        yield wording.DEMONSTRATION


def _origin(view: RunView, final: Stage3Result, short: dict[str, str]) -> Iterator[str]:
    """Say who wrote an answer where it wasn't the chairman."""
    failed = [
        wording.failed(short[writer.name], words.cause(writer.state.failure))
        for writer in view.chair
        if isinstance(writer.state, Failed)
    ]
    why = words.listing(failed) if failed else ""
    if final.source in ("fallback", "best_ranked"):
        yield wording.replaced_chairman(short[final.model], why)
    elif final.source == "verbatim":
        yield wording.verbatim(short[final.model], why, ranked=view.place(final.model) is not None)


def _failures(view: RunView, short: dict[str, str], stage: Stage) -> Iterator[str]:
    """Say what failed in a stage; those that were only stopped are counted."""
    what, said = _MISSED[stage]
    failures = [
        (short[seat.name], state.failure)
        for seat in view.seats
        if isinstance(state := seat.state(stage), Failed)
    ]
    stopped = sum(why.cause == "stopped" for _, why in failures)
    if stopped > 1:
        yield wording.were_stopped(words.count(stopped, _role(view)), what)
    for name, why in failures:
        if why.cause != "stopped" or stopped == 1:
            yield said(name, words.cause(why))
    if stage == "stage2":
        for seat in view.seats:
            if seat.review and not seat.review.parsed_ranking:
                yield wording.vote_lost(short[seat.name], truncated=seat.review.truncated)


_MISSED: Mapping[Stage, tuple[str, Callable[[str, str], str]]] = {
    "stage1": ("failed", wording.failed),
    "stage2": ("gave no review", wording.no_review),
    "stage2_5": ("kept their answers", wording.no_correction),
}


def _as_many_as_fit(facts: list[str]) -> list[str]:
    lengths = accumulate(len(fact) + len(SEPARATOR) for fact in facts)
    shown = [fact for fact, length in zip(facts, lengths, strict=True) if length <= MISHAPS]
    more = len(facts) - len(shown)
    return [*shown, f"{more} more"] if more else shown


def _error(view: RunView, error: RunFailure, now: float) -> tuple[Block, ...]:
    short = names(view)
    causes = words.causes(error.failures).items()
    return (
        _question(view),
        Heading(wording.NOT_SAVED if view.final else wording.NO_ANSWER),
        Line(error.message),
        *([Pairs(tuple((short.get(name, name), why) for name, why in causes))] if causes else []),
        *([Line(wording.DEMONSTRATION)] if view.demonstration else []),
        *_kept(view.final),
        Footer(_joined([*_effort(view, now), f"run {error.run_id}"])),
    )


def _kept(unsaved: Stage3Result | None) -> tuple[Block, ...]:
    if unsaved is None:
        return (Line(wording.NOTHING_ADDED),)
    return (Line(wording.ONLY_HERE), Prose(unsaved.response))


def _voices(view: RunView, final: Stage3Result) -> Iterator[str]:
    """Say who took part, how they were combined, and how far the reviewers ranked alike."""
    short = names(view)
    yield words.count(len(view.seats), _role(view))
    if final.source == "chairman":
        yield f"chairman {short[final.model]}"
    if view.strategy != "consensus" and final.source not in ("verbatim", "single"):
        yield f"strategy {view.strategy}"
    if view.ranking and (agreement := words.agreement(view.ranking.agreement_word)):
        yield agreement
    if view.iteration and view.iteration.max_rounds > 1:
        yield words.rounds(view.iteration)
    yield from _by_criteria(view, short)


def _by_criteria(view: RunView, short: dict[str, str]) -> Iterator[str]:
    """Say which answer scores best, and which are disqualified."""
    answers = view.scores.answers if view.scores else []
    best = next((each for each in answers if not each.is_disqualified), None)
    if best and best.total is not None:
        yield f"best by criteria {short.get(best.model, best.model)} ({best.total:.1f} of 10)"
    for each in answers:
        if each.is_disqualified:
            yield f"{short.get(each.model, each.model)} disqualified ({words.listing(each.failed)})"


def _effort(view: RunView, now: float) -> list[str]:
    """Say what the run took so far: time and cost."""
    elapsed = view.elapsed(now)
    facts = [] if elapsed is None else [words.duration(elapsed)]
    if view.usage is not None:
        facts.append(words.NO_COST if view.demonstration else words.money(view.usage))
    return facts


def _joined(facts: list[str]) -> str:
    return SEPARATOR.join(facts)

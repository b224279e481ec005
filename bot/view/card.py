"""The card: how far a run is, and in the end its answer, or why there is none."""

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate

from bot.view import words
from bot.view.message import Block, Footer, Heading, Line, Message, Pairs, Prose, Quote, Title
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
from council.document.conversation import Stage3Result

TITLE_LENGTH = 80
MISHAPS = 500
"""How much room a footer gives to what went wrong; behind it time, cost and id have to fit."""
SEPARATOR = " \u00b7 "


def card(view: RunView, now: float) -> Message:
    """Return the card in its present state: progress, then the answer or the error."""
    if view.error is not None:
        return Message("card", _error(view, view.error, now))
    if view.conversation_id is not None and view.final is not None:
        return Message("card", (Title(title(view)), *answer(view, view.final, now)))
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


def progress(view: RunView, now: float) -> Message:
    """Return the question, a line a stage, a line a member, and the answer as far as it is written."""
    short = names(view)
    blocks: list[Block] = [
        Quote(view.question),
        Line(asked(view)),
        *_demonstration(view),
        *_history(view),
        *_queued(view),
        *([Line(view.held)] if view.held else []),
        Pairs(tuple(stage_line(view, stage, now) for stage in view.stages)),
        Pairs(tuple((short[seat.name], _mark(seat, now)) for seat in view.seats)),
    ]
    if written := view.final.response if view.final else view.text:
        blocks += [Heading("Final answer", 3), Prose(written)]
    if effort := _effort(view, now):
        blocks.append(Footer(_joined(effort) if view.is_over else f"{', '.join(effort)} so far"))
    return Message("card", tuple(blocks))


def answer(view: RunView, final: Stage3Result, now: float) -> tuple[Block, ...]:
    """Return the final answer with what a reader must know of it, and one line about the run."""
    cut_off = [Line("The answer reached its length limit and ends here.")] if final.truncated else []
    known_by = [f"id {view.conversation_id}"] if view.conversation_id else []
    return (
        *_demonstration(view),
        *_history(view),
        *map(Line, _origin(view, final)),
        Prose(final.response),
        *cut_off,
        Footer(_joined([*_voices(view, final), *_effort(view, now), *known_by])),
    )


def _error(view: RunView, error: RunFailure, now: float) -> tuple[Block, ...]:
    short = names(view)
    causes = words.causes(error.failures).items()
    return (
        Heading("An answer that could not be saved" if view.final else "No answer"),
        Quote(view.question),
        Line(asked(view)),
        *_demonstration(view),
        Line(error.message),
        *([Pairs(tuple((short.get(name, name), why) for name, why in causes))] if causes else []),
        *_kept(view.final),
        Footer(_joined([*_effort(view, now), f"run {error.run_id}"])),
    )


def _kept(unsaved: Stage3Result | None) -> tuple[Block, ...]:
    if unsaved is None:
        return (Line("Nothing was added to the conversation."),)
    kept = "Nothing was added to the conversation. The answer is kept only here; copy it if you need it."
    return (Line(kept), Prose(unsaved.response))


def asked(view: RunView) -> str:
    """Say who asked which council."""
    who = f"Asked by {view.asker}. " if view.asker else ""
    members = words.count(len(view.seats), _role(view))
    rounds = "" if view.rounds == 1 else f", up to {view.rounds} rounds"
    strategy = "" if view.strategy == "consensus" else f", strategy {view.strategy}"
    council = f"Council \u201c{view.profile}\u201d, {members}{rounds}{strategy}."
    return f"{who}{council}{_criteria(view)}{_web(view)}"


def _role(view: RunView) -> str:
    return "consultant" if view.consultants else "member"


def _criteria(view: RunView) -> str:
    return f" Criteria: {view.criteria}." if view.criteria else ""


def _web(view: RunView) -> str:
    return " Members search the web." if view.web else ""


def _demonstration(view: RunView) -> list[Line]:
    return [Line(words.DEMONSTRATION)] if view.demonstration else []


def _history(view: RunView) -> list[Line]:
    """Say what was read with the question, of its thread and of its conversation."""
    thread = [Line(words.context(view.context))] if view.context else []
    return [*thread, *([Line(words.history(view.history))] if view.history else [])]


def _queued(view: RunView) -> list[Line]:
    if view.position is None:
        return []
    if view.position <= EXACT_POSITIONS:
        return [Line(f"Waiting for its turn: {words.ordinal(view.position)} in the queue.")]
    return [Line(f"Waiting for its turn: among the first {view.position:,} in the queue.")]


def _joined(facts: list[str]) -> str:
    return SEPARATOR.join(facts)


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
                said.append(f"{short[writer.name]} failed ({words.cause(failure)})")
            case Working():
                said.append(f"{short[writer.name]} is {_doing('writing', writer.state, now)}")
            case _:
                said.append(f"{short[writer.name]} has written")
    return ", ".join(said) or "running"


def _mark(seat: Seat, now: float) -> str:
    """Say how far a member is, in the order in which it got there."""
    if isinstance(seat.answering, Failed):
        return f"failed: {words.failure(seat.answering.failure)}"
    marks = [_answering(seat, now), _reviewing(seat, now), _correcting(seat, now)]
    return ", ".join(filter(None, marks))


def _answering(seat: Seat, now: float) -> str:
    match seat.answering:
        case Answered(latency_ms):
            took = "" if latency_ms is None else f" in {words.duration(latency_ms / 1000)}"
            cut_off = " (cut off)" if seat.answer and seat.answer.truncated else ""
            return f"answered{took}{cut_off}"
        case Working():
            return _doing("answering", seat.answering, now)
        case _:
            return "waiting"


def _reviewing(seat: Seat, now: float) -> str:
    match seat.reviewing:
        case Answered():
            counted = seat.review is None or seat.review.parsed_ranking
            return "ranked the others" if counted else "reviewed the others (vote not counted)"
        case Working():
            return _doing("reviewing", seat.reviewing, now)
        case Failed(failure):
            return f"no review ({words.cause(failure)})"
        case _:
            return ""


def _correcting(seat: Seat, now: float) -> str:
    match seat.correcting:
        case Answered():
            return correction(seat)
        case Working():
            return _doing("correcting", seat.correcting, now)
        case Failed(failure):
            return f"fell back to {before(seat)} ({words.cause(failure)})"
        case _:
            return ""


def before(seat: Seat) -> str:
    """Name the answer that a correction starts from."""
    return "its first answer" if seat.number == 1 else "its answer of the round before"


def correction(seat: Seat) -> str:
    """Say whether a member changed its answer, and how."""
    if not seat.has_changed:
        return "kept its answer"
    summary = seat.correction.change_summary if seat.correction else None
    if not summary:
        return "corrected"
    said = words.change(summary)
    return f"corrected: {said[0].lower()}{said[1:]}"


def _doing(what: str, work: Working, now: float) -> str:
    if work.retried is None:
        return what
    wait = work.again_at - now
    again = f"again in {words.duration(wait)}" if wait > 0 else "again"
    return f"{what} {again} ({words.cause(work.retried)})"


def _origin(view: RunView, final: Stage3Result) -> list[str]:
    """Say how this answer came about where it isn't the chairman's after a full run."""
    writer = names(view)[final.model]
    instead = _instead(view)
    said: list[str] = []
    match final.source:
        case "single":
            said.append(f"One model, not reviewed: only {writer} answered.")
        case "fallback":
            said.append(f"Written by {writer}, next in line for the chair{instead}.")
        case "best_ranked":
            rank = "the best-ranked member" if view.place(final.model) else "a member"
            said.append(f"Written by {writer}, {rank}{instead}.")
        case "verbatim":
            ranked = "the best-ranked answer" if view.place(final.model) else "a member's answer"
            said.append(f"This is {ranked}, word for word as {writer} gave it{instead}.")
        case "chairman":
            pass
    if final.answered_by:
        said.append(f"The model {final.answered_by} answered in place of {writer}.")
    if final.stopped_early:
        said.append("Stopped early, from the answers so far.")
    return said


def _instead(view: RunView) -> str:
    short = names(view)
    failed = [
        f"{short[writer.name]} failed ({words.cause(writer.state.failure)})"
        for writer in view.chair
        if isinstance(writer.state, Failed)
    ]
    return f", because {words.listing(failed)}" if failed else ""


def _voices(view: RunView, final: Stage3Result) -> list[str]:
    """Say who took part, how far they agreed, and what failed or fell back."""
    short = names(view)
    given = sum(seat.answer is not None for seat in view.seats)
    of = len(view.seats)
    all_of = words.count(of, _role(view))
    facts = [all_of if given == of else f"{given} of {all_of} answered"]
    if final.source == "chairman":
        facts.append(f"chairman {short[final.model]}")
    if view.strategy != "consensus" and final.source not in ("verbatim", "single"):
        facts.append(f"strategy {view.strategy}")
    if view.ranking:
        facts.append(words.agreement(view.ranking.agreement_word))
    if view.iteration and view.iteration.max_rounds > 1:
        facts.append(words.rounds(view.iteration))
    return [*facts, *_as_many_as_fit([*_by_criteria(view, short), *_failures(view, short)])]


def _failures(view: RunView, short: dict[str, str]) -> Iterator[str]:
    """Say what failed or fell back; those that were only stopped are counted."""
    failures = [
        (short[seat.name], what, state.failure)
        for seat in view.seats
        for state, what in (
            (seat.answering, "failed"),
            (seat.reviewing, "gave no review"),
            (seat.correcting, "fell back"),
        )
        if isinstance(state, Failed)
    ]
    stopped = Counter(what for _, what, why in failures if why.cause == "stopped")
    for what, number in stopped.items():
        if number > 1:
            yield f"{words.count(number, _role(view))} {what} (they were stopped)"
    for name, what, why in failures:
        if why.cause != "stopped" or stopped[what] == 1:
            yield f"{name} {what} ({words.cause(why)})"


def _as_many_as_fit(facts: list[str]) -> list[str]:
    lengths = accumulate(len(fact) + len(SEPARATOR) for fact in facts)
    shown = [fact for fact, length in zip(facts, lengths, strict=True) if length <= MISHAPS]
    more = len(facts) - len(shown)
    return [*shown, f"{more} more"] if more else shown


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
    """Say what the run took so far: time, tokens, cost."""
    elapsed = view.elapsed(now)
    facts = [] if elapsed is None else [words.duration(elapsed)]
    if view.usage is not None:
        cost = words.NO_COST if view.demonstration else words.money(view.usage)
        facts += [words.tokens(view.usage), cost]
    return facts

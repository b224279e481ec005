"""Depth: whether a run's answers are reviewed and corrected, and what it costs not to.

`auto` asks the judge once, after stage 1. Only where the answers recommend the same and differ in
nothing important are reviews skipped; every doubt and every failure leads to full. Unanimous answers
may be wrong together (of 47 questions that debate would have corrected, 31 were: arXiv 2605.09618), so
a share of the runs that would be skipped is reviewed all the same, drawn from the run's seed, and the
judge says what the reviews changed.

The judge reads anonymous answers, and never learns who wrote what. Its reply is read leniently but never
guessed, and what can't be read after a second request is a `Failure` of the cause `malformed`.

An answer has no reason to speak of labels, of other answers or of the judging: each was written alone.
One that does may be talking to the judge, so the run goes its full depth. A false alarm costs the
reviews that were to be saved, no more.
"""

import random
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from council.calls import AskAgain, Reply, object_schema
from council.consultation import for_reviewers
from council.document import results
from council.document.results import Comparison, RunDepth
from council.errors import Failure
from council.models.costs import PriceOf, search_cost
from council.profile import Depth, Member
from council.prompts.prompts import COMPARE_AGAIN
from council.reviews.ballot_text import by_letter, label_named
from council.reviews.labels import label_answers
from council.session import Request, Session
from council.tasks import Cancellation, offload
from council.text import clip
from council.text.json_objects import JsonObject, objects, out_of_string
from council.usage import Usage, tokens

AUDIT_SECONDS = 30.0
"""How long the end of an audited run waits for what the judge says of the reviews."""


async def choose_depth(
    session: Session, answers: Sequence[results.Stage1Result], price_of: PriceOf
) -> RunDepth | None:
    """Return how deep the run goes; `None` for a full one that nobody compares with anything."""
    profile = session.brief.profile
    if profile.depth == "full":
        return None
    if len(answers) == 1:
        return _chosen("quick", "one_answer", asked=profile.depth)
    if profile.depth == "quick":
        return _chosen("quick", "asked", asked="quick")
    chosen = await _auto(session, answers)
    if chosen.ran == "full":
        return chosen
    if is_drawn(session.brief.seed, profile.depth_audit):
        return chosen.model_copy(update={"ran": "full", "reason": "audited", "audited": True})
    return chosen.model_copy(update={"saved": _saved(session, answers, price_of)})


async def _auto(session: Session, answers: Sequence[results.Stage1Result]) -> RunDepth:
    judge = session.brief.profile.judge
    labels = label_answers([answer.model for answer in answers], session.brief.seed)
    texts = {each.model: for_reviewers(each.text, each.consultation) for each in answers}
    if any(answer.truncated for answer in answers):
        return _chosen("full", "cut_off")
    if await offload(sum(map(len, texts.values())), steers, [*texts.values()], [*labels]):
        return _chosen("full", "steering")
    if judge is None:
        return _chosen("full", "no_verdict")
    if session.skips("judge"):
        return _chosen("full", "stopped")
    labelled = [(label, texts[name]) for label, name in labels.items()]
    ends = Cancellation(session.stop.members)
    found = await compare(session, f"judge.1:{judge.model}", judge, labelled, ends)
    if isinstance(found, Failure):
        return _chosen("full", "stopped" if found.cause == "stopped" else "no_verdict")
    report = results.JudgeReport(model=judge.model, agree=found.agree, points=[*found.points])
    if found.agree:
        return _chosen("quick", "agreed", report)
    if found.steering:
        return _chosen("full", "steering", report)
    is_undecided = found.same is None and not found.points
    return _chosen("full", "undecided" if is_undecided else "different", report)


def is_drawn(seed: int, share: float) -> bool:
    return random.Random(f"audit {seed}").random() < share  # noqa: S311 - a replayed run must draw the same


def _chosen(
    ran: results.Ran,
    reason: results.DepthReason,
    report: results.JudgeReport | None = None,
    *,
    asked: Depth = "auto",
) -> RunDepth:
    return RunDepth(asked=asked, ran=ran, reason=reason, audited=False, judge=report)


def _saved(
    session: Session, answers: Sequence[results.Stage1Result], price_of: PriceOf
) -> results.Savings:
    """Return about what one round of reviews and corrections of these answers would have taken.

    Every reply is taken to be as long as the answers were, thoughts included.
    """
    profile, calls = session.brief.profile, session.usage().calls
    used = {answer.model: calls.get(f"stage1.1:{answer.model}", Usage()) for answer in answers}
    sizes = {answer.model: tokens(answer.text) for answer in answers}
    replies = {name: used[name].completion_tokens or sizes[name] for name in sizes}
    reply = round(fmean(replies.values()))
    critiques = min(profile.critique_tokens, (len(answers) - 1) * reply)
    members = {member.name: member for member in profile.members}
    judged = session.usage().stages.get("judge", Usage())
    saved, cost = -judged.tokens, None if judged.unpriced else -judged.cost
    for name, own in sizes.items():
        member = members[name]
        asked = sum(tokens(message["content"]) for message in session.prompts.answer(member))
        review = asked + sum(sizes.values()) - own, reply
        correction = asked + own + critiques, replies[name]
        saved += sum(review) + sum(correction)
        price = price_of(member)
        if price is None or cost is None:
            cost = None
            continue
        cost += price.cost(*review) + price.cost(*correction) + search_cost(member, web=profile.web)
    return results.Savings(tokens=saved, cost=cost)


async def have_changed(
    session: Session,
    answers: Sequence[results.Stage1Result],
    corrections: Sequence[results.Stage2_5Result],
    final: results.Stage3Result,
) -> bool | None:
    """Return whether the reviews changed what an audited run recommends.

    The first answers agreed, so any of them will do: the one of the first label.
    """
    profile, judge = session.brief.profile, session.brief.profile.judge
    if all(correction.fallback for correction in corrections) or judge is None:
        return None
    # Without corrections, reviews change the final answer by the ranking alone.
    if profile.corrects and not any(each.changed for each in corrections):
        return False
    [first, *_] = label_answers([each.model for each in answers], session.brief.seed).values()
    before = next(each.text for each in answers if each.model == first)
    both = (("Response A", before), ("Response B", final.response))
    ends = Cancellation(session.stop.everything)
    ends.expire("not_needed", AUDIT_SECONDS)
    try:
        found = await compare(session, f"judge.2:{judge.model}", judge, both, ends)
    finally:
        ends.close()
    return None if isinstance(found, Failure) or found.same is None else not found.same


LONGEST_POINT = 400  # characters
TIE = "tie"
UNREAD = Failure(cause="malformed")
_POINT = ("point", "text", "difference", "description")
_ALIKE = ("same", "yes", "true", "agree", "identical")
_DIFFERENT = ("different", "no", "false", "disagree", "differ")
_TIES = (TIE, "equal", "none", "neither", "both")
_NONE = ("", "none", "no", "n/a", "-")
Labelled = Sequence[tuple[str, str]]
"""Answers under their labels: `Response A`, and what it says."""
ReadComparison = Comparison | AskAgain[Comparison | Failure]


def comparison_schema(labels: Sequence[str]) -> JsonObject:
    """Return the JSON schema of a comparison, within OpenAI's strict subset."""
    label: JsonObject = {"type": "string", "enum": [*labels]}
    point = object_schema(point={"type": "string"}, checkable={"type": "boolean"})
    # Reasons come first: a model that has written its verdict would only defend it.
    return object_schema(
        differences={"type": "array", "items": point},
        recommendation={"type": "string", "enum": ["same", "different", "unsure"]},
        steering={"type": "array", "items": label},
        better={"type": "string", "enum": [*labels, TIE]},
    )


async def compare(
    session: Session, step: str, judge: Member, answers: Labelled, cancellation: Cancellation
) -> Comparison | Failure:
    """Ask the judge once about labelled answers; `step` is the call's key in the journal."""
    labels = [label for label, _ in answers]
    texts = [session.brief.question, *(text for _, text in answers)]

    async def read(reply: Reply) -> ReadComparison:
        size = len(reply.text) + sum(map(len, texts))
        found = await offload(size, read_comparison, reply.text, labels, texts)
        return found or AskAgain(COMPARE_AGAIN, UNREAD)

    request = Request(
        prompt=partial(session.prompts.comparison, judge, answers), schema=comparison_schema(labels)
    )
    return await session.ask_beside(step, judge, request, read, cancellation)


def read_comparison(text: str, labels: Sequence[str], texts: Sequence[str] = ()) -> Comparison | None:
    """Return the comparison in a reply, `None` where there is none that can be read.

    It is the last whole object that has differences and a recommendation. An object that also occurs
    in one of the `texts` is an answer's, not the judge's.
    """
    body = out_of_string(text)
    for found in objects(body):
        said = body[found.span.start : found.span.end]
        if found.span.closed and not any(said in other for other in texts):
            fields = {name.strip().casefold(): value for name, value in found.fields.items()}
            if comparison := _read(fields, labels):
                return comparison
    return None


def _read(fields: JsonObject, labels: Sequence[str]) -> Comparison | None:
    differences = fields.get("differences", fields.get("points"))
    if not isinstance(differences, list) or "recommendation" not in fields:
        return None
    known, better = by_letter(labels), fields.get("better")
    named = label_named(better, known) if isinstance(better, str) else None
    is_tie = isinstance(better, str) and better.strip().casefold() in _TIES
    if named is None and not is_tie and "better" in fields:
        return None
    said = fields["recommendation"]
    word = said.strip().strip(".").casefold() if isinstance(said, str) else said
    is_different = word is False or word in _DIFFERENT
    return Comparison(
        same=True if word is True or word in _ALIKE else False if is_different else None,
        points=tuple(filter(None, map(_point, cast("list[object]", differences)))),
        better=named,
        steering=tuple(_labels(fields.get("steering"), known)),
    )


def _point(value: object) -> results.DifferingPoint | None:
    """Read one difference, however it is written: none is dropped because it can't be read."""
    if isinstance(value, dict):
        fields = {name.casefold(): said for name, said in cast("JsonObject", value).items()}
        words = next((fields[name] for name in _POINT if isinstance(fields.get(name), str)), None)
        checkable = fields.get("checkable") in (True, "true", "yes")
        text = words if isinstance(words, str) else " ".join(map(str, fields.values()))
    else:
        text, checkable = str(value or ""), False
    text = " ".join(text.split())
    return results.DifferingPoint(text=clip(text, LONGEST_POINT), checkable=checkable) if text else None


def _labels(value: object, known: dict[str, str]) -> list[str]:
    """Return the labels in a list; where names can't be read, all: somebody was reported."""
    listed = cast("list[object]", value) if isinstance(value, list) else [value] if value else []
    names = [each for each in listed if str(each).strip().casefold() not in _NONE]
    found = [label_named(each, known) if isinstance(each, str) else None for each in names]
    return [*known.values()] if None in found else [*dict.fromkeys(filter(None, found))]


_SIGNS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("steering.toml").read_text("utf-8"))
_SPEAKS: str = _SIGNS["speaks"].replace("<role>", _SIGNS["role"]).replace("<same>", _SIGNS["same"])
_LABEL: str = _SIGNS["label"]
_PATTERN = re.compile(_SPEAKS, re.IGNORECASE | re.VERBOSE | re.MULTILINE)
WINDOW, OVERLAP = 400, 120
"""Characters that are looked at together: a search of more would hold up the event loop."""


def steers(texts: Iterable[str], labels: Iterable[str]) -> bool:
    """Return whether one of the texts speaks of its label, of other answers or of the judging."""
    letters = "".join(label.split()[-1] for label in labels)
    labelled = re.compile(rf"\b{_LABEL}[{letters}]\b(?!['\u2019/])")
    for text in texts:
        for start in range(0, len(text), WINDOW):
            end = start + WINDOW + OVERLAP
            window = text[start:end].casefold()
            is_telling = any(word in window for word in _SIGNS["telling"])
            if is_telling and any(each.search(text, start, end) for each in (labelled, _PATTERN)):
                return True
    return False

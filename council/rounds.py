"""Review and correction, round after round, until there is a reason to stop.

Inside a round, scheduling follows the data: a member's correction begins when every *other* member's
review is in. Between rounds there is nothing to overlap: a reviewer reads all answers, so a
further round begins when the last correction is in.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from council import consultation_calls, replies
from council.calls import AskAgain, ChatMessage, Reply
from council.consultation import for_reviewers, spoken_text
from council.document import conversation, results
from council.document.conversation import Round
from council.document.results import Stage1Result, Stage2_5Result, Stage2Result
from council.errors import Cause, Failure
from council.events import StageCompleted, StageStarted
from council.profile import Member
from council.prompts.opening import shorten
from council.prompts.prompts import FAULTS, Prompts, labels_only
from council.refinement_contract import complete_round, start_new_round
from council.reviews import ballots
from council.reviews.ballot_text import without_ranking
from council.reviews.extraction import extract_critiques_from_rankings
from council.reviews.labels import label_answers, reading_orders
from council.reviews.ranking import aggregate, score
from council.session import Request, Session, StageCancellation
from council.tasks import TaskGroup, offload
from council.text import FEWEST, language, script
from council.text.json_objects import JsonObject

TAKEN = 0.6
"""The share of a reply's runs of words from which it is somebody else's text."""
RUN = 5
"""Words in a row that are taken, not found twice by chance."""
ENOUGH = 30
"""Words from which what a reply shares with other answers says whose it is."""
SHORT = 80
"""Words up to which a reply that begins by declining does nothing else."""

_ASKS = ("?", "\uff1f", "\u061f", "\u037e", "\u055e")
_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W_]+")
_LABEL = re.compile(r"(?a:\b(?:Response|RESPONSE|Answer) [A-Z]\b)")
_LINE = r"^[^\w\n]*(?:\d{1,2}[.)][^\w\n]*)?"
_RANKS = re.compile(rf"{_LINE}(?:(?i:final ranking)\b|{_LABEL.pattern})", re.MULTILINE)
_DECLINES = re.compile(
    r"\W*(?:(?:(?:I['\u2019]m |I am |je suis )?(?:sorry|unfortunately|as an AI|I apologi[sz]e"
    r"|es tut mir leid|leider|désolée?)\b[^.!?]{0,60}?)?\b"
    r"(?:I(?: can['\u2019]t| can ?not| won['\u2019]t| will not|(?: a|['\u2019])m (?:unable|not able) to)"
    r" (?:assist|help|comply|fulfil|provide|answer|discuss|continue)"
    r"|(?:ich kann|kann ich)\b[^.!?]{0,60}?\bnicht\b[^.!?]{0,20}?(?:helfen|antworten)"
    r"|je ne (?:peux|puis) pas\b[^.!?]{0,20}?\b(?:aider|répondre|fournir)))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CorrectionInputs:
    """What a member read when it corrected its answer; `original` is that answer."""

    question: str
    original: str
    prompt: str
    reviews: Sequence[str]
    others: Sequence[str]


def fault(reply: str, given: CorrectionInputs) -> Cause | None:
    words, own, asked = _words(reply), _words(given.original), _words(given.question)
    if words == own:
        return None
    prompt = _words(given.prompt)
    only_asks = words == asked or (reply.rstrip().endswith(_ASKS) and _share(words, [asked]) == 1)
    if only_asks or _share(words, [prompt]) >= TAKEN:
        return "echoed_prompt"
    # An author doesn't know the labels, unless the question has some.
    earlier = f"{given.question}\n{given.original}"
    if not (_LABEL.search(earlier) or _RANKS.search(earlier)) and (
        _RANKS.search(reply) or len(_LABEL.findall(reply)) > 1
    ):
        return "sent_ranking"
    if _DECLINES.match(reply) and len(words) <= SHORT and not _DECLINES.match(given.original):
        return "declined"
    if len(words) >= ENOUGH:
        sources: dict[Cause, Iterable[Sequence[str]]] = {
            "echoed_prompt": [prompt, asked],
            "echoed_reviews": map(_words, given.reviews),
            "echoed_answer": map(_words, given.others),
        }
        shares: dict[Cause, float] = {each: _share(words, texts, own) for each, texts in sources.items()}
        cause = max(shares, key=shares.__getitem__)
        if shares[cause] >= TAKEN:
            return cause
    known = (given.question, given.original)
    spoken, *ours = map(language, (reply, *known))
    is_other = bool(spoken and ours[0]) and spoken not in ours
    is_other |= script(reply) not in map(script, known)
    return "changed_language" if is_other and len(words) >= FEWEST else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _share(words: Sequence[str], texts: Iterable[Sequence[str]], own: Sequence[str] = ()) -> float:
    """Return the share of runs of words that one of the texts has, but `own` hasn't."""
    runs = _runs(words)
    shared = {run for text in texts for run in {*runs}.intersection(_runs(text))}.difference(_runs(own))
    return sum(run in shared for run in runs) / max(1, len(runs))


def _runs(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [*zip(*(words[at:] for at in range(RUN)), strict=False)]


# Built once: an annotation is evaluated whenever its function is defined, and these are inner ones.
ReadReview = Stage2Result | AskAgain[Stage2Result]
ReadCorrection = Stage2_5Result | Failure | AskAgain[Stage2_5Result | Failure]

LABELS_TOKENS = 1_000
"""Room for a ranking alone, and for a model that thinks before it writes one."""


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """The answers after all rounds, and what the chairman works from.

    `first` is the round in the document's stage 2, `last` the last one with a counted vote.
    `corrections` lead from the first answers to the last; `None` if there was no round.
    """

    first: Round
    last: Round
    corrections: list[Stage2_5Result] | None
    iteration: results.IterationState | None

    @classmethod
    def none(cls, labels: dict[str, str] | None = None) -> "ReviewResult":
        none = Round(labels or {}, [], [])
        return cls(none, none, None, None)


async def review_and_correct(session: Session, answers: list[Stage1Result]) -> ReviewResult:
    """Run rounds of stages 2 and 2.5 until a `TerminationReason` applies."""
    profile = session.brief.profile
    state = results.IterationState(max_rounds=profile.max_rounds)
    current: Sequence[results.MemberAnswer] = answers
    rounds: list[Round] = []
    while not state.terminated:
        if session.skips("stage2", state.current_round + 1):
            state.terminate(results.TerminationReason.USER_STOPPED)
            break
        data = start_new_round(state)
        held = await _Table(session, current, data).run_round()
        if not held.reviews and not data.refinements:
            state.terminate(
                results.TerminationReason.USER_STOPPED
                if session.was_stopped
                else results.TerminationReason.ERROR_OCCURRED
            )
        number = data.round_number
        complete_round(state, data, session.tokens(f"stage2.{number}", f"stage2_5.{number}"))
        rounds.append(held)
        current = held.corrections
    is_kept = profile.max_rounds > 1 or profile.critique_mode == "extracted"
    iteration = state if is_kept else None
    if not rounds:
        nothing = ReviewResult.none(label_answers([each.model for each in answers], session.brief.seed))
        return replace(nothing, iteration=iteration)
    ranked = [each for each in rounds if each.ranking and each.ranking.ballots]
    steps = [*zip(*(each.corrections for each in rounds), strict=True)]
    size = _size(rounds[-1].corrections) if len(rounds) > 1 else 0
    return ReviewResult(
        first=rounds[0],
        last=ranked[-1] if ranked else rounds[-1],
        corrections=await offload(size, lambda: [*map(conversation.overall, steps)]),
        iteration=iteration,
    )


def _size(corrections: list[Stage2_5Result]) -> int:
    return sum(len(each.original_response) + len(each.corrected_response) for each in corrections)


@dataclass(frozen=True, slots=True)
class _Reviewer:
    """A member that reviews answers, by their labels, in the order in which it reads them."""

    prompts: Prompts
    member: Member
    labelled: Sequence[tuple[str, str]]

    @property
    def order(self) -> list[str]:
        return [label for label, _ in self.labelled]

    @property
    def schema(self) -> JsonObject | None:
        if not self.member.structured:
            return None
        return ballots.ballot_schema(
            self.order, self._criteria, is_demonstration=self.prompts.brief.profile.demonstration
        )

    def prompt(self) -> tuple[ChatMessage, ...]:
        return self.prompts.review(self.member, self.labelled)

    def plain_prompt(self) -> tuple[ChatMessage, ...]:
        unstructured = self.member.model_copy(update={"structured": False})
        return self.prompts.review(unstructured, self.labelled)

    async def read(self, reply: Reply) -> ReadReview:
        """Read a review, or ask for its ranking alone where that can't be read."""
        order, profile = self.order, self.prompts.brief.profile
        # The built-in model must criticize, and copies what it reads when it has nothing to say.
        copied = self._texts if profile.demonstration else ()
        reading = partial(
            ballots.read_ballot,
            reply.text,
            order,
            self._criteria,
            answers=dict(self.labelled),
            question=self.prompts.brief.question,
            copied=copied,
        )
        ballot = await offload(self._size(reply), reading)
        result = Stage2Result(
            model=self.member.name,
            ranking=ballot.text,
            parsed_ranking=[*ballot.ranking],
            answered_by=reply.answered_by,
            order=order,
            scores={label: dict(scores) for label, scores in ballot.scores.items()},
            points=None if ballot.points is None else [*ballot.points],
            cleared=[*ballot.cleared],
            truncated=reply.truncated,
        )
        if result.parsed_ranking or len(order) < 2:
            return result
        words = labels_only(order)
        again = partial(self._read_labels, result)
        return AskAgain(words, result, ballots.labels_schema(order), LABELS_TOKENS, again)

    async def _read_labels(self, first: Stage2Result, reply: Reply) -> Stage2Result:
        read = partial(ballots.read_labels, reply.text, self.order, answers=self._texts)
        ranking = await offload(self._size(reply), read)
        text = ballots.with_ranking(first.ranking, ranking) if ranking else first.ranking
        return first.model_copy(update={"ranking": text, "parsed_ranking": ranking})

    def _size(self, reply: Reply) -> int:
        beside = self._texts if "{" in reply.text else ()  # only an object is looked for in them
        return len(reply.text) + sum(map(len, beside))

    @property
    def _texts(self) -> list[str]:
        return [self.prompts.brief.question, *(text for each in self.labelled for text in each)]

    @property
    def _criteria(self) -> Sequence[str]:
        return self.prompts.brief.profile.criteria.names if self.prompts.brief.profile.criteria else ()


@dataclass(frozen=True, slots=True)
class _Author:
    """A member that answers the objections to its answer, and corrects it if one holds.

    `critiques` is what the document has of the reviews; the prompt has `reviews` and `objections`.
    """

    session: Session
    member: Member
    answer: results.MemberAnswer
    label: str
    reviews: Sequence[Stage2Result]
    unranked: Callable[[str], str]
    objections: Sequence[replies.PeerObjection]
    critiques: str
    given: CorrectionInputs
    round: int

    def request(self) -> Request:
        profile = self.session.brief.profile
        form = consultation_calls.schema(profile, critics=[review.model for review in self.reviews])
        is_json = form is not None or bool(self.member.structured)
        return Request(
            prompt=partial(self.prompt, is_json=is_json),
            schema=replies.reply_schema(form) if is_json else None,
            plain=partial(self.prompt, is_json=form is not None),
        )

    def prompt(self, *, is_json: bool) -> tuple[ChatMessage, ...]:
        """Hand over the reviews without their ranks, shortened to their room, and the objections."""
        room = self.session.brief.profile.critique_tokens
        texts = [self.unranked(review.ranking) for review in self.reviews]
        critics = [review.model for review in self.reviews]
        return self.session.prompts.correction(
            self.member,
            original=spoken_text(self.answer.text, self.answer.consultation),
            label=self.label,
            critiques=[*zip(critics, shorten(texts, room), strict=True)],
            objections=shorten([*replies.listed(self.objections)], room),
            is_json=is_json,
        )

    async def read(self, reply: Reply) -> ReadCorrection:
        """Read a reply as a correction, or ask once more for one."""
        mark, ours, number = self.session.brief.reply_mark, self.given.prompt, len(self.objections)
        size = len(self.answer.text) + len(reply.text)
        said = await offload(size, replies.read_replies, reply.text, mark, number, ours)
        if said is None:
            return self._again("unanswered")
        replied = replies.named(self.member.name, self.objections, said)
        if said.answer is None or not any(each.holds for each in replied):
            return conversation.kept(self.answer, self.critiques, replied, after=self.round)
        below = reply.model_copy(update={"text": said.answer})
        below = await consultation_calls.read(self.session, self.member, below, after=self.round)
        if cause := await offload(size, fault, below.text, self.given):
            return self._again(cause)
        result = await offload(size, conversation.corrected, self.answer, self.critiques, below, replied)
        if result.unstructured is not None:
            return AskAgain(self.session.prompts.no_correction(result.unstructured), result)
        return result

    def _again(self, cause: Cause) -> AskAgain[Stage2_5Result | Failure]:
        return AskAgain(self.session.prompts.no_correction(FAULTS[cause]), Failure(cause=cause))


class _Table:
    """One round of the members who gave an answer."""

    def __init__(
        self, session: Session, answers: Sequence[results.MemberAnswer], data: results.IterationRound
    ) -> None:
        self._session = session
        self._answers = {answer.model: answer for answer in answers}
        self._data = data
        brief, number = session.brief, data.round_number
        self._names = [*self._answers]
        self._members = {member.name: member for member in brief.profile.members}
        self._labels = label_answers(self._names, brief.seed, number)
        self._label_of = {name: label for label, name in self._labels.items()}
        self._orders = reading_orders(self._names, brief.seed, number)
        self._by_points = brief.profile.critique_mode == "extracted"
        if self._by_points:
            data.critiques = {label: [] for label in self._labels}
        self._reviewing: dict[str, asyncio.Task[Stage2Result | Failure]] = {}
        self._unranked = cache(without_ranking)  # each review goes to several authors

    async def run_round(self) -> Round:
        session, names, number = self._session, self._names, self._data.round_number
        session.emit(StageStarted("stage2", tuple(names), number))
        with (
            session.open("stage2", number) as review_stage,
            session.open("stage2_5", number) as correction_stage,
        ):
            async with TaskGroup() as group:
                for name in names:
                    self._reviewing[name] = group.create_task(self._review(name, review_stage))
                correcting = [group.create_task(self._correct(name, correction_stage)) for name in names]
                reviews = [
                    outcome
                    for name in names
                    if isinstance(outcome := await self._reviewing[name], Stage2Result)
                ]
                held = self._ranked(reviews)
                session.emit(
                    StageCompleted(
                        "stage2",
                        tuple(reviews),
                        number,
                        label_to_model=held.labels,
                        aggregate_ranking=held.ranking,
                        scores=held.scores,
                    )
                )
                session.emit(StageStarted("stage2_5", tuple(names), number))
        held.corrections.extend(task.result() for task in correcting)
        session.emit(StageCompleted("stage2_5", tuple(held.corrections), number))
        await offload(_size(held.corrections), self._note, held)
        return held

    def _ranked(self, reviews: list[Stage2Result]) -> Round:
        criteria = self._session.brief.profile.criteria
        given = {review.model: review.scores for review in reviews}
        return Round(
            self._labels,
            reviews,
            [],
            aggregate({review.model: review.parsed_ranking for review in reviews}, self._labels),
            score(given, self._labels, criteria) if criteria else None,
        )

    def _note(self, held: Round) -> None:
        data = self._data
        data.label_to_model = held.labels
        conversation.record(data, held.corrections)
        if data.round_number > 1:  # those of round 1 are the message's own
            data.stage2 = held.reviews
            data.aggregate_ranking = held.ranking
            data.scores = held.scores

    async def _review(self, name: str, stage: StageCancellation) -> Stage2Result | Failure:
        read = [self._answers[author] for author in self._orders[name]]
        labelled = [
            (self._label_of[answer.model], for_reviewers(answer.text, answer.consultation))
            for answer in read
        ]
        reviewer = _Reviewer(self._session.prompts, self._members[name], labelled)
        request = Request(prompt=reviewer.prompt, schema=reviewer.schema, plain=reviewer.plain_prompt)
        return await self._session.ask(stage, reviewer.member, request, reviewer.read)

    async def _correct(self, name: str, stage: StageCancellation) -> Stage2_5Result:
        session, label, answer = self._session, self._label_of[name], self._answers[name]
        peers = [await self._reviewing[peer] for peer in self._names if peer != name]
        reviews = [peer for peer in peers if isinstance(peer, Stage2Result)]
        objections = replies.objections_about(label, reviews)
        critiques = "" if self._by_points else conversation.peer_critiques(name, reviews)
        if not session.brief.profile.corrects:
            return conversation.maintained(answer, critiques)
        if self._by_points:
            size = sum(len(review.ranking) for review in reviews)
            found = await offload(size, extract_critiques_from_rankings, reviews, {label: name})
            self._data.critiques |= found
            if not (points := found[label]):
                return conversation.maintained(answer)
            objections = replies.handed_over(points, objections)
            critiques = results.format_critiques_for_refinement(points)
        if not session.prompts.corrects:
            if reviews and not objections and all(review.points is not None for review in reviews):
                return conversation.maintained(answer, critiques)
            return conversation.corrected(answer, critiques, Failure(cause="too_small", attempts=0))
        author = _Author(
            session,
            self._members[name],
            answer,
            label,
            reviews=() if self._by_points else reviews,
            unranked=self._unranked,
            objections=objections,
            critiques=critiques,
            given=CorrectionInputs(
                question=session.brief.question,
                original=answer.text,
                prompt=session.prompts.instructions(label),
                reviews=[review.ranking for review in reviews],
                others=[self._answers[peer].text for peer in self._names if peer != name],
            ),
            round=self._data.round_number,
        )
        result = await session.ask(stage, author.member, author.request(), author.read)
        return (
            conversation.corrected(answer, critiques, result) if isinstance(result, Failure) else result
        )

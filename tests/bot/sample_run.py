"""A scripted run that tests and demonstrations share: one member fails, one falls back.

Four members sit; grok-4 gives no answer, gemini's correction fails, gpt-5 corrects itself and
claude keeps its answer. Times are seconds since the run began, all events carry plain data.
"""

from bot.view.run import RunView, fold
from council.brief import Brief
from council.document.conversation import (
    AssistantMessage,
    Conversation,
    FailedCall,
    RunUsage,
    Source,
    UserMessage,
    peer_critiques,
)
from council.document.results import (
    AggregateRanking,
    RankedAnswer,
    ReviewPoint,
    Stage1Result,
    Stage2_5Result,
    Stage2Result,
    Stage3Result,
)
from council.errors import Failure
from council.events import (
    AnswerStreamed,
    CallSpent,
    Event,
    MemberAnswered,
    MemberFailed,
    MemberRetried,
    MemberStarted,
    RunCompleted,
    StageCompleted,
    StageStarted,
    TitleCompleted,
)
from council.profile import Member, Persona, Profile
from council.usage import Usage, total
from storage.journal.rows import RunRow

GPT = "openai/gpt-5"
CLAUDE = "anthropic/claude-sonnet-4.5"
GEMINI = "google/gemini-2.5-pro"
GROK = "x-ai/grok-4"
CHAIRMAN = "anthropic/claude-opus-4.1"
RUN_ID = "7b1f0c52-6c1e-4c52-9d0a-0d2a4c1f9e11"
CONVERSATION_ID = "550e8400-e29b-41d4-a716-446655440000"
QUESTION = "Should we move our nightly batch jobs from cron to Temporal?"
TITLE = "Cron or Temporal for nightly jobs"

PROFILE = Profile(
    members=(
        Member(model=GPT),
        Member(model=CLAUDE),
        Member(model=GEMINI, persona=Persona(name="The Pragmatist", prompt="Ask what it costs to run.")),
        Member(model=GROK),
    ),
    chairman=Member(model=CHAIRMAN),
)

ANSWERS = {
    GPT: Stage1Result(
        model=GPT, response="Move them. Temporal retries each step and shows its history."
    ),
    CLAUDE: Stage1Result(
        model=CLAUDE,
        response=(
            "Not all of them. Move the jobs that have **several steps** and fail half-way; "
            "leave the rest on cron:\n\n- no new cluster to run\n- nothing to rewrite"
        ),
    ),
    GEMINI: Stage1Result(
        model=GEMINI,
        response="Stay with cron and add a lock and an alert:\n\n```sh\nflock -n /tmp/nightly.lock ./nightly\n```",
        persona="The Pragmatist",
    ),
}
LABELS = {"Response A": CLAUDE, "Response B": GEMINI, "Response C": GPT}
_REVIEWS = {
    GPT: Stage2Result(
        model=GPT,
        ranking=(
            "Response A weighs the cost. Response B solves overlap, not recovery.\n\n"
            "FINAL RANKING:\n1. Response A\n2. Response B"
        ),
        parsed_ranking=["Response A", "Response B"],
        order=["Response B", "Response A"],
    ),
    CLAUDE: Stage2Result(
        model=CLAUDE,
        ranking=(
            "Response B is cheap and honest. Response C forgets who runs the cluster.\n\n"
            "FINAL RANKING:\n1. Response B\n2. Response C"
        ),
        parsed_ranking=["Response B", "Response C"],
        order=["Response C", "Response B"],
    ),
    GEMINI: Stage2Result(
        model=GEMINI,
        ranking=(
            "Response A is the most useful. Response C oversells.\n\n"
            "FINAL RANKING:\n1. Response A\n2. Response C"
        ),
        parsed_ranking=["Response A", "Response C"],
        order=["Response A", "Response C"],
    ),
}
_OBJECTIONS = {
    GPT: ("Response B", "Response B solves overlap, not recovery."),
    CLAUDE: ("Response C", "Response C forgets who runs the cluster."),
    GEMINI: ("Response C", "Response C oversells."),
}
REVIEWS = {
    name: _REVIEWS[name].model_copy(
        update={"points": [ReviewPoint(label=label, kind="objection", text=text, source="section")]}
    )
    for name, (label, text) in _OBJECTIONS.items()
}
RANKING = AggregateRanking(
    places=[
        RankedAnswer(label="Response A", model=CLAUDE, mean_position=1.0, votes=2, wins=2),
        RankedAnswer(label="Response B", model=GEMINI, mean_position=1.5, votes=2, wins=1),
        RankedAnswer(label="Response C", model=GPT, mean_position=2.0, votes=2, wins=0),
    ],
    agreement=None,
    ballots=3,
)
BUSY = Failure(cause="rate_limited", detail="Rate limit reached for grok-4.", status=429, attempts=3)
LATE = Failure(cause="deadline")


def _correction(
    member: str, text: str, summary: str | None = None, fallback: Failure | None = None
) -> Stage2_5Result:
    original = ANSWERS[member].response
    return Stage2_5Result(
        model=member,
        original_response=original,
        peer_critiques=peer_critiques(member, [*REVIEWS.values()]),
        corrected_response=text,
        changed=text != original,
        change_summary=summary,
        fallback=fallback,
    )


CORRECTIONS = {
    GPT: _correction(
        GPT,
        "Move the jobs that must recover half-way.\n\n1. Start with one job.\n"
        "2. Let a managed service run the cluster.",
        "Added content (+3 lines)",
    ),
    CLAUDE: _correction(CLAUDE, ANSWERS[CLAUDE].response),
    GEMINI: _correction(GEMINI, ANSWERS[GEMINI].response, fallback=LATE),
}
FINAL = Stage3Result(
    model=CHAIRMAN,
    response=(
        "Move **only** the jobs that have several steps and must recover half-way; keep the rest on cron.\n\n"
        "1. Give every cron job a lock and an alert this week.\n"
        "2. Move one multi-step job to a managed Temporal, and compare after a month.\n\n"
        "The council did not agree on whether Temporal is worth running yourselves."
    ),
)

_CALL = Usage(prompt_tokens=400, completion_tokens=150, cost=0.0021)
_TOLD: tuple[tuple[float, Event], ...] = (
    (0.0, StageStarted("stage1", (GPT, CLAUDE, GEMINI, GROK))),
    (0.0, MemberStarted("stage1", GPT)),
    (0.0, MemberStarted("stage1", CLAUDE)),
    (0.0, MemberStarted("stage1", GEMINI)),
    (0.0, MemberStarted("stage1", GROK)),
    (2.0, MemberRetried("stage1", GROK, BUSY, 2.0)),
    (3.1, MemberAnswered("stage1", GPT, ANSWERS[GPT], 3_100, _CALL)),
    (5.2, MemberAnswered("stage1", CLAUDE, ANSWERS[CLAUDE], 5_200, _CALL)),
    (6.4, MemberAnswered("stage1", GEMINI, ANSWERS[GEMINI], 6_400, _CALL)),
    (9.0, MemberFailed("stage1", GROK, BUSY)),
    (9.0, StageCompleted("stage1", tuple(ANSWERS.values()))),
    (9.0, StageStarted("stage2", (GPT, CLAUDE, GEMINI))),
    (9.0, MemberStarted("stage2", GPT)),
    (9.0, MemberStarted("stage2", CLAUDE)),
    (9.0, MemberStarted("stage2", GEMINI)),
    (11.0, MemberAnswered("stage2", GPT, REVIEWS[GPT], 2_000, _CALL)),
    (12.5, MemberAnswered("stage2", CLAUDE, REVIEWS[CLAUDE], 3_500, _CALL)),
    # Gemini's correction needs only the reviews of the two others: it begins before the stage does.
    (12.5, MemberStarted("stage2_5", GEMINI)),
    (14.0, MemberAnswered("stage2", GEMINI, REVIEWS[GEMINI], 5_000, _CALL)),
    (
        14.0,
        StageCompleted(
            "stage2", tuple(REVIEWS.values()), label_to_model=LABELS, aggregate_ranking=RANKING
        ),
    ),
    (14.0, StageStarted("stage2_5", (GPT, CLAUDE, GEMINI))),
    (14.0, MemberStarted("stage2_5", GPT)),
    (14.0, MemberStarted("stage2_5", CLAUDE)),
    (18.0, MemberAnswered("stage2_5", CLAUDE, CORRECTIONS[CLAUDE], 4_000, _CALL)),
    (20.0, MemberAnswered("stage2_5", GPT, CORRECTIONS[GPT], 6_000, _CALL)),
    (32.5, MemberFailed("stage2_5", GEMINI, LATE)),
    (32.5, StageCompleted("stage2_5", tuple(CORRECTIONS.values()))),
    (32.5, StageStarted("stage3", (CHAIRMAN,))),
    (32.5, MemberStarted("stage3", CHAIRMAN)),
    *(
        (33.0 + number, AnswerStreamed(CHAIRMAN, part))
        for number, part in enumerate(FINAL.response.splitlines(keepends=True))
    ),
    (44.0, MemberAnswered("stage3", CHAIRMAN, FINAL, 11_500, _CALL)),
    (44.0, StageCompleted("stage3", (FINAL,))),
    (44.2, TitleCompleted(TITLE)),
)
TIMED_EVENTS: tuple[tuple[float, Event], ...] = tuple(
    (time, each)
    for time, event in _TOLD
    for each in (
        (CallSpent(f"{event.stage}.1:{event.member}", event.usage), event)
        if isinstance(event, MemberAnswered)
        else (event,)
    )
)
ASSISTANT = AssistantMessage(
    role="assistant",
    stage1=[*ANSWERS.values()],
    stage2=[*REVIEWS.values()],
    stage2_5=[*CORRECTIONS.values()],
    stage3=FINAL,
    label_to_model=LABELS,
    aggregate_ranking=RANKING,
    usage=RunUsage(
        run=total(event.usage for _, event in TIMED_EVENTS if isinstance(event, CallSpent)),
        stages={},
        calls={},
    ),
    settings=PROFILE.model_dump(mode="json", exclude_defaults=True),
    failures=[
        FailedCall(stage="stage1", member=GROK, failure=BUSY),
        FailedCall(stage="stage2_5", member=GEMINI, failure=LATE),
    ],
    started_at="2026-01-20T10:30:00.000Z",
    finished_at="2026-01-20T10:30:44.200Z",
)
COMPLETED = RunCompleted(RUN_ID, CONVERSATION_ID, ASSISTANT)
CONVERSATION = Conversation(
    id=CONVERSATION_ID,
    created_at="2026-01-20T10:30:00.000Z",
    title=TITLE,
    messages=[UserMessage(role="user", content=QUESTION), ASSISTANT],
    schema_version=1,
)


def events(until: float = 100.0) -> list[tuple[float, Event]]:
    """Return the run's events with their times, up to `until` seconds after its begin."""
    whole = (*TIMED_EVENTS, (44.3, COMPLETED))
    return [(time, event) for time, event in whole if time <= until]


def seen(until: float = 100.0, *, profile: Profile = PROFILE) -> RunView:
    """Return the run as its observers see it `until` seconds after its begin."""
    return folded(RunView(QUESTION, profile, asker="Ada", started=0.0), events(until))


def folded(view: RunView, timed: list[tuple[float, Event]]) -> RunView:
    for time, event in timed:
        view = fold(view, event, time)
    return view


def accepted(origin: Source) -> RunRow:
    """Return the run as the journal has it before its first call."""
    return RunRow(
        id=RUN_ID,
        entry_key=f"{origin.platform}:1",
        conversation_id=CONVERSATION_ID,
        origin=origin,
        brief=Brief(question=QUESTION, profile=PROFILE, seed=7, boundary="b0undary", asker="Ada"),
        created_at="2026-01-20T10:30:00.000Z",
    )

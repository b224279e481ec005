"""Documents in the shapes that other llm-council programs write, in our own words.

Each shape was looked up in the program that writes it; `source` is its repository and file. What a document
has in common with the original's is left to `document` and `answered`.
"""

from dataclasses import dataclass, field

import orjson

from council.text.json_objects import JsonObject
from tests.storage.examples import new_id

ONE, TWO, THREE = "lab/one", "lab/two", "lab/three"
QUESTION = "At what temperature does water boil?"
FINAL = "Water boils at 100 °C at sea level."
ANSWERS: dict[str, str] = {ONE: "At 100 °C.", TWO: "At 99 °C."}
BALLOT = "A is right, B is not.\n\nFINAL RANKING:\n1. Response A\n2. Response B"
RANKED = ["Response A", "Response B"]
LABELS = {"Response A": ONE, "Response B": TWO}
STAGE1: list[JsonObject] = [{"model": name, "response": text} for name, text in ANSWERS.items()]
STAGE2: list[JsonObject] = [
    {"model": name, "ranking": BALLOT, "parsed_ranking": RANKED} for name in ANSWERS
]
STAGE3: JsonObject = {"model": ONE, "response": FINAL}
ASKED: JsonObject = {"role": "user", "content": QUESTION}
GONE = "…"
"""Marks a field that a program leaves out."""

ORIGINAL = "karpathy/llm-council backend/storage.py"
PLUS = "jacob-bd/llm-council-plus backend/storage.py"
PLUS_COUNCIL = "jacob-bd/llm-council-plus backend/council.py"
DEBATES = "cameronsjo/llm-council backend/deliberation/deliberation.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A document as a program writes it, and what is read in it."""

    name: str
    source: str
    content: bytes
    title: str = "Boiling point"
    final: str | None = FINAL
    members: tuple[str, ...] = (ONE, TWO)
    labels: dict[str, str] = field(default_factory=lambda: dict(LABELS))
    failed: tuple[tuple[str, str, str], ...] = ()
    """Stage, member and cause of each failed call."""
    corrected: tuple[str, ...] = ()
    created: str = "2025-11-30T09:15:00.123456"


def answered(**changes: object) -> JsonObject:
    """Return the original's answer with changes."""
    return _changed({"role": "assistant", "stage1": STAGE1, "stage2": STAGE2, "stage3": STAGE3}, changes)


def document(*messages: object, **changes: object) -> JsonObject:
    """Return the original's document with changes."""
    whole: JsonObject = {
        "id": new_id(),
        "created_at": "2025-11-30T09:15:00.123456",
        "title": "Boiling point",
        "messages": [*messages] or [ASKED, answered()],
    }
    return _changed(whole, changes)


def written(one: JsonObject) -> bytes:
    """Return a document as Python's `json.dump(…, indent=2)` writes it: no line break at the end."""
    return orjson.dumps(one, option=orjson.OPT_INDENT_2)


def _changed(one: JsonObject, changes: JsonObject) -> JsonObject:
    return {name: value for name, value in {**one, **changes}.items() if value != GONE}


def _shape(name: str, source: str, *messages: JsonObject, **expected: object) -> Shape:
    told = {each: expected.pop(each) for each in [*expected] if each in Shape.__slots__}
    content = told.pop("content", None) or written(document(*messages, **expected))
    return Shape(name=name, source=source, content=content, **told)  # pyright: ignore[reportArgumentType]


def _of(name: str, source: str, told: JsonObject | None = None, **message: object) -> Shape:
    """Return the shape of a document whose answer has these changes."""
    return _shape(name, source, ASKED, answered(**message), **(told or {}))


_FAILED: JsonObject = {"model": THREE, "response": None, "error": True, "error_message": "429 Too Many"}
_SILENT: JsonObject = {"model": TWO, "ranking": None, "parsed_ranking": [], "error": "timeout"}
_NONE: JsonObject = {"members": (), "labels": {}, "final": None}
_UPPER = document()
_UPPER["id"] = str(_UPPER["id"]).upper()
_BARE = document()
_BARE["id"] = str(_BARE["id"]).replace("-", "")
_CRLF = written(document()).replace(b"\n", b"\r\n")

SHAPES: tuple[Shape, ...] = (
    _of("the original", ORIGINAL),
    _of(
        "failed answer",
        PLUS_COUNCIL,
        {"failed": (("stage1", THREE, "rate_limited"),)},
        stage1=[*STAGE1, _FAILED],
    ),
    _of(
        "failed answer first",
        PLUS_COUNCIL,
        {"failed": (("stage1", THREE, "rate_limited"),)},
        stage1=[_FAILED, *STAGE1],
    ),
    _of(
        "failed review",
        PLUS_COUNCIL,
        {"failed": (("stage2", TWO, "deadline"),)},
        stage2=[STAGE2[0], _SILENT],
    ),
    _of(
        "error: null beside each answer",
        PLUS_COUNCIL,
        stage1=[{**each, "error": None} for each in STAGE1],
    ),
    _of(
        "answers only",
        PLUS,
        {"final": None, "labels": {}},
        stage2=GONE,
        stage3=GONE,
        metadata={"execution_mode": "chat_only"},
    ),
    _of(
        "answers and reviews only",
        PLUS,
        {"final": None},
        stage3=GONE,
        metadata={"label_to_model": LABELS},
    ),
    _shape(
        "failed turn",
        PLUS,
        ASKED,
        {
            "role": "assistant",
            "content": None,
            "error": "Search failed",
            "stage1": [],
            "stage2": None,
            "stage3": None,
        },
        **_NONE,
        failed=(("stage3", "chairman", "unavailable"),),
    ),
    _of(
        "map in metadata",
        PLUS,
        {"labels": {"Response A": TWO, "Response B": ONE}},
        metadata={"label_to_model": {"Response A": TWO, "Response B": ONE}},
    ),
    _shape(
        "debate of advisors",
        PLUS,
        ASKED,
        {
            "role": "assistant",
            "mode": "advisors",
            "rounds": [
                {"round_number": 1, "responses": STAGE1},
                {
                    "round_number": 2,
                    "responses": [{**STAGE1[0]}, {**STAGE1[1], "response": "Yes, 100 °C."}],
                },
            ],
            "verdict": {"summary": FINAL, "consensus": "strong"},
        },
        labels={},
        corrected=("At 100 °C.", "Yes, 100 °C."),
        mode="advisors",
    ),
    _shape("index beside the documents: mode", PLUS, mode="council"),
    _shape(
        "models, chairman and user",
        "DmitryBMsk/llm-council-plus backend/storage.py",
        models=[ONE, TWO],
        chairman=ONE,
        username="guest",
        execution_mode=None,
        router_type="openrouter",
        system_prompt=None,
    ),
    _shape(
        "no title",
        "DmitryBMsk/llm-council-plus backend/storage.py",
        title=QUESTION,
        content=written(document(title=GONE)),
    ),
    _shape(
        "title null",
        "DmitryBMsk/llm-council-plus backend/storage.py",
        title=QUESTION,
        content=written(document(title=None)),
    ),
    _shape("id in capitals", "DmitryBMsk/llm-council-plus backend/storage.py", content=written(_UPPER)),
    _shape("id without hyphens", "BR4096/llm-council-pro backend/storage.py", content=written(_BARE)),
    _of("metrics", "cameronsjo/llm-council backend/storage.py", metrics={"total_cost": 0.1}),
    _shape(
        "rounds of answers and rankings",
        DEBATES,
        ASKED,
        {
            "role": "assistant",
            "mode": "council",
            "rounds": [
                {
                    "round_number": 1,
                    "round_type": "responses",
                    "responses": [
                        {"participant": label, "model": name, "content": ANSWERS[name]}
                        for label, name in LABELS.items()
                    ],
                },
                {
                    "round_number": 2,
                    "round_type": "rankings",
                    "responses": [
                        {"participant": "", "model": ONE, "content": BALLOT, "parsed_ranking": RANKED}
                    ],
                    "metadata": {"label_to_model": LABELS},
                },
            ],
            "synthesis": {"model": ONE, "content": FINAL},
            "participant_mapping": LABELS,
        },
    ),
    _shape(
        "arena",
        DEBATES,
        ASKED,
        {
            "role": "assistant",
            "mode": "arena",
            "rounds": [
                {
                    "round_number": n,
                    "round_type": kind,
                    "responses": [
                        {
                            "participant": f"Participant {x}",
                            "model": name,
                            "content": f"{ANSWERS[name]} {kind}",
                        }
                        for x, name in zip("AB", ANSWERS, strict=True)
                    ],
                }
                for n, kind in enumerate(("opening", "rebuttal", "closing"), 1)
            ],
            "synthesis": {"model": ONE, "content": FINAL},
        },
        labels={},
        corrected=("At 100 °C. closing", "At 99 °C. closing"),
    ),
    _shape(
        "time with a space, pins",
        "gtg922r/llm-council backend/storage.py",
        created="2025-11-30 09:15:00.123456+00:00",
        content=written(
            document(created_at="2025-11-30 09:15:00.123456+00:00", is_pinned=False, has_unread=True)
        ),
    ),
    _of(
        "status beside each result",
        "gtg922r/llm-council backend/domain/models.py",
        stage1=[{**each, "status": "success"} for each in STAGE1],
    ),
    _shape(
        "system message",
        "gtg922r/llm-council backend/domain/models.py",
        {"role": "system", "content": "Be brief."},
        ASKED,
        answered(),
    ),
    _shape("owner", "leonj1/llm-council backend/storage.py", user_id="1234567890"),
    _of(
        "revisions as stage 3, final answer as stage 5",
        "BR4096/llm-council-pro backend/storage.py",
        {"corrected": ("At 100 °C, at sea level.", "At 100 °C.")},
        stage3=[
            {"model": ONE, "response": "At 100 °C, at sea level."},
            {"model": TWO, "response": "At 100 °C."},
        ],
        stage4={"score": {}},
        stage5=STAGE3,
    ),
    _shape(
        "failed turn, empty lists",
        "nvg58/llm-council-plus backend/storage.py",
        ASKED,
        {
            "role": "assistant",
            "content": None,
            "error": "Client disconnected",
            "stage1": [],
            "stage2": [],
            "stage3": None,
        },
        **_NONE,
        failed=(("stage3", "chairman", "stopped"),),
    ),
    _of(
        "critiques and revisions",
        "azalio/llm-council backend/storage.py",
        {"corrected": ("At 100 °C.",)},
        stage2a=[{"model": ONE, "critique": "Two is wrong."}],
        stage2b=[{"model": TWO, "revision": "At 100 °C."}],
    ),
    _shape("rolling summary", "azalio/llm-council backend/storage.py", summary="They ask about water."),
    _of(
        "metadata and cost null",
        "jeadland/llm-council backend/storage.py",
        metadata=None,
        cost_summary=None,
    ),
    _of(
        "interrogation",
        "mathetos/llm-council backend/storage.py",
        interrogation={"model": ONE, "steps": []},
        metadata={"run_context": {}},
    ),
    _of(
        "map on the message",
        "BuDozKeN/llm-council backend/storage.py",
        label_to_model=LABELS,
        aggregate_rankings=[{"model": ONE, "average_rank": 1.0}],
    ),
    _of("no final answer: {}", "BuDozKeN/llm-council backend/storage.py", {"final": None}, stage3={}),
    _shape(
        "time with Z, archived",
        "BuDozKeN/llm-council backend/storage.py",
        created="2025-11-30T09:15:00.123456Z",
        content=written(
            document(created_at="2025-11-30T09:15:00.123456Z", archived=False, curator_history=[])
        ),
    ),
    _shape(
        "question in parts",
        "wangjiongw/llm-council backend/storage.py",
        {
            "role": "user",
            "content": [{"type": "text", "text": QUESTION}, {"type": "image_url", "image_url": {}}],
            "files": [{"filename": "kettle.png"}],
        },
        answered(),
    ),
    _of(
        "long texts cut",
        "heffter/llm-council backend/storage.py",
        stage1=[{**each, "truncated": False} for each in STAGE1],
    ),
    _of("metadata {}", "longliveenduro/llm-council backend/storage.py", metadata={}),
    _of(
        "metadata with map",
        "AdamMiso/llm-council backend/storage.py",
        metadata={"label_to_model": LABELS, "aggregate_rankings": []},
    ),
    _shape(
        "framework and origin",
        "ashwathravi/llm-council backend/storage.py",
        user_id="u1",
        framework="standard",
        council_models=[ONE, TWO],
        chairman_model=ONE,
        origin="web",
    ),
    _shape(
        "answer by a speaker alone",
        "faridhamidi/llm-council backend/storage.py",
        ASKED,
        {"role": "assistant", "message_type": "speaker", "response": FINAL},
        members=(),
        labels={},
    ),
    _of(
        "no member answered",
        "karpathy/llm-council backend/council.py",
        {**_NONE, "failed": (("stage3", "chairman", "unavailable"),)},
        stage1=[],
        stage2=[],
        stage3={"model": "error", "response": "All models failed to respond. Please try again."},
    ),
    _of(
        "chairman failed",
        "karpathy/llm-council backend/council.py",
        {"final": None, "failed": (("stage3", ONE, "unavailable"),)},
        stage3={"model": ONE, "response": "Error: Unable to generate final synthesis."},
    ),
    _of(
        "repeated labels in a ballot",
        "karpathy/llm-council backend/council.py",
        stage2=[{**each, "parsed_ranking": [*RANKED, *RANKED]} for each in STAGE2],
    ),
    _of(
        "ballot of letters",
        "a public fork, its API documentation",
        stage2=[{**each, "parsed_ranking": ["A", "B"]} for each in STAGE2],
    ),
    _of(
        "content instead of response",
        "a public fork, its API documentation",
        stage1=[{"role": "councilor", "model": name, "content": text} for name, text in ANSWERS.items()],
        stage3={"role": "chairman", "model": ONE, "content": FINAL},
    ),
    _of(
        "display names and avatars",
        "a public fork with participants, backend/council.py",
        stage1=[{**each, "display_name": "Doc", "avatar_svg": "<svg/>"} for each in STAGE1],
    ),
    _of(
        "maps of each reviewer's own",
        "a public fork that shuffles for each reviewer, backend/council.py",
        stage2=[
            {**STAGE2[0], "label_to_model": LABELS},
            {
                **STAGE2[1],
                "label_to_model": {"Response A": TWO, "Response B": ONE},
                "parsed_ranking": RANKED[::-1],
            },
        ],
    ),
    _of(
        "answers by member",
        "a public fork with objects by member, backend/council.py",
        stage1=ANSWERS,
        stage2={"rankings": STAGE2},
    ),
    _of(
        "two members of one model",
        "a public fork with instances, backend/council.py",
        {"members": (ONE, f"{ONE}#2"), "labels": {"Response A": ONE, "Response B": f"{ONE}#2"}},
        stage1=[{**each, "model": ONE} for each in STAGE1],
        stage2=[{**STAGE2[0]}],
        metadata={"label_to_model": {"Response A": ONE, "Response B": ONE}},
    ),
    _of(
        "fact-checks before the rankings, final answer as stage 4",
        "mmruesch12/llm-council-fact-checker backend/database.py",
        stage2=GONE,
        fact_check=[{"model": ONE, "fact_check": "Both were checked."}],
        stage3=STAGE2,
        stage4=STAGE3,
    ),
    _shape(
        "answer that was interrupted",
        "Aleks-Che/llm-council backend/storage.py",
        {**ASKED, "search_enabled": False},
        {
            **answered(stage1=None, stage2=None, stage3=None, metadata=None, research=None),
            "status": "interrupted",
            "failed_stage": "stage1",
            "error": "The server was restarted.",
        },
        **_NONE,
        failed=(("stage3", "chairman", "unavailable"),),
    ),
    _of(
        "chairman failed, in Russian",
        "Aleks-Che/llm-council backend/storage.py",
        {"final": None, "failed": (("stage3", ONE, "unavailable"),)},
        stage3={"model": ONE, "response": "Ошибка: не удалось сгенерировать итоговый синтез."},
    ),
    _shape("byte order mark", "an editor on Windows", content=b"\xef\xbb\xbf" + written(document())),
    _shape("UTF-16", "PowerShell's >", content=written(document()).decode().encode("utf-16")),
    _shape(
        "UTF-16 without a mark",
        ".NET's Encoding.Unicode.GetBytes",
        content=written(document()).decode().encode("utf-16-le"),
    ),
    _shape("a message that is null", "an editor", content=written(document(ASKED, None, answered()))),
    _shape("CRLF", "git on Windows", content=_CRLF),
    _shape(
        "half an emoji in the title",
        "JavaScript's JSON.stringify of slice()",
        title="Boiling ?",
        content=written(document(title="Boiling @@")).replace(b"@@", rb"\ud83d"),
    ),
    _of(
        "NaN as a mean",
        "Python's json.dump",
        {
            "content": written(document(ASKED, answered(metadata={"mean": "@@"}))).replace(
                b'"@@"', b"NaN"
            )
        },
    ),
    _shape(
        "seconds since 1970",
        "a public fork with time.time()",
        created="2025-11-30T09:15:00.500Z",
        content=written(document(created_at=1764494100.5)),
    ),
    _shape(
        "milliseconds since 1970",
        "a public fork with Date.now()",
        created="2025-11-30T09:15:00.000Z",
        content=written(document(created_at=1764494100000)),
    ),
    _shape(
        "createdAt",
        "forks in JavaScript",
        created="2025-11-30T09:15:00.000Z",
        content=written(document(created_at=GONE, createdAt="2025-11-30T09:15:00.000Z")),
    ),
)

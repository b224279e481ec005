"""`council eval` from outside: what it prints, what it pays for, and when it stops."""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from tests.bot.evaluation.programs import (
    ARMS,
    arms_of,
    evaluated,
    known,
    result,
    stage_of,
    write_questions,
)
from tests.model_server import Exchange, Json, Turn
from tests.test_program import Program

QUICK = ("eval", "q.jsonl", "--pilot", "2")


async def test_a_result_is_json_alone_with_every_field(tmp_path: Path) -> None:
    """Progress goes to standard error; a file of questions ends with 0."""
    write_questions(tmp_path, 12)
    async with evaluated(tmp_path) as (council, _):
        ended = await council(*QUICK, "--json", "--seed", "3")
    found = result(ended)
    assert ended.code == 0
    assert [*found] == [
        "schema", "questions", "seed", "rule", "arms", "flips", "saturated", "judge", "stopped", "says",
    ]  # fmt: skip
    assert (found["questions"], found["seed"], found["stopped"], found["judge"]) == (12, 3, None, None)
    assert found["rule"] == {"baseline": "best", "margin": 0.05}
    assert tuple(arms_of(found)) == ARMS
    for name, arm in arms_of(found).items():
        assert [*arm] == [
            "name", "n", "score", "interval", "against_baseline", "cost", "tokens", "seconds", "invalid",
        ]  # fmt: skip
        assert (arm["n"], arm["invalid"]) == (12, None)
        assert (arm["against_baseline"] is None) == (name == "best")
    best, full = arms_of(found)["best"], arms_of(found)["full"]
    assert best == arms_of(found)["member:openai/gpt-5"] | {"name": "best", "against_baseline": None}
    assert cast("float", full["cost"]) > 5 * cast("float", best["cost"])
    assert set(cast("Json", full["against_baseline"])) == {"difference", "interval", "decision"}
    assert "12 questions, 3 members, 10 arms." in ended.err
    assert "14 of 14" in ended.err


async def test_arms_share_their_calls(tmp_path: Path) -> None:
    """A question costs what its dearest arm does and a chairman for each other one; no answer twice."""
    write_questions(tmp_path, 1)
    async with evaluated(tmp_path) as (council, server):
        ended = await council(
            "eval", "q.jsonl", "--pilot", "0", "--arms", "members,stage1,full,union", "--json"
        )
        asked = Counter(map(stage_of, server.history))
    assert ended.code == 0
    # Without a pilot the council's own ranking chooses the best.
    assert asked == {"answer": 3, "review": 3, "correction": 3, "synthesis": 3}


async def test_the_same_command_pays_for_nothing_twice(tmp_path: Path) -> None:
    """Another arm asks only what it has for itself; another seed is another evaluation."""
    write_questions(tmp_path, 3)
    async with evaluated(tmp_path) as (council, server):
        first = await council(*QUICK, "--arms", "full", "--json")
        paid = len(server.history)
        second = await council(*QUICK, "--arms", "full", "--json")
        again = len(server.history)
        await council(*QUICK, "--arms", "full,union", "--json")
        added = len(server.history)
        await council(*QUICK, "--arms", "full", "--seed", "1")
        other = len(server.history)
    assert result(first) == result(second)
    assert again == paid
    assert added == paid + 3
    assert other == added + paid


async def test_a_reply_without_a_limit_can_pass_the_most_it_may_cost(tmp_path: Path) -> None:
    """Whoever sets a limit for money and none for length reads what that leaves open."""
    write_questions(tmp_path, 1)
    async with evaluated(tmp_path, max_tokens=None) as (council, _):
        ended = await council("eval", "q.jsonl", "--pilot", "0", "--arms", "stage1", "--max-cost", "1")
    assert (
        "Without max_tokens a reply is taken to be 2,000 tokens long: "
        "longer ones can pass $1.00 by the difference."
    ) in ended.err.splitlines()


async def test_a_most_that_is_no_amount_is_refused(tmp_path: Path) -> None:
    """Before anything is read; so is what is to count toward a budget."""
    council = Program(tmp_path)
    for amount in ("inf", "nan", "1_0", "\u0661", "-1", "2000000"):
        for command in (
            ("eval", "q.jsonl", f"--max-cost={amount}"),
            ("budget", "set", "user_day", "slack:T1/U1", "--", amount),
        ):
            ended = await council(*command)
            assert (ended.code, ended.out) == (2, "")
            said = " ".join(ended.err.replace("\u2502", "").split())
            assert "in US dollars from 0 to 1,000,000" in said


async def test_an_evaluation_is_kept_in_a_database_too(tmp_path: Path, postgres: str) -> None:
    """With `DATABASE_URL` it is continued from there, and nothing is in the data folder."""
    write_questions(tmp_path, 2)
    async with evaluated(tmp_path, postgres) as (council, server):
        part = await council(*QUICK, "--arms", "stage1", "--json")
        paid = len(server.history)
        whole = await council(*QUICK, "--arms", "stage1", "--json")
        again = len(server.history)
    assert (part.code, again) == (0, paid)
    assert result(part) == result(whole)
    assert not (tmp_path / "data").exists()


async def test_a_killed_evaluation_continues_without_paying_again(tmp_path: Path) -> None:
    """After kill -9 only what was in flight is asked again, and the result is the same."""
    write_questions(tmp_path, 6)
    (tmp_path / "whole").mkdir()
    write_questions(tmp_path / "whole", 6)
    async with evaluated(tmp_path / "whole") as (council, server):
        whole = await council(*QUICK, "--json")
        needed = len(server.history)
    async with evaluated(tmp_path) as (council, server):
        held = asyncio.Event()

        def answer(exchange: Exchange) -> Turn:
            if len(server.history) == 60:
                server.gate = asyncio.Event()
                held.set()
            return known(exchange)

        server.always("*", answer)
        process = await council.start(*QUICK, "--json")
        await held.wait()
        in_flight = server.in_flight
        process.send_signal(signal.SIGKILL)
        await process.communicate()
        assert server.gate is not None
        server.gate.set()
        server.gate = None
        ended = await council(*QUICK, "--json")
        asked = len(server.history)
    assert result(ended) == result(whole) | {
        "arms": result(ended)["arms"]  # how long each call took differs
    }
    for name, arm in arms_of(result(ended)).items():
        assert arm | {"seconds": 0} == arms_of(result(whole))[name] | {"seconds": 0}
    assert needed < asked <= needed + in_flight + 12  # what the server had begun meanwhile


async def test_the_most_it_may_cost_is_never_passed(tmp_path: Path) -> None:
    """It stops before the call that might, says so, and continues with more; together, too."""
    write_questions(tmp_path, 8)
    async with evaluated(tmp_path) as (council, server):
        spent: list[float] = []

        def count(exchange: Exchange) -> Turn:
            turn = known(exchange)
            prompt, reply = len(exchange.prompt) / 4, len(str(turn.text)) / 4
            spent.append(prompt / 1e6 + 2 * reply / 1e6)
            return turn

        server.always("*", count)
        stopped = await council(*QUICK, "--max-cost", "0.01", "--json")
        at_first, calls = sum(spent), len(server.history)
        still = await council(*QUICK, "--max-cost", "0.01", "--json")
        more = len(server.history) - calls
        finished = await council(*QUICK, "--max-cost", "1", "--json")
    found = result(stopped)
    assert (stopped.code, found["stopped"]) == (1, "max_cost")
    assert "with a higher --max-cost continues" in stopped.err
    assert 0.005 < at_first <= 0.01
    assert (still.code, more) == (1, 0)
    assert (finished.code, result(finished)["stopped"]) == (0, None)


async def test_an_arm_that_silently_never_runs_is_invalid(tmp_path: Path) -> None:
    """Every review fails: the council still answers, but nothing in it was reviewed."""
    write_questions(tmp_path, 4)
    async with evaluated(tmp_path) as (council, server):
        refused = Turn(status=400, error={"message": "no", "code": 400})
        server.always("*", lambda each: refused if stage_of(each) == "review" else known(each))
        ended = await council(*QUICK, "--json")
    arms = arms_of(result(ended))
    for name in ("full", "full_without_2_5", "pick", "union"):
        assert arms[name]["score"] is arms[name]["interval"] is arms[name]["against_baseline"] is None
        assert arms[name]["n"] == 0
    assert arms["full"]["invalid"] == "4 of 4 questions have no review"
    assert arms["stage1"]["invalid"] is None
    assert "full is invalid: 4 of 4 questions have no review." in str(result(ended)["says"])
    assert ended.code == 0


async def test_a_council_without_a_member_has_a_result(tmp_path: Path) -> None:
    """The member's own arm is invalid; the council's counts whom it missed."""
    write_questions(tmp_path, 4)
    async with evaluated(tmp_path) as (council, server):
        server.always("google/gemini", Turn(status=400, error={"message": "no", "code": 400}))
        ended = await council(*QUICK, "--json")
    arms = arms_of(result(ended))
    assert arms["member:google/gemini"]["invalid"] == "4 of 4 questions have no answer"
    assert (arms["full"]["invalid"], arms["full"]["n"]) == (None, 4)


async def test_a_saturated_question_is_named_and_may_be_left_out(tmp_path: Path) -> None:
    """The best member answers it right each time in the pilot, so it can't tell the arms apart."""
    write_questions(tmp_path, 3)
    async with evaluated(tmp_path) as (council, server):

        def answer(exchange: Exchange) -> Turn:
            easy = exchange.model == "openai/gpt-5" and "door 2?" in exchange.prompt
            return Turn("Answer: 2") if easy and stage_of(exchange) == "answer" else known(exchange)

        server.always("*", answer)
        kept = result(await council("eval", "q.jsonl", "--pilot", "3", "--json"))
        left = result(await council("eval", "q.jsonl", "--pilot", "3", "--drop-saturated", "--json"))
    saturated = cast("list[str]", kept["saturated"])
    assert "q2" in saturated
    assert left["saturated"] == saturated
    assert arms_of(kept)["full"]["n"] == 3
    assert arms_of(left)["full"]["n"] == 3 - len(saturated)


JUDGED: Json = {
    "input": "Why does the queue of door 1 stall? What is the code of door 1?",
    "rubric": ["names the lock", "says when"],
}


def judging(better: str) -> str:
    """Return a judge's reply."""
    return (
        '{"differences": [{"point": "the lock", "checkable": false}], "recommendation": "different", '
        f'"steering": [], "better": "{better}"}}'
    )


async def test_a_judge_that_goes_by_the_place_is_exposed(tmp_path: Path) -> None:
    """Each of its verdicts depends on the order: all are ties, and the bias is told."""
    write_questions(tmp_path, 0, *({**JUDGED, "id": f"j{number}"} for number in range(4)))
    async with evaluated(tmp_path) as (council, server):
        server.always("judge/one", Turn(judging("Response A")))
        server.always("chair/man", Turn("The lock is held by full."))
        words = ("--pilot", "0", "--judge", "judge/one", "--arms", "best,full", "--json")
        ended = await council("eval", "q.jsonl", *words)
    found = result(ended)
    assert found["judge"] == {"model": "judge/one", "order_bias": 1.0, "kappa": None}
    assert [arm["score"] for arm in arms_of(found).values()] == [0.5, 0.5]


async def test_a_judge_that_people_contradict_is_not_trusted(tmp_path: Path) -> None:
    """Kappa comes from hand labels; below 0.6 the result says so."""
    write_questions(tmp_path, 0, *({**JUDGED, "id": f"j{number}"} for number in range(4)))
    labels = [
        f'{{"id": "j{number}", "arm": "full", "better": "{better}", "why": "a\u2028b"}}'
        for number, better in enumerate(("baseline", "arm", "baseline", "tie"))
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(labels), encoding="utf-8")
    async with evaluated(tmp_path) as (council, server):

        def longer(exchange: Exchange) -> Turn:
            first, second = exchange.prompt.find("by full"), exchange.prompt.find("I tried")
            return Turn(judging("Response A" if first < second else "Response B"))

        server.always("judge/one", longer)
        server.always("chair/man", Turn("The lock is held by full."))
        words = ("--pilot", "0", "--judge", "judge/one", "--arms", "best,full", "--json")
        ended = await council("eval", "q.jsonl", *words, "--labels", "labels.jsonl")
    judge = cast("Json", result(ended)["judge"])
    assert judge["order_bias"] == 0
    assert cast("float", judge["kappa"]) < 0.6
    assert "Judge not trusted" in str(result(ended)["says"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("eval", "missing.jsonl"), "missing.jsonl can't be read: no such file or directory."),
        (("eval",), "Name a file of questions, or use --from-history."),
        (
            ("eval", "bad.jsonl"),
            "bad.jsonl can't be used:\n  line 1: it has neither a target nor a rubric",
        ),
        (("eval", "q.jsonl", "--arms", "fuller"), "There is no arm fuller; there are members, auto, "),
        (
            ("eval", "q.jsonl", "--arms", "auto"),
            "The arm auto needs a judge: set judge_model in council.toml",
        ),
        (("eval", "q.jsonl", "--profile", "x"), "There is no profile x; there are default."),
        (
            ("eval", "judged.jsonl"),
            "Some questions can't be checked without a judge: set judge_model in",
        ),
        (("eval", "q.jsonl", "--margin", "2"), "Invalid value for '--margin'"),
    ],
)
async def test_what_cannot_be_evaluated_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """Before anything is asked, with exit code 2."""
    write_questions(tmp_path, 2)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "input": "?"}', encoding="utf-8")
    (tmp_path / "judged.jsonl").write_text(
        '{"id": "a", "input": "?", "rubric": ["b"]}', encoding="utf-8"
    )
    async with evaluated(tmp_path) as (council, server):
        ended = await council(*words)
    assert ended.code == 2
    assert said in ended.err
    assert server.history == []


async def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    """It ends with 1 and what it has; the same command continues."""
    write_questions(tmp_path, 8)
    async with evaluated(tmp_path) as (council, server):
        held = asyncio.Event()

        def answer(exchange: Exchange) -> Turn:
            if len(server.history) == 150:
                server.gate = asyncio.Event()
                held.set()
            return known(exchange)

        server.always("*", answer)
        process = await council.start(*QUICK, "--json")
        await held.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert process.returncode == 1
    assert b'"stopped": "interrupted"' in out
    assert b"Stopped; the same command continues." in err

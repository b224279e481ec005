"""`council eval` from outside: what it prints, logs and pays for, and when it stops."""

import asyncio
import signal
import zipfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, cast

import orjson
import pytest

from bot.config.configuration import load
from bot.errors import Refusal
from tests.bot.evaluation.programs import (
    ARMS,
    arms_of,
    evaluated,
    known,
    result,
    stage_of,
    write_questions,
)
from tests.library import open_library
from tests.model_server import Exchange, Json, ModelServer, Turn, corrected
from tests.test_program import Program, at_a_terminal

QUICK = ("eval", "q.jsonl", "--pilot", "2", "--json")
LONG = "The lock was held too long, and nobody was warned before it happened again."


class Here:
    """`council eval` in this process: loading Inspect takes seconds."""

    def __init__(self, folder: Path, server: ModelServer, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.server = server
        self._capsys = capsys
        self.err = self.out = ""

    async def __call__(self, **options: Any) -> bool:
        """Return whether it exits with 0; raises `Refusal` where it exits with 2."""
        from bot.evaluation.command import EvalOptions, evaluate

        own: dict[str, Any] = {"file": self.folder / "q.jsonl", "pilot": 2, "as_json": True}
        async with open_library(self.folder / "data") as library:
            try:
                return await evaluate(load(), library, EvalOptions(**own | options))
            finally:
                self.out, self.err = self._capsys.readouterr()

    @property
    def found(self) -> Json:
        """What was printed as JSON; outside of the program, its log goes to standard output, too."""
        return cast("Json", orjson.loads(self.out[self.out.index('{\n  "schema"') :]))


@pytest.fixture
async def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> AsyncGenerator[Here]:
    """Evaluate with models of known quality and prices."""
    monkeypatch.chdir(tmp_path)
    async with evaluated(tmp_path) as (council, server):
        for name, value in council.environment.items():
            monkeypatch.setenv(name, value)
        yield Here(tmp_path, server, capsys)


async def test_a_result_is_json_alone_and_its_rule_is_logged_first(tmp_path: Path) -> None:
    """Every field of the specification; what it will cost and its progress are on standard error."""
    from inspect_ai.log import read_eval_log  # has zipfile read what it writes

    write_questions(tmp_path, 4)
    rules: list[object] = []
    async with evaluated(tmp_path) as (council, server):

        def answer(exchange: Exchange) -> Turn:
            if len(server.history) == 1:
                [log] = (tmp_path / "logs").glob("*.eval")
                with zipfile.ZipFile(log) as opened:
                    started = orjson.loads(opened.read("_journal/start.json"))
                rules.append(started["eval"]["metadata"]["rule"])
            return known(exchange)

        server.always("*", answer)
        ended = await council(*QUICK, "--seed", "3")
    found = result(ended)
    assert ended.code == 0
    assert [*found] == [
        "schema", "questions", "seed", "rule", "arms", "flips", "saturated", "judge", "stopped", "log", "says",
    ]  # fmt: skip
    assert (found["questions"], found["seed"], found["stopped"], found["judge"]) == (4, 3, None, None)
    assert found["rule"] == {"baseline": "best", "margin": 0.05}
    assert tuple(arms_of(found)) == ARMS
    for name, arm in arms_of(found).items():
        assert [*arm] == [
            "name", "n", "score", "interval", "against_baseline", "cost", "tokens", "seconds", "invalid",
        ]  # fmt: skip
        assert (arm["n"], arm["invalid"]) == (4, None)
        assert (arm["against_baseline"] is None) == (name == "best")
    best, full = arms_of(found)["best"], arms_of(found)["full"]
    assert cast("float", full["cost"]) > 5 * cast("float", best["cost"])
    assert set(cast("Json", full["against_baseline"])) == {"difference", "interval", "decision"}
    flips = cast("Json", found["flips"])
    assert [*flips] == ["wrong_to_right", "right_to_wrong", "unjudged", "members"]
    assert str(found["says"]).startswith("The council was right on ")
    assert "4 questions, 3 members, 6 arms: about $" in ended.err
    assert "4 of 4 questions" in ended.err
    [rule] = rules
    assert rule == {"baseline": "best", "margin": 0.05, "pilot": 2, "seed": 3} | {
        "questions": cast("Json", rule)["questions"]
    }
    log = await asyncio.to_thread(read_eval_log, str(found["log"]))
    assert (log.status, len(log.samples or ())) == ("success", 4)
    assert log.results is not None
    scores = {each.name: each.metrics["accuracy"].value for each in log.results.scores}
    assert scores == {
        name: pytest.approx(arm["score"], abs=1e-6) for name, arm in arms_of(found).items()
    }


async def test_a_manager_reads_one_sentence(here: Here) -> None:
    """And one line for each arm, and how to open the log; a second time, nothing is paid again."""
    write_questions(here.folder, 2)
    assert await here(as_json=False)
    paid, first = len(here.server.history), here.out.splitlines()
    assert first[0].startswith("The council was right on ")
    assert " of 2 questions, openai/gpt-5 alone on " in first[0]
    assert first[0].endswith(" times as much.")
    assert [line.partition(":")[0] for line in first[2:8]] == [*ARMS]
    assert first[-1].startswith("Every answer is in ")
    assert first[-1].endswith(f"inspect view --log-dir {here.folder}/logs")
    assert await here(as_json=False)
    assert (len(here.server.history), here.out.splitlines()[:8]) == (paid, first[:8])
    assert await here(arms="full,auto,quick,member:google/gemini", judge="judge/one")
    assert set(arms_of(here.found)) == {"best", "full", "auto", "quick", "member:google/gemini"}
    added = [stage_of(each) for each in here.server.history[paid:]]
    assert set(added) <= {"judge", "synthesis"}  # another arm pays for what it has for itself
    assert await here(seed=1, arms="stage1")
    assert len(here.server.history) > paid + len(added)  # another seed is another evaluation


async def test_the_most_it_may_cost_is_never_passed(here: Here) -> None:
    """It stops before the call that might, says so, and continues with more; together, too."""
    write_questions(here.folder, 8)
    spent: list[float] = []

    def count(exchange: Exchange) -> Turn:
        turn = known(exchange)
        spent.append(len(exchange.prompt) / 4 / 1e6 + 2 * len(str(turn.text)) / 4 / 1e6)
        return turn

    here.server.always("*", count)
    assert not await here(max_cost=0.01)
    assert here.found["stopped"] == "max_cost"
    assert "Stopped before $0.01 were passed; the same command with a higher --max-cost" in here.err
    assert 0.005 < sum(spent) <= 0.01
    assert not await here(max_cost=0.01)
    assert sum(spent) <= 0.01  # what calls at once had reserved may leave room for another
    assert await here(max_cost=1)
    assert here.found["stopped"] is None


async def test_an_arm_that_silently_never_runs_is_invalid(here: Here) -> None:
    """Every review fails: the council still answers, but nothing in it was reviewed."""
    write_questions(here.folder, 4)
    refused = Turn(status=400, error={"message": "no", "code": 400})
    here.server.always("*", lambda each: refused if stage_of(each) == "review" else known(each))
    assert await here()
    arms = arms_of(here.found)
    for name in ("full", "full_without_2_5"):
        assert arms[name]["score"] is arms[name]["interval"] is arms[name]["against_baseline"] is None
        assert (arms[name]["n"], arms[name]["invalid"]) == (0, "4 of 4 questions have no review")
    assert arms["stage1"]["invalid"] is arms["second_look"]["invalid"] is None
    assert str(here.found["says"]).startswith(
        "The council has no result: 4 of 4 questions have no review."
    )


async def test_a_member_that_fails_leaves_the_council_its_result(here: Here) -> None:
    write_questions(here.folder, 4)
    here.server.always("google/gemini", Turn(status=400, error={"message": "no", "code": 400}))
    assert await here(arms="members,full")
    arms = arms_of(here.found)
    assert arms["member:google/gemini"]["invalid"] == "4 of 4 questions have no answer"
    assert (arms["full"]["invalid"], arms["full"]["n"]) == (None, 4)


async def test_what_no_checker_scores_a_judge_grades(here: Here) -> None:
    """By Inspect's question, through the council's own calls; a reply without a grade is no verdict."""
    rows: list[Json] = [
        {"id": f"j{number}", "input": f"Why did door {number} stall?", "target": LONG}
        for number in range(4)
    ]
    write_questions(here.folder, 0, *rows)
    here.server.always("*", lambda each: Turn(corrected(each.prompt, "The lock was held.")))
    here.server.always("judge/one", Turn("It does.\n\nGRADE: C"))
    assert await here(judge="judge/one", arms="best,self_consistency,full")
    assert here.found["judge"] == {"model": "judge/one"}
    arms = arms_of(here.found)
    assert [arms[name]["score"] for name in ("best", "full")] == [1, 1]
    assert "answered in prose" in str(arms["self_consistency"]["invalid"])
    paid = len(here.server.history)
    assert await here(judge="judge/one", arms="best,full")
    assert len(here.server.history) == paid
    here.server.always("judge/two", Turn("I can't say."))
    assert not await here(judge="judge/two", arms="best,full")
    assert arms_of(here.found)["full"]["invalid"] == "4 of 4 questions have no verdict"


async def test_replies_that_break_checkers_are_wrong_and_end_nothing(here: Here) -> None:
    write_questions(
        here.folder, 3, {"id": "long", "input": "What is the code of door 0?", "target": "9" * 5000}
    )
    odd = ["1e9999999", "9" * 5000, " " * 1200 + "x", "ANSWER:" + "\n" * 1200]
    here.server.always("*", lambda each: Turn(odd[len(each.prompt) % 4]))
    assert await here(arms="best,stage1")
    assert [arm["n"] for arm in arms_of(here.found).values()] == [4, 4]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"file": Path("missing.jsonl")}, "missing.jsonl can't be read: no such file or directory."),
        ({"file": None}, "Name a file of questions, or use --from-history."),
        ({"from_history": True}, "Name a file of questions or use --from-history, not both."),
        ({"file": None, "from_history": True}, "has people's votes yet: there is nothing to evaluate."),
        ({"arms": "fuller"}, "There is no arm fuller; there are members, "),
        ({"baseline": "fuller"}, "There is no arm fuller; there are members, "),
        ({"arms": "auto"}, "The arm auto needs a judge: set judge_model in council.toml"),
        ({"profile": "x"}, "There is no profile x; there are default."),
        ({"file": Path("judged.jsonl")}, "Some answers can only be judged by a model: set judge_model"),
    ],
)
async def test_what_cannot_be_evaluated_is_refused(here: Here, options: Json, said: str) -> None:
    """Before anything is asked."""
    write_questions(here.folder, 2)
    (here.folder / "judged.jsonl").write_bytes(orjson.dumps({"input": "?", "target": LONG}))
    with pytest.raises(Refusal) as refused:
        await here(**options)
    assert said in str(refused.value)
    assert here.server.history == []


@pytest.mark.soak
async def test_a_killed_evaluation_continues_without_paying_again(tmp_path: Path) -> None:
    """After kill -9 only what was in flight is asked again; Ctrl-C keeps what is done, too."""
    write_questions(tmp_path, 3)
    async with evaluated(tmp_path) as (council, server):
        stops = {20: signal.SIGKILL, 45: signal.SIGINT}
        in_flight, out, err = 0, b"", b""
        for at, how in stops.items():
            held = asyncio.Event()

            def answer(exchange: Exchange, at: int = at, held: asyncio.Event = held) -> Turn:
                if len(server.history) == at:
                    server.gate = asyncio.Event()
                    held.set()
                return known(exchange)

            server.always("*", answer)
            process = await council.start(*QUICK)
            await held.wait()
            in_flight += server.in_flight
            process.send_signal(how)
            out, err = await process.communicate()
            assert server.gate is not None
            server.gate.set()
            server.gate = None
        assert b'"stopped": "interrupted"' in out
        assert b"Stopped; the same command continues." in err
        ended = await council(*QUICK)
        asked = len(server.history)
    assert ended.code == 0
    assert {arm["n"] for arm in arms_of(result(ended)).values()} == {3}
    (tmp_path / "whole").mkdir()
    write_questions(tmp_path / "whole", 3)
    async with evaluated(tmp_path / "whole") as (council, server):
        await council(*QUICK)
        needed = len(server.history)
    assert asked <= needed + in_flight + 24  # what the server had begun meanwhile


async def test_an_evaluation_is_kept_in_a_database_too(
    here: Here, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `DATABASE_URL` it is continued from there."""
    from bot.app import open_library as open_any
    from bot.evaluation.command import EvalOptions, evaluate

    del monkeypatch
    write_questions(here.folder, 2)
    paid = 0
    for _ in range(2):
        async with open_any(here.folder / "none", postgres) as library:
            options = EvalOptions(file=here.folder / "q.jsonl", pilot=2, arms="stage1")
            assert await evaluate(load(), library, options)
        assert paid in (0, len(here.server.history))
        paid = len(here.server.history)
    assert not (here.folder / "none").exists()


async def test_a_person_is_asked_before_it_costs_anything(tmp_path: Path) -> None:
    """Where somebody watches and named no limit; anything but yes asks no model."""
    write_questions(tmp_path, 1)
    async with evaluated(tmp_path) as (council, server):
        shown, code = await at_a_terminal(council, "eval", "q.jsonl", "--arms", "stage1", typed="n\n")
        assert (code, server.history) == (1, [])
        assert "about $" in shown
        assert "Go on? [y/N]" in shown
        assert "Nothing was asked." in shown


async def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    """And neither help nor anything else of the program loads Inspect."""
    hide = (
        "import importlib.util as u, sys; find = u.find_spec; sys.modules['inspect_ai'] = None; "
        "u.find_spec = lambda name, *rest: None if name == 'inspect_ai' else find(name, *rest)"
    )
    council = Program(tmp_path, {}, hide)
    ended, helped = await council("eval", "q.csv"), await council("eval", "--help")
    assert (ended.code, helped.code) == (2, 0)
    assert "make install EXTRAS=eval" in ended.err

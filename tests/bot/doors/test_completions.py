"""`/v1/chat/completions` as OpenAI's own client reads it, and what no client may do there."""

import asyncio
import base64
import io
import json
import re
import socket
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from yarl import URL

from bot.doors import completions
from bot.doors.completions import ChatRequest, read_request
from bot.doors.door import Caller, RunProgress
from bot.doors.server import host_names
from bot.terminal.spending import read_scope
from bot.view.wording import doors as wording
from council.document.conversation import Source
from storage.journal.rows import RunRow
from tests.bot.doors.ports import HERE, THERE, Port, port
from tests.bot.inputs.pictures import plain
from tests.council.scripted import ScriptedCouncil, asking, failure
from tests.pairs import pairs
from tests.storage.journal.test_journal import BRIEF

if TYPE_CHECKING:  # as in `ports`
    from openai.types.chat import ChatCompletionMessageParam

ANSWER = "The council's answer, written by chair/man."
MODEL = "council/default"
SCOPE = read_scope(HERE)
ASKED: "list[ChatCompletionMessageParam]" = [{"role": "user", "content": "Shard or scale up?"}]


async def post(
    at: Port, body: Mapping[str, Any], path: str = "/v1/chat/completions", **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Send a request as no client would; return status, body and headers."""
    sent = {"Authorization": f"Bearer {at.token}", "Content-Type": "application/json", **headers}
    data, address = io.BytesIO(json.dumps(body).encode()), f"{at.base}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.post(address, data=data, headers=sent) as response,
    ):
        return response.status, await response.json(), dict(response.headers)


async def test_the_official_client_is_answered(tmp_path: Path) -> None:
    """Whole and streamed, with the run's totals and cost; each is a run of its own."""
    async with port(tmp_path) as at:
        client = at.openai()
        assert [model.id for model in (await client.models.list()).data] == [MODEL]
        whole = await client.chat.completions.create(model=MODEL, messages=ASKED)
        assert whole.choices[0].message.content == ANSWER
        assert whole.choices[0].finish_reason == "stop"
        assert whole.usage is not None
        assert whole.usage.model_dump()["cost"] == 0.013
        assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (130, 65)
        stream = await client.chat.completions.create(
            model=MODEL, messages=ASKED, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        said = [choice for chunk in chunks for choice in chunk.choices]
        assert "".join(choice.delta.content or "" for choice in said) == ANSWER
        assert [choice.finish_reason for choice in said] == [None] * (len(said) - 1) + ["stop"]
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.model_dump()["cost"] == 0.013
        assert chunks[0].id != whole.id


NOTES = "How many\nDISSENT: gpt-5 would wait,\nfor a year.\nCHANGED: gpt-5 left X."
BELOW = (
    "\n\n---\n\n- **Dissent:** gpt-5 would wait, for a year.\n- **Review changed:** gpt-5 left X.\n"
    "- **Would change the answer:** How many"
)


@pytest.mark.parametrize(
    ("model", "metadata", "below"),
    [(MODEL, {}, BELOW), (MODEL, {"notes": "false"}, ""), ("Council:Plain", {}, "")],
)
async def test_the_notes_are_below_the_answer_unless_it_is_wanted_plain(
    tmp_path: Path, model: str, metadata: dict[str, str], below: str
) -> None:
    """Whole and streamed; the stages come before it as what front ends fold."""
    council = ScriptedCouncil({"stage3": asking(NOTES)}, held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council) as at:
        client = at.openai().chat.completions
        stream = await client.create(model=model, messages=ASKED, metadata=metadata, stream=True)
        said, thought = "", ""
        async for chunk in stream:
            [choice] = chunk.choices
            said += choice.delta.content or ""
            more = (choice.delta.model_extra or {}).get("reasoning_content", "")
            assert not (more and said)
            thought += more
            if "answers 3/4" in thought:
                council.release("stage1.1:openai/gpt-5")
        assert said == f"{ANSWER}{below}"
        assert "\n- answers 3/4\n" in f"\n{thought}"
        whole = await client.create(model=model, messages=ASKED, metadata=metadata)
        assert whole.choices[0].message.content == said


async def test_a_cut_answers_reason_is_its_length(tmp_path: Path) -> None:
    """And whose words it is comes beside it."""
    async with port(tmp_path, ScriptedCouncil(truncated={"stage3"})) as at:
        stream = await at.openai().chat.completions.create(model=MODEL, messages=ASKED, stream=True)
        last = [chunk async for chunk in stream][-1]
    assert last.choices[0].finish_reason == "length"
    assert (last.model_extra or {})["council"]["source"] == "chairman"


@pytest.mark.parametrize("streams", [True, False])
async def test_a_quiet_reply_is_kept_alive(
    tmp_path: Path, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what counts as a chunk and changes nothing: proxies and clients close what is silent for long."""
    monkeypatch.setattr(completions, "KEEP_ALIVE_SECONDS", 0.0)
    monkeypatch.setattr(completions, "STATUS_SECONDS", 0.0)
    nothing = b'"delta":{},' if streams else b"  "
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council) as at, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {at.token}"}
        body = {"model": MODEL, "messages": ASKED, "stream": streams}
        address = f"{at.base}/v1/chat/completions"
        async with session.post(address, json=body, headers=headers) as response:
            assert response.status == 200
            seen = b""
            while nothing not in seen:
                seen += await response.content.readany()
            council.release("stage1.1:openai/gpt-5")
            seen += await response.read()
        assert (seen.split(b"data: ")[-1] == b"[DONE]\n\n") is streams
        if not streams:
            assert json.loads(seen)["choices"][0]["message"]["content"] == ANSWER


async def test_a_failure_after_the_headers_is_the_body_and_what_is_left_is_broken_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a client would take for an answer; who asks again has the status, or takes the run over then."""
    monkeypatch.setattr(completions, "STATUS_SECONDS", 0.0)
    council = ScriptedCouncil({"stage1": failure("unavailable")}, held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council) as at, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {at.token}"}
        body = {"model": MODEL, "messages": ASKED}
        address = f"{at.base}/v1/chat/completions"
        async with session.post(address, json=body, headers=headers) as response:
            council.release("stage1.1:openai/gpt-5")
            said = await response.json()
        assert (response.status, said.keys()) == (200, {"error"})
        assert said["error"]["code"] == "no_answer"
        calls = len(council.calls)
        status, again, sent = await post(at, body)
        assert (status, again, sent["x-should-retry"]) == (502, said, "false")
        assert len(council.calls) == calls == 4
    monkeypatch.setattr(completions, "STATUS_SECONDS", 0.0)
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path / "other", council) as at, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {at.token}"}
        body = {"model": MODEL, "messages": ASKED}
        address = f"{at.base}/v1/chat/completions"
        async with session.post(address, json=body, headers=headers) as response:
            await at.doorway.office.dispatcher.tasks.drain(0)
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()


@pytest.mark.parametrize("streams", [True, False])
async def test_what_is_answered_while_the_council_ends_is_sent(
    tmp_path: Path, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing carries the run out any more by the time its reply looks for it."""
    from openai import AsyncStream

    council = ScriptedCouncil(held={"stage3.1:chair/man:chairman"})
    async with port(tmp_path, council) as at:
        tasks, progress = at.doorway.office.dispatcher.tasks, at.doorway.door.progress

        async def late(run_id: str, caller: Caller) -> RunProgress:
            await tasks.settled()
            return await progress(run_id, caller)

        reply = at.openai().chat.completions.create(model=MODEL, messages=ASKED, stream=streams)
        asking = asyncio.create_task(reply)
        await council.until_called("stage3.1:chair/man:chairman")
        monkeypatch.setattr(at.doorway.door, "progress", late)
        tasks.is_draining = True
        council.release("stage3.1:chair/man:chairman")
        answered = await asking
        if isinstance(answered, AsyncStream):
            texts = [chunk.choices[0].delta.content or "" async for chunk in answered]
            assert "".join(texts) == ANSWER
        else:
            assert answered.choices[0].message.content == ANSWER


def user(content: object) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


REFUSED: list[tuple[str, Mapping[str, Any], int, str]] = [
    ("tools", {"tools": [{"type": "function"}]}, 400, wording.NO_TOOLS),
    ("empty", {"messages": user(" ")}, 400, "There is no question in the last message."),
    ("metadata", {"metadata": {"cancel_on_disconnect": True}}, 400, "metadata.cancel_on_disconnect"),
    ("long", {"messages": user("x" * 150_001)}, 413, wording.too_long(150_000)),
    ("profile", {"model": "council/slow"}, 404, "slow"),
    ("max_cost", {"metadata": {"max_cost": "0.0001"}}, 402, "at most"),
]


async def test_what_is_not_offered_is_refused_in_openais_shape(tmp_path: Path) -> None:
    """Before anything is paid for; other fields are ignored."""
    async with port(tmp_path) as at:
        for name, changed, status, said in REFUSED:
            got, body, headers = await post(at, {"model": MODEL, "messages": ASKED, **changed})
            assert (got, name) == (status, name)
            error = body["error"]
            assert error.keys() == {"message", "type", "param", "code"}
            assert said in error["message"]
            assert headers["x-should-retry"] == "false"
        assert at.doorway.office.council.calls == []
        ignored = {"temperature": 2, "seed": 1, "user": "u", "response_format": {"type": "text"}}
        assert (await post(at, {"model": "council", "messages": ASKED, **ignored}))[0] == 200
        for broken in ({"model": MODEL}, {"messages": ASKED}, {"model": 1, "messages": "x"}):
            assert (await post(at, broken))[0] == 400


def shown(content: bytes) -> list[dict[str, Any]]:
    url = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    text = {"type": "text", "text": "What is this?"}
    return user([text, {"type": "image_url", "image_url": {"url": url}}])


async def test_a_picture_is_read_or_its_reason_told(tmp_path: Path) -> None:
    """As files in chat are: in a process of its own, before anything is paid for."""
    async with port(tmp_path) as at:
        council = at.doorway.office.council
        broken = b"\x89PNG\r\n\x1a\n" + b"x" * 100
        status, said, _ = await post(at, {"model": MODEL, "messages": shown(broken)})
        assert (status, said["error"]["code"]) == (400, "invalid_image")
        assert said["error"]["message"] == "The picture 1 isn't read: damaged or incomplete."
        assert council.calls == []
        body = {"model": MODEL, "messages": shown(plain(120, 80)), "metadata": {"idempotency_key": "k"}}
        first = await post(at, body)
        assert first[0] == 200, first[1]
        assert (first[0], (await post(at, body))[1]["id"]) == (200, first[1]["id"])
        assert "120 \u00d7 80" in council.prompt("stage1.1:openai/gpt-5")
        other = {**body, "messages": shown(plain(121, 80))}
        assert (await post(at, other))[0] == 409


@pytest.mark.soak
async def test_a_picture_may_be_as_large_as_in_chat(tmp_path: Path) -> None:
    """Ten megabytes each, four of them; without a token a request has one, and nothing is read of it."""
    large = plain(120, 80).ljust(10_000_000, b"\0")
    async with port(tmp_path) as at:
        council = at.doorway.office.council
        [four] = shown(large)
        four["content"] += [four["content"][1]] * 3
        status, said, _ = await post(at, {"model": MODEL, "messages": [four]})
        assert status == 200, said
        assert council.prompt("stage1.1:openai/gpt-5").count("120 \u00d7 80") == 4
        calls = len(council.calls)
        status, said, _ = await post(at, {"model": MODEL, "messages": shown(large + b"\0")})
        assert (status, said["error"]["code"]) == (400, "invalid_image")
        assert said["error"]["message"] == "The picture 1 isn't read: larger than 10 MB."
        five = {"role": "user", "content": [*four["content"], four["content"][1]]}
        status, said, _ = await post(at, {"model": MODEL, "messages": [five]})
        assert (status, said["error"]["message"][:25]) == (413, "The request is too large:")
        one = {"model": MODEL, "messages": shown(large)}
        status, said, _ = await post(at, one, Authorization="Bearer council_0000")
        assert (status, said["error"]["message"][:25]) == (413, "The request is too large:")
        assert len(council.calls) == calls


async def test_a_request_is_unpacked_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty megabytes take a second, in which nobody else would be answered."""
    threads: list[threading.Thread] = []

    def read(body: bytes, key: str | None) -> ChatRequest:
        threads.append(threading.current_thread())
        return read_request(body, key)

    monkeypatch.setattr(completions, "read_request", read)
    async with port(tmp_path) as at:
        assert (await post(at, {"model": MODEL, "messages": ASKED}))[0] == 200
    assert threads[0] is not threading.current_thread()


FOUND: dict[str, str | None] = {
    **dict.fromkeys(("council/default", "council%2Fdefault", "COUNCIL/Default"), "council/default"),
    **dict.fromkeys(("default", "council", "council/"), "council/default"),
    **dict.fromkeys(("fast", "Fast", "council/fast:plain"), "council/fast"),
    **dict.fromkeys(("council/nobody", "x" * 7_000, "%FF", "%ED%A0%80", "council/default/x")),
}


async def test_one_model_is_found_as_it_would_be_asked(tmp_path: Path) -> None:
    """Clients look up the id that they read in the list, with its slash as it is or escaped."""
    async with port(tmp_path) as at, aiohttp.ClientSession() as session:
        at.doorway.configure(profiles="default fast")
        headers = {"Authorization": f"Bearer {at.token}"}
        for asked, found in FOUND.items():
            address = URL(f"{at.base}/v1/models/{asked}", encoded=True)
            async with session.get(address, headers=headers) as response:
                said = await response.json()
            if found is None:
                assert (response.status, said["error"]["code"]) == (404, "model_not_found")
                assert len(said["error"]["message"]) < 300
                continue
            assert said == {"id": found, "object": "model", "created": 0, "owned_by": "council"}
            if "%" not in asked:
                assert (await at.openai().models.retrieve(asked)).id == found
                status, answered, _ = await post(at, {"model": asked, "messages": ASKED})
                assert (status, answered["model"]) == (200, asked)
            async with session.get(address) as response:
                assert response.status == 401


async def test_a_token_may_be_written_with_more_spaces_and_a_host_with_its_port(tmp_path: Path) -> None:
    """The token's scheme in any case; a host as the address that a client is given, of IPv6 with its brackets or without."""
    async with port(tmp_path) as at, aiohttp.ClientSession() as session:
        for value in ("Bearer  {}", "bearer\t{}", "BEARER   {}  "):
            headers = {"Authorization": value.format(at.token)}
            async with session.get(f"{at.base}/v1/models", headers=headers) as response:
                assert response.status == 200, value
    for given, name in (
        ("Council.internal:8808", "council.internal"),
        ("proxy", "proxy"),
        ("https://council.example/", "council.example"),
        ("http://council.example:8808", "council.example"),
        ("[fd00::1]:8808", "[fd00::1]"),
        ("fd00::2", "[fd00::2]"),
        ("fe80::1%eth0", "[fe80::1%eth0]"),
    ):
        assert host_names([given]) == {name}
    for wrong in ("a b", "", "https://council.example/v1", "a@b", "name:", "name:x"):
        assert not host_names([wrong])


async def test_tokens_that_open_nothing(tmp_path: Path) -> None:
    """Forged, expired, revoked, none at all, or written as something else: the same 401. Nobody knew that a thread is private."""
    async with port(tmp_path) as at:
        tokens = at.doorway.office.library.tokens
        expired = await at.new_token("old", lasts=timedelta(microseconds=1))
        revoked = await at.new_token("gone")
        await tokens.revoke("gone")
        forged = "council_" + "0" * 48
        for headers in (
            *({"Authorization": f"Bearer {token}"} for token in (expired, revoked, forged, "sk-1")),
            {"Authorization": ""},
            {"Authorization": f"Basic {at.token}"},
            {"Authorization": f"Bearer {at.token} {at.token}"},
        ):
            for path in ("/v1/chat/completions", "/mcp"):
                status, body, got = await post(at, {"model": MODEL, "messages": ASKED}, path, **headers)
                assert (status, body["error"]["code"]) == (401, "invalid_api_key")
                assert got["WWW-Authenticate"] == "Bearer"
        from openai import AuthenticationError

        with pytest.raises(AuthenticationError):
            await at.openai(forged).models.list()
        assert at.doorway.office.council.calls == []
    thread = Source(
        platform="discord", workspace="1" * 18, channel="2" * 18, thread="2" * 18, parent="3" * 18
    )
    async with port(tmp_path / "other") as at:
        token = await at.new_token("thread", f"discord:{thread.workspace}/{thread.channel}")
        headers = {"Authorization": f"Bearer {token}"}
        body = {"model": MODEL, "messages": ASKED}
        run = RunRow(id="r", entry_key="e", conversation_id="c", origin=thread, brief=BRIEF)
        await at.doorway.office.library.journal.begin(run)
        assert (await post(at, body, **headers))[0] == 401
        assert at.doorway.office.council.calls == []


REACHED: list[tuple[dict[str, str], int]] = [
    ({"Host": "evil.example"}, 421),
    ({"Host": "127.0.0.1.evil.example"}, 421),
    ({"Host": "localhost@evil.example"}, 421),
    ({"Host": "localhost:8080"}, 200),
    ({"Host": "council.internal"}, 200),
    ({"Host": "localhost", "Origin": "http://localhost"}, 200),
    ({"Host": "localhost", "Origin": "http://localhost:3000"}, 403),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "null"}, 403),
]


async def test_pages_in_browsers_reach_nothing(tmp_path: Path) -> None:
    """Neither by another name for this machine nor from another origin."""
    async with port(tmp_path, hosts=frozenset({"council.internal"})) as at:
        for headers, status in REACHED:
            for path in ("/v1/chat/completions", "/mcp"):
                got, _, sent = await post(at, {"model": MODEL, "messages": ASKED}, path, **headers)
                is_mcps = path == "/mcp" and status == 200 and got not in (403, 421)
                assert got == status or is_mcps, (headers, path)
                assert "Access-Control-Allow-Origin" not in sent


async def test_the_same_key_is_the_same_answer_but_with_another_token(tmp_path: Path) -> None:
    """By header or in the metadata; another body with it is refused, and isn't sent again. Scopes stay apart."""
    async with port(tmp_path) as at:
        body: dict[str, Any] = {"model": MODEL, "messages": ASKED}
        keyed = {**body, "metadata": {"idempotency_key": "k"}}
        first, second, third = [
            await post(at, body, **{"Idempotency-Key": "k"}),
            await post(at, keyed),
            await post(at, {**keyed, "stream": False, "temperature": 1}),
        ]
        assert first[1]["id"] == second[1]["id"] == third[1]["id"]
        changed = {**keyed, "messages": [{"role": "user", "content": "Else?"}]}
        status, said, headers = await post(at, changed)
        assert (status, headers["x-should-retry"]) == (409, "false")
        assert said["error"]["code"] == "idempotency_key_reused"
        other = await at.new_token("other", THERE)
        body: dict[str, Any] = {"model": MODEL, "messages": ASKED}
        one = await post(at, body, **{"Idempotency-Key": "k"})
        two = await post(at, body, **{"Idempotency-Key": "k", "Authorization": f"Bearer {other}"})
        assert one[1]["id"] != two[1]["id"]


@pytest.mark.parametrize("streams", [True, False])
async def test_a_client_that_times_out_and_tries_again_pays_once(tmp_path: Path, streams: bool) -> None:
    """Whether or not it marks what it sends again, and though it writes the same JSON otherwise."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    body = {"model": MODEL, "messages": ASKED, "stream": streams, "seed": 7}
    async with port(tmp_path, council, waiting_per_user=9) as at, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {at.token}", "Content-Type": "application/json"}
        address = f"{at.base}/v1/chat/completions"

        async def ask(body: Mapping[str, Any]) -> str:
            sent = json.dumps(body, indent=1)
            async with session.post(address, data=sent, headers=headers) as response:
                return re.findall(r"chatcmpl-[0-9a-f-]+", await response.text())[0]

        leaving = asyncio.create_task(ask(body))
        await council.until_called("stage1.1:openai/gpt-5")
        [first] = at.doorway.door.followers
        leaving.cancel()
        await asyncio.wait({leaving})
        same = dict(sorted(body.items(), reverse=True))
        others = ({**body, "seed": 8}, {**body, "user": "u"}, {**body, "stream": not streams})
        asking = [asyncio.create_task(ask(each)) for each in (same, *others)]
        while sum(map(len, at.doorway.door.followers.values())) < 4:
            await asyncio.sleep(0.001)
        council.release("stage1.1:openai/gpt-5")
        ids = await asyncio.gather(*asking)
        assert ids[0] == f"chatcmpl-{first}"
        assert len({*ids}) == 4
        assert await ask(body) not in ids  # it has that answer
        assert len(council.asked("stage1")) == 4 * 5


async def test_a_closed_connection_is_seen_at_once(tmp_path: Path) -> None:
    """Before the event loop has heard of it: the same request may be there already."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    content = json.dumps({"model": MODEL, "messages": ASKED})
    async with port(tmp_path, council) as at:
        head = f"Host: localhost\r\nAuthorization: Bearer {at.token}\r\nContent-Length: {len(content)}"
        with socket.create_connection(("127.0.0.1", at.number)) as client:
            client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\n{head}\r\n\r\n{content}".encode())
            await council.until_called("stage1.1:openai/gpt-5")
            [run_id] = at.doorway.door.followers
            assert at.doorway.door.is_followed(run_id)
        assert not at.doorway.door.is_followed(run_id)
        council.release("stage1.1:openai/gpt-5")


async def test_official_clients_samples_are_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked side by side with one body, half of them again after a 429."""
    monkeypatch.setattr(completions, "AGAIN_SECONDS", 0.01)
    async with port(tmp_path) as at:
        client = at.openai(max_retries=500)
        replies = await asyncio.gather(
            *(client.chat.completions.create(model=MODEL, messages=ASKED) for _ in range(24))
        )
        assert len({reply.id for reply in replies}) == 24


async def test_a_failed_run_is_told_and_not_asked_again(tmp_path: Path) -> None:
    """Streamed or not; a retry of the client would only be told the same."""
    from openai import APIError, InternalServerError

    council = ScriptedCouncil(script={"stage1": failure("unavailable")})
    async with port(tmp_path, council) as at:
        client = at.openai(max_retries=2)
        with pytest.raises(InternalServerError) as caught:
            await client.chat.completions.create(model=MODEL, messages=ASKED)
        assert caught.value.status_code == 502
        calls = len(council.calls)
        assert calls == len(council.asked("stage1")) == 4
        stream = await client.chat.completions.create(model=MODEL, messages=ASKED, stream=True)
        with pytest.raises(APIError):
            async for _ in stream:
                pass


@pytest.mark.parametrize(("cancels", "streams"), pairs([True, False], [True, False]))
async def test_leaving_cancels_a_run_only_if_that_is_wanted(
    tmp_path: Path, cancels: bool, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nobody else waits for it."""
    monkeypatch.setattr(completions, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(completions, "KEEP_ALIVE_SECONDS", 0.0)
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council) as at:
        body: dict[str, Any] = {
            "model": MODEL,
            "messages": ASKED,
            "stream": streams,
            "metadata": {"cancel_on_disconnect": "true" if cancels else "false"},
        }
        leaving = asyncio.create_task(post(at, body))
        await council.until_called("stage1.1:openai/gpt-5")
        leaving.cancel()
        await asyncio.wait({leaving})
        if not cancels:
            council.release("stage1.1:openai/gpt-5")
        await at.doorway.office.dispatcher.tasks.settled()
        library = at.doorway.office.library
        assert bool(council.asked("stage3")) is not cancels
        rows = (await library.past_answers.history(SCOPE)).rows
        assert bool(rows) is not cancels


async def test_over_a_limit_there_is_a_time_to_come_again(tmp_path: Path) -> None:
    """And none of it waits for ever."""
    council = ScriptedCouncil(held={"stage1.1:openai/gpt-5"})
    async with port(tmp_path, council, waiting_per_user=1, runs_per_user=1) as at:
        body: dict[str, Any] = {"model": MODEL, "messages": ASKED, "stream": True}
        first = asyncio.create_task(post(at, body))
        await council.until_called("stage1.1:openai/gpt-5")
        second = asyncio.create_task(post(at, body))
        while len(at.doorway.door.followers) < 2:
            await asyncio.sleep(0)
        status, said, headers = await post(at, body)
        assert (status, said["error"]["type"]) == (429, "rate_limit_error")
        assert (headers["Retry-After"], headers["x-should-retry"]) == ("5", "true")
        at.doorway.office.dispatcher.tasks.is_draining = True
        status, _, headers = await post(at, body)
        assert (status, headers["Retry-After"]) == (503, "5")
        for task in (first, second):
            task.cancel()
            await asyncio.wait({task})
        council.release("stage1.1:openai/gpt-5")


async def test_the_port_has_three_addresses(tmp_path: Path) -> None:
    """Anything else isn't there; what is too large is told in OpenAI's shape."""
    async with port(tmp_path) as at, aiohttp.ClientSession() as session:
        for method, path, status in (
            ("GET", "/", 404),
            ("GET", "/v1/chat/completions", 405),
            ("OPTIONS", "/v1/chat/completions", 405),
            ("GET", "/mcp", 405),
            ("POST", "/v1/completions", 404),
        ):
            async with session.request(method, f"{at.base}{path}") as response:
                assert (path, response.status) == (path, status)
                said = (await response.json())["error"]["message"]
                assert said.startswith("There is no such address here. ")
        large = io.BytesIO(b"x" * 2_000_000)
        async with session.post(f"{at.base}/v1/chat/completions", data=large) as response:
            said = await response.json()
            assert (response.status, said["error"]["message"][:25]) == (413, "The request is too large:")

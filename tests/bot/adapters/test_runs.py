"""A run on both platforms, from each of the ways in to its card, its thread and its buttons."""

import json
import re

import pytest

from bot.view.wording.commands import NOT_HERE
from council.criteria import EvaluationCriteria
from tests.bot.adapters.teams import QUESTION, AnyTeam
from tests.bot.shown import FINISHED
from tests.council.scripted import FOUR, failure

ANSWER = "The council's answer, written by chair/man."
FIRST = f"stage1.1:{FOUR[0]}"
HELD = {
    "Answers": FIRST,
    "Reviews": f"stage2.1:{FOUR[0]}",
    "Corrections": f"stage2_5.1:{FOUR[0]}",
    "Final answer": "stage3.1:chair/man:chairman",
}
SHORT = sorted(name.rpartition("/")[2] for name in FOUR)
CUT = "Cut here; the full text is in the transcript."
NAMES = [
    *("everyone", "here", "<!channel>", "<!here|here>", "<@1>", "<@&1>", "<!subteam^S0000000001>"),
    *("**Bo** _b_", "`rm -rf`", "[x](https://evil.example)", "<https://evil.example|x>", "~~x~~"),
    *("||b||", "# h", "<t:1:R>", "R&D"),
]


# ── the card and the thread ──────────────────────────────────────────────────────────────────


async def test_a_command_becomes_card_thread_answer_and_one_mention(team: AnyTeam) -> None:
    """The card shows each stage; the thread has a digest; only the asker is pinged, once."""
    team.council.held |= {*HELD.values()}
    card = await team.begin()
    assert team.quoted(QUESTION) in team.first_text(card)
    assert f"Asked by {team.name('ada')}." in team.first_text(card)
    assert team.labels(card) == ["Stop"]
    for stage, step in HELD.items():
        await team.council.until_called(step)
        waiting = f"{team.strong(stage)}: waiting"
        await team.until(lambda waiting=waiting: waiting not in team.text(card))
        team.council.release(step)
    await team.dispatcher.tasks.settled()
    assert team.public() == [card]
    assert ANSWER in team.read(card)
    assert team.labels(card) == FINISHED
    ranking, *members = team.said_below(card)
    assert "Average vote (1 is best) beside each name. " in team.read(ranking)
    assert [team.labels(each) for each in (ranking, *members)] == [[], *[["Open"]] * len(FOUR)]
    said = [team.plain(member) for member in members]
    assert sorted(re.split(r"\n+Ranked ", each)[0] for each in said) == SHORT
    for part in ("Objections", "Corrected response", "Changed from", "A better and much longer answer"):
        assert all(part in each for each in said)
    assert (team.pings(), team.notified()) == ([team.ada], [ranking])
    assert team.tells_of(ranking, card)
    assert "The council has answered. " in team.text(ranking)
    assert team.refusals() == []


MOST = {"discord": {700: 5, 4_000: 6, 12_000: 9}, "slack": {700: 5, 4_000: 5, 12_000: 5}}
ROOM = {"discord": 11_000, "slack": 8_500}


@pytest.mark.parametrize("length", [700, 4_000, pytest.param(12_000, marks=pytest.mark.soak)])
async def test_how_many_messages_a_thread_of_four_members_has(team: AnyTeam, length: int) -> None:
    """How each response begins or, if the channel wants that, each response up to a message's limit."""
    words = [f"word{number:04}" for number in range(length // 9)]
    team.council.script["stage2_5"] = " ".join(words)
    said = [team.read(each) for each in team.said_below(await team.ask())]
    assert len(said) == 1 + len(FOUR)
    assert "\n".join(said).count("Corrected response: how it begins") == len(FOUR)
    assert (sum(map(len, said)) < 5_000, CUT in str(said)) == (True, False)
    await team.set_here(thread="full")
    said = [team.read(each) for each in team.said_below(await team.ask())]
    assert len(said) <= MOST[team.platform][length]
    shown = [str(said).count(word) for word in words]
    assert shown == sorted(shown, reverse=True)
    assert sum(shown) >= len(FOUR) * min(len(shown), ROOM[team.platform] // 9)
    assert str(said).count(CUT) == (len(FOUR) if 0 in shown else 0)
    assert team.refusals() == []


async def test_the_thread_shows_the_last_of_two_rounds(team: AnyTeam) -> None:
    """With its ranking and corrections; a long response is cut and says so."""
    long = "Writes grow by a tenth each month. " * 500
    team.council.script |= {
        f"stage2_5.2:{name}": f"{name} corrects itself again. {long}" for name in FOUR
    }
    team.seat(max_rounds=2)
    await team.set_here(thread="full")
    card = await team.ask()
    ranking, *members = [team.read(each) for each in team.said_below(card)]
    assert "Ranking, round 2\n" in ranking
    assert "".join(members).count("corrects itself again.") == "".join(members).count(CUT) == len(FOUR)
    assert "2 review rounds, the limit" in team.read(card)
    assert team.refusals() == []


async def test_without_an_answer_the_asker_is_told_why(team: AnyTeam) -> None:
    """A run that gave none takes neither a vote nor a follow-up, whatever a client sends."""
    team.council.script["stage1"] = failure("rate_limited")
    card = await team.ask()
    said = "No member of the council answered. Wait a minute, then press Continue."
    assert said in team.read(card)
    assert team.labels(card) == ["Continue (finished calls aren't paid twice)", "Start over"]
    [told] = team.notified()
    assert "could not answer" in team.text(told)
    team.disguise(card, "over", "helpful")
    said = await team.press(card, "Start over", team.ada)
    assert said == "This run has no answer to vote on."
    team.disguise(card, "helpful", "follow")
    said = await team.press(card, "Start over", team.ada)
    assert said.startswith("This run gave no answer, so there is nothing to follow up.")


# ── buttons ──────────────────────────────────────────────────────────────────────────────────


async def test_asking_again_begins_a_new_run_also_after_a_restart(team: AnyTeam) -> None:
    """With the same question, files and settings; the person who presses is the asker."""
    criteria = EvaluationCriteria.model_validate("Cost:3, Security!")
    team.seat(max_rounds=2, strategy="coverage", criteria=criteria)
    card = await team.act("Does it hold?", files={"plan.md": b"3 TB"})
    asked_for = "4 members, up to 2 rounds, strategy coverage. Criteria: Cost:3, Security!."
    assert asked_for in team.first_text(card)
    await team.restart()
    team.council.calls.clear()
    again = await team.look(card, "Ask again", team.bob)
    await team.dispatcher.tasks.settled()
    assert again is not card
    assert asked_for in team.first_text(again)
    assert ANSWER in team.read(again)
    for part in ("3 TB", "- Cost (weight 3)"):
        assert part in team.council.prompt(FIRST)
    assert team.pings() == [team.ada, team.bob]
    assert len(await team.conversations()) == 2


async def test_a_long_review_comes_in_several_private_messages(team: AnyTeam) -> None:
    """In full."""
    points = [f"Point {number}: {'this is what matters. ' * 5}" for number in range(90)]
    team.council.script["stage2"] = "\n\n".join(points)
    below = team.said_below(await team.ask())
    message = next(each for each in below if "Open" in team.labels(each))
    await team.look(message, "Open", team.bob)

    def whole() -> str:
        return "\n".join(map(team.read, team.privately(team.bob)))

    await team.until(lambda: whole().count("Point 89:") == len(FOUR) - 1)
    assert [whole().count(f"Point {number}:") for number in (0, 45)] == [len(FOUR) - 1] * 2
    assert len(team.privately(team.bob)) > 2


async def test_a_copied_message_does_nothing_in_another_channel(team: AnyTeam) -> None:
    """Nothing is asked, counted or said of what is there."""
    card = await team.ask()
    opening = next(each for each in team.said_below(card) if team.labels(each))
    calls = len(team.council.calls)
    [elsewhere, *_] = team.elsewhere()
    for shown, label in [*((card, label) for label in FINISHED), (opening, "Open")]:
        assert await team.press_copied(shown, elsewhere, label) == NOT_HERE
    assert (len(team.council.calls), await team.votes()) == (calls, [])
    assert await team.questions() == [QUESTION]


async def test_a_run_under_way_or_forgotten_cannot_be_followed_up(team: AnyTeam) -> None:
    """Whatever a client sends, and although its form was opened."""
    card = await team.held(FIRST)
    team.disguise(card, "stop", "follow")
    assert await team.press_amid(card, "Stop", team.ada) == (
        "This question is still being answered. Follow up once its answer is there."
    )
    await team.finish(FIRST)
    form = await team.open(card, "Follow up", team.ada)
    selection = await team.library.forgetting.select.user(team.platform, team.ada)
    await team.library.forgetting.forget(selection, by=f"{team.platform}:1")
    assert await team.said(team.send(form, text="And in a year?")) == NOT_HERE


# ── ways in ──────────────────────────────────────────────────────────────────────────────────


async def test_a_mention_asks_with_its_flags(team: AnyTeam) -> None:
    """The question is the text beside the mention; whoever wrote it is the asker."""
    card = await team.mention("--depth quick --profile default Shard now?", team.bob)
    assert ANSWER in team.read(card)
    assert team.first_text(card).startswith(team.quoted("Shard now?"))
    assert (len(team.council.asked("stage1")), team.council.asked("stage2")) == (4, [])
    assert await team.questions() == ["Shard now?"]
    assert team.pings() == [team.bob]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ""),
        (" ? ", "Several models answer"),
        ("help", "Several models answer"),
        ("--private Why?", "--private works only with /council."),
        ("--privat Why?", "Unknown option --privat. Did you mean --private? Options come before"),
        ("--rounds 2 Why?", "--rounds belongs to a profile now, in council.toml. This council's "),
    ],
)
async def test_a_mention_that_asks_nothing_is_answered_in_words(
    team: AnyTeam, text: str, said: str
) -> None:
    """It pings nobody."""
    shown = await team.mention(text)
    assert (said or team.hint) in team.read(shown)
    assert (team.council.calls, team.pings(), await team.conversations()) == ([], [], [])


async def test_a_bare_word_for_help_asks_nothing(team: AnyTeam) -> None:
    """It is shown to whoever asks, alone, as by the command for it."""
    assert "Several models answer" in await team.refused("help")
    shown = await team.use("help")
    assert team.is_private(shown, team.ada)
    assert "Who sees it" in team.read(shown)
    assert (team.council.calls, team.public()) == ([], [])


async def test_a_mention_while_the_bot_restarts_is_refused(team: AnyTeam) -> None:
    """With the reason; a private question leaves nothing behind."""
    await team.dispatcher.tasks.drain(0)
    assert "restarting" in team.read(await team.mention("Shard now?"))
    assert "restarting" in await team.private()
    assert (team.directly(), team.pings()) == ([], [])


async def test_a_direct_message_is_a_question(team: AnyTeam) -> None:
    """Card, parts and mention stay there; so does a follow-up, in the same conversation."""
    card = await team.message("Shard now?")
    assert ANSWER in team.read(card)
    assert f"Asked by {team.name('ada')}." in team.first_text(card)
    [told] = team.notified()
    assert told in team.directly()
    assert team.tells_of(told, card)
    await team.said(team.send(await team.open(card, "Follow up", team.ada), text="And then?"))
    await team.dispatcher.tasks.settled()
    assert await team.questions() == ["Shard now?", "And then?"]
    assert sum("Follow up" in team.labels(each) for each in team.directly()) == 2
    assert team.public() == []


async def test_the_message_action_asks_what_the_message_says(team: AnyTeam) -> None:
    """At once, whoever wrote it; the person who uses the action is the asker."""
    card = await team.act("Is P equal to NP?", team.bob)
    assert ANSWER in team.read(card)
    assert f"Asked by {team.name('bob')}." in team.first_text(card)
    assert await team.questions() == ["Is P equal to NP?"]
    assert team.pings() == [team.bob]


async def test_a_mention_in_the_thread_continues_the_conversation(team: AnyTeam) -> None:
    """Its card and digest come below; the members know what was answered before."""
    card = await team.ask()
    before = len(team.said_below(card))
    team.council.calls.clear()
    below = await team.mention("And in a year?", team.bob, card)
    assert f"Asked by {team.name('bob')}." in team.first_text(below)
    *_, shown, digest = [each for each in team.said_below(card)[before:] if team.labels(each)]
    assert (shown, sorted(team.labels(digest))) == (below, [f"Open {name}" for name in SHORT])
    assert team.notified(team.bob) == [digest]
    assert team.public() == [card]
    assert QUESTION in team.council.prompt(FIRST)
    assert await team.questions() == [QUESTION, "And in a year?"]


async def test_a_private_run_stays_in_direct_messages(team: AnyTeam) -> None:
    """The channel sees nothing; the asker is told where to look."""
    assert " in your direct messages" in await team.private("Am I underpaid?")
    await team.dispatcher.tasks.settled()
    card, *_ = team.directly()
    assert ANSWER in team.read(card)
    [told] = team.notified()
    assert (told in team.directly(), team.public()) == (True, [])
    assert "There is no answer here yet." in team.read(await team.use("history"))


async def test_closed_direct_messages_refuse_a_private_run(team: AnyTeam) -> None:
    """Nothing is asked."""
    team.close_direct(team.ada)
    said = {"discord": "Your direct messages are closed", "slack": "That isn't possible: "}
    assert said[team.platform] in await team.private()
    assert (team.council.calls, team.public()) == ([], [])


# ── files and names ──────────────────────────────────────────────────────────────────────────


FILES = {"plan.md": "Größe: 3 TB".encode(), "logo.bin": b"\x89\xff", "huge.log": b"x" * 200_001}
UNREAD = "logo.bin (neither text, PDF nor a picture), huge.log (larger than 200 kB)"


@pytest.mark.parametrize("way", ["mention", "action", "direct message"])
async def test_files_are_read_or_named(team: AnyTeam, way: str) -> None:
    """The card says which; without words they are the question."""
    if way == "mention":
        card = await team.mention("Does it hold?", files=FILES)
    elif way == "action":
        card = await team.act("", files=FILES)
    else:
        card = await team.message("", files=FILES)
    assert f"Read plan.md.\n\nNot read: {UNREAD}." in re.sub(r"\n+", "\n\n", team.read(card))
    assert "\nAttachment plan.md:\n\nGröße: 3 TB" in team.council.prompt(FIRST)
    words = "Does it hold?" if way == "mention" else "The question is in plan.md, logo.bin and huge.log."
    assert await team.questions() == [words]


async def test_a_question_that_is_a_file_nobody_can_read_is_refused(team: AnyTeam) -> None:
    """Before any call is made; the card says why."""
    card = await team.act("", files={"file.bin": b"\x89PNG\r\n\x1a\n\xff"})
    assert (
        "Nothing that came with the question can be read, so nobody was asked and nothing paid. "
        "file.bin: damaged or incomplete."
    ) in team.read(card)
    assert team.council.calls == []


@pytest.mark.parametrize("way", ["command", "mention", "action"])
async def test_what_a_question_mentions_has_its_name(team: AnyTeam, way: str) -> None:
    """On the card and for the models; but a channel that not everybody sees."""
    group = team.group(team.ada)[0].partition("|")[0].rstrip(">")
    asked = f"Should <@{team.bob}> or {group}> post in {team.channel} or {team.hidden()}?"
    said = f"Should @{team.name('bob')} or @engineers post in #general or a channel?"
    if way == "command":
        card = await team.ask(asked)
    else:
        card = await (team.mention(asked) if way == "mention" else team.act(asked))
    assert await team.questions() == [said]
    assert team.asked_by("ada", said) in team.text(card)
    assert said in team.council.prompt(FIRST)
    assert team.pings() == [team.ada]


async def test_names_that_look_like_markup_stay_names(team: AnyTeam) -> None:
    """They ping nobody, link nowhere and have no style, wherever the question is shown."""
    people = [team.join(name) for name in NAMES]
    card = await team.mention(" ".join(f"<@{each}>" for each in people))
    [said] = await team.questions()
    assert said == " ".join(f"@{team.name(name)}" for name in NAMES)
    assert said in team.council.prompt(FIRST)
    assert team.plain(card).replace("\n", "").startswith(f"{team.name('ada')} asked: {said[:120]}")
    assert team.pings() == [team.ada]
    blocks = json.dumps(getattr(card, "blocks", []))
    assert not re.search('"type": "(link|user|broadcast|usergroup)"|evil[^"]*"url"', blocks)

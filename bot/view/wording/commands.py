"""What commands, forms and buttons say: their options, the help, refusals and confirmations."""

from collections.abc import Collection, Iterable, Sequence
from math import ceil

from bot.view.wording.figures import count, duration, listing

ASK_ABOUT = "Ask the council"
"""The message action."""
TAKE_MESSAGE = "Use this message as the question"

ASK = "Ask the council a question"
QUESTION = "Your question"
EXAMPLE = "Should we shard the database now, or buy a bigger machine first?"
"""What Slack shows beside /council while it is typed."""
PROFILE = "Which council answers"
ATTACHMENT = "A file to read with the question: text, PDF or a picture"
PRIVATE = "Answer me in a direct message"
HELP = "How it works, who sees your question, cost"
HISTORY = "The last answers in this channel"
COUNT = "Answers per page"
SEARCH = "Find answers in this channel by their words"
WORDS = 'Words to find; "quotes" for an exact phrase'
WORDS_ARE_MISSING = 'Say what to search for: words, or an "exact phrase" in quotes.'
SHOW = "Show a past answer of this channel"
ANSWER = "Any words of its title or question, or its id"
ANSWER_IS_MISSING = (
    "Say which answer to show: any words of its title or question. `/council-history` lists them."
)
STATS = "Usage, cost and how each model did"
FORGET = "Delete one answer, one person's questions, or this channel's history"
WHAT = "Words of an answer's title or question; me; @person (for admins); or channel"
WHAT_IS_MISSING = (
    "Say what to delete: words of an answer's title or question, "
    "`me` (all you asked), `@person` (all they asked, for admins), or `channel`."
)

CONFIG = "This channel's settings: see them, or change them as an admin"
CHANNEL_PROFILE = "Which council answers here unless a question names one"
CHANNEL_PROFILES = "Which councils may be asked here, separated by commas"
WHO = "Who may ask here: everyone, nobody, or @people, @roles, @groups"
BUDGET_DAY = "The most that this channel may cost in a day (UTC), in dollars"
BUDGET_MONTH = "The most that this channel may cost in a month (UTC), in dollars"
RETENTION = "Days after its last answer until a conversation is deleted"
RESET = "Settings to reset, separated by commas, or all"

ATTACHING = (
    "Attach files to a message that mentions the bot, to a direct message to it, or to a message on "
    f"which you use \u201c{ASK_ABOUT}\u201d. On Discord there is also the option attachment; "
    "at the terminal, council ask --attachment."
)
NOT_PRIVATE = "--private works only with /council."
PROFILE_NAME = "the name of a profile"
WHICH_ANSWER = "words of its title or question"
TEXT = "text"
NOT_CLOSED = "The quotation mark after --{} is never closed."
NOT_THIS_PROFILE = "The profile {} isn't open to you here. Choose another one."


def days(default: int) -> str:
    return f"Days to count (default {default})"


def number(least: int, most: int) -> str:
    return f"a whole number from {least} to {most}"


def choice(choices: Iterable[str]) -> str:
    return f"one of {', '.join(choices)}"


def described(description: str, allowed: str = "") -> str:
    return f"{description}; {allowed}." if allowed else f"{description}."


def wrong(option: str, value: str, allowed: str) -> str:
    return f"The option {option} can't be \u201c{value}\u201d. It takes {allowed}."


def not_asked(why: str) -> str:
    return f"{why} Nothing was asked."


def of_profiles(option: str, names: Collection[str]) -> str:
    known = f"This council's profiles: {', '.join(names)}. Choose one with --profile."
    return (
        f"--{option} belongs to a profile now, in council.toml. "
        f"{known if names else 'There is none yet: run council init.'}"
    )


def no_value(option: str, allowed: str) -> str:
    return f"The option --{option} needs a value. It takes {allowed}."


def twice(option: str) -> str:
    return f"The option --{option} appears twice. Use it once."


def unknown(name: str, guess: str | None, known: Sequence[str], *, before_question: bool) -> str:
    listed = ", ".join(f"--{each}" for each in known)
    hint = f"Did you mean --{guess}?" if guess else f"Available: {listed}."
    where = " Options come before the question." if before_question else ""
    return f"Unknown option --{name}. {hint}{where}"


def no_profile(name: str, known: Iterable[str]) -> str:
    return (
        f"There is no profile \u201c{name}\u201d. Available: {', '.join(sorted(known))}. "
        "Nothing was asked."
    )


TITLE = "Follow up"
FORM_QUESTION = "Your question"
QUESTION_HINT = "The council knows this conversation's earlier questions and answers."
FORM_ANSWER = "Your answer"
ANSWER_HINT = "The chairman asked for this. Write your answer below the question."
FORM_FILES = "Files"
FILES_HINT = "To read with your question: text, PDF or pictures"
FORM_PROFILE = "Profile"
PROFILE_HINT = "Which council answers"
FORM_SEND = "Ask"

STILL_RUNNING = "This question is still being answered. Follow up once its answer is there."
NO_ANSWER = "This run gave no answer, so there is nothing to follow up. Press Continue or Start over."
NOTHING_ASKED = "The chairman asked no question here. Use Follow up."
ALREADY_ASKED = "This question was already asked."
ASKED_HERE = "Your follow-up was asked."
ASKED_BELOW = "Your follow-up was asked. The answer appears in the thread."
USE_THE_BUTTON = (
    "Discord doesn't show me the text of this reply. Press Follow up below the answer instead."
)


def asked(link: str) -> str:
    return f"Your follow-up was asked: {link}"


COUNTED_HELPFUL = "Your vote: helpful. Press the other button to change it."
COUNTED_UNHELPFUL = "Your vote: not helpful. Press the other button to change it."
REASON_KEPT = "Your vote: not helpful. Your reason is kept with the answer, without your name."
NOTHING_TO_VOTE_ON = "This run has no answer to vote on."

WHY_LABEL = "Why? (your vote is already counted)"
WHY_HINT = "Optional. It is kept with the answer and shown without your name."
SEND = "Send"
CANCEL = "Cancel"


def counted(helpful: int, unhelpful: int) -> str:
    votes = ((helpful, "helpful"), (unhelpful, "not helpful"))
    return ", ".join(f"{number:,} {what}" for number, what in votes if number) or "none"


NOT_SAVED = (
    "Your question couldn't be saved, so it wasn't asked. Try again in a minute; if it happens "
    "again, tell whoever runs the bot."
)
NOT_CHANGED = (
    "This channel's settings couldn't be read or saved, so nothing was changed. Try again in a minute; "
    "if it happens again, tell whoever runs the bot."
)
NOTHING_CHANGED = "Nothing was changed."
RESTARTING = "The council is restarting. Try again in a minute."
NOT_KEPT = "This run gave no answer, so its details were not kept."
NO_QUESTION = "There is no question. Write one: /council Should we shard now?"
NO_TEXT = "There is no question: this message has no text."

IN_PROGRESS = "This run is already in progress."
ANSWERED = "This run has its answer; there is nothing to retry."
RESUMING = "Resuming this run; finished calls aren't paid for twice."
OVER = "This run is over."
STOPPING = "Stopping. With enough answers you still get a final one; press again to end now."
ENDING = "Ending the run now."


def too_long(most: int) -> str:
    return f"The question is longer than {most:,} characters. Shorten it."


def in_files(names: list[str]) -> str:
    return f"The question is in {listing(names)}."


def too_many_of_person(most: int) -> str:
    return (
        f"You already have {count(most, 'question')} waiting, which is the limit, so this one wasn't "
        "asked. Ask again when one of them has started, or stop one that you no longer need."
    )


def too_many_of_channel(most: int) -> str:
    return (
        f"This channel already has {count(most, 'question')} waiting, which is the limit, so yours "
        "wasn't asked. Try again in a few minutes."
    )


def too_soon(seconds: float) -> str:
    return f"You can ask again in {duration(max(1, ceil(seconds)))}."


WHO_CHANGES_IT = "Whoever runs the bot can change that, under [access] in council.toml."
NOT_IN_WORKSPACE = "The council isn't open to this server or workspace."
NOT_IN_CHANNEL = "The council isn't open in this channel."
NOT_BY_CATEGORY = (
    "Categories are on the list of places that may not ask, and a program can't tell which its channel "
    "is in. Name the channel in access.allow.channels."
)
NOT_THIS_PERSON = "The council isn't open to you here."
GROUPS_UNKNOWN = (
    "Slack doesn't say who is in the user groups that may ask, so your question wasn't asked. Try again "
    "in a minute; if it happens again, the app may lack the scope usergroups:read."
)
NOT_DIRECTLY = "The council isn't open to you in direct messages. Ask in a channel."

NOT_OFFERED = "This can't be done here."
NOT_HERE = "This run isn't on record here; it may have been deleted."
NOT_STOPPED = "Only the person who asked, or an admin, can stop this run."
ANSWER_NOT_FORGOTTEN = "Only the person who asked, or an admin, can delete this answer."
PERSON_NOT_FORGOTTEN = "Only an admin can delete everything somebody else asked."
CHANNEL_NOT_FORGOTTEN = "Only an admin can delete a channel's history."
CHANNEL_NOT_CONFIGURED = "Only an admin can change this channel's settings. Nothing was changed."


DONE = "The council has answered."
SEE_THE_CARD = "See the card"
FAILED = "The council could not answer; the card says why."
NOT_ON_CARD = "The answer can't be shown on a card. The transcript has it."
NOT_IN_THREAD = "This part can't be shown here. The transcript has it."
TRANSCRIPT = "The whole conversation: the page opens in any browser; the other file is Markdown."
NO_CARD = "there is no card"
NO_RESPONSE = "there was no response"
NOTHING_SENT = "nothing can be sent right now"


def no_thread(why: str) -> str:
    return f"No thread here: {why}."


def in_file(why: str, *, with_answer: bool) -> str:
    """Return why a file holds the thread's messages, and the answer where it was cut."""
    what = "messages and the whole answer" if with_answer else "messages"
    return f"The thread's {what} are in this file, because {why}."


NO_NAME = "a file"

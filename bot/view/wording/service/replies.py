"""Private replies to whoever asks, stops or retries a run: what happens, or why it doesn't."""

from math import ceil

from bot.view.wording.figures import count, duration
from bot.view.wording.names import listing

NOT_SAVED = (
    "Your question couldn't be saved, so it wasn't asked. Try again in a minute; if it happens "
    "again, tell whoever runs the bot."
)
NOT_CHANGED = (
    "This channel's settings couldn't be read or saved, so nothing was changed. Try again in a minute; "
    "if it happens again, tell whoever runs the bot."
)
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
    """Say how long a question may be."""
    return f"The question is longer than {most:,} characters. Shorten it."


def in_files(names: list[str]) -> str:
    """Say which files the question is in; the members read this instead of a question."""
    return f"The question is in {listing(names)}."


def too_many_of_person(most: int) -> str:
    """Say that somebody has too many questions waiting."""
    return (
        f"You already have {count(most, 'question')} waiting, which is the limit, so this one wasn't "
        "asked. Ask again when one of them has started, or stop one that you no longer need."
    )


def too_many_of_channel(most: int) -> str:
    """Say that a channel has too many questions waiting."""
    return (
        f"This channel already has {count(most, 'question')} waiting, which is the limit, so yours "
        "wasn't asked. Try again in a few minutes."
    )


def too_soon(seconds: float) -> str:
    """Say when somebody may ask again."""
    return f"You can ask again in {duration(max(1, ceil(seconds)))}."

"""What the members read besides the question: its thread, and its conversation so far."""

from bot.view.wording.figures import count
from bot.view.wording.names import listing
from council.events import ContextRead, HistoryShortened

THREAD = "The thread that was read with it"


def conversation(shortened: HistoryShortened) -> str:
    """Say how much of a long conversation a follow-up's prompts repeat."""
    read: list[str] = []
    if shortened.cut:
        read.append("the beginning of the last answer")
    elif shortened.answers:
        last = "answer" if shortened.answers == 1 else f"{shortened.answers:,} answers"
        read.append(f"the last {last}")
    if shortened.titles:
        titles = "title" if shortened.titles == 1 else "titles"
        read.append(f"the {titles} of {count(shortened.titles, 'earlier question')}")
    said = (
        "The conversation is too long to repeat in full. "
        f"The members read {listing(read or ['none of it'])}."
    )
    if not shortened.left_out or not read:
        return said
    were = "was" if shortened.left_out == 1 else "were"
    return f"{said} {count(shortened.left_out, 'question')} before that {were} left out."


def thread(read: ContextRead) -> str:
    """Say how much was read of the thread in which the question was asked."""
    if read.unread:
        return f"Read only the question, not this thread: {read.unread}."
    messages = count(read.messages, "message")
    said = f"Read {messages} of this thread."
    if read.left_out or read.more:
        which = "the last message" if read.messages == 1 else f"the last {messages}"
        is_one = read.left_out == 1 and not read.more
        ones, were = ("one", "was") if is_one else ("ones", "were")
        or_more = "or more " if read.more else ""
        left_out = f"{read.left_out:,} {or_more}older" if read.left_out else "older"
        said = f"Read {which} of this thread; {left_out} {ones} {were} left out."
    if not read.files_left_out:
        return said
    were = "was" if read.files_left_out == 1 else "were"
    return f"{said} {count(read.files_left_out, 'file')} {were} left out."


def took_too_long(platform: str) -> str:
    """Say why a thread wasn't read."""
    return f"{platform} took too long"

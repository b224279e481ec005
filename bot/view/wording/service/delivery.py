"""What is said around a card: the mention of its asker, the files, and what couldn't be shown."""

DONE = "The council has answered."
FAILED = "The council could not answer; the card says why."
NOT_ON_CARD = "The answer can't be shown on a card. The transcript has it."
NOT_IN_THREAD = "This part can't be shown here. The transcript has it."
RECORD = "The transcript: every answer, review and correction."
TRANSCRIPT = "The whole conversation: the page opens in any browser; the other file is Markdown."
NO_CARD = "there is no card"
NO_RESPONSE = "there was no response"
NOTHING_SENT = "nothing can be sent right now"


def no_thread(why: str) -> str:
    """Say why the thread's messages are somewhere else."""
    return f"No thread here: {why}."


def in_file(why: str, *, with_answer: bool) -> str:
    """Say why a file holds the thread's messages, and the answer where it was cut."""
    what = "messages and the whole answer" if with_answer else "messages"
    return f"The thread's {what} are in this file, because {why}."

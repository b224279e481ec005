"""What `council demo` says around its example."""

ON_CARD = "Example, written by hand: no model was asked, and the models named here said none of this."

CHOOSE = "Four examples, written by hand. Which one do you want to watch?"
LEAD = "Try its thread and its buttons: type a number, or press Enter to leave."
RANKING = "Ranking"
VOTES = "Votes"
TRANSCRIPT = "Transcript, a page for your browser"
TRANSCRIPT_OPENED = "Open it in a browser; it is deleted when you leave:"
HEADER = ("Member", "Objections", "Corrected response", "Changes and original", "Full reviews")
AGAIN = "Type another number, ? to list them, or press Enter to leave."
GOODBYE = (
    "This example was written by hand, and none of it was saved. To set up models of your own: make "
    'init. To ask them: make ask Q="your question".'
)


def choice(examples: int) -> str:
    """Ask for one of the examples."""
    return f"Type a number from 1 to {examples}, or press Enter for the first."


def introduction(members: int, takes: str) -> str:
    """Say what is about to be shown."""
    return (
        f"Watch a council work, in about {takes}: {members} members answer a question, review each "
        "other without knowing who wrote what, and correct themselves. Then a chairman writes the "
        "answer. Ctrl-C leaves."
    )


def unknown(typed: str) -> str:
    """Answer what names nothing that can be opened."""
    return f"There is no {typed} here."


def mistake(name: str, number: int) -> str:
    """Point to the correction that shows what a council is for."""
    return f"{name}'s first answer was wrong, and its peers noticed: {number} shows what it changed."

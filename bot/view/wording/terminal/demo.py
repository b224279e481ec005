"""What `council demo` says around its example."""

ON_CARD = "Example, written by hand: no model was asked, and the models named here said none of this."

LEAD = "Try its thread and its buttons: type a number, or press Enter to leave."
RANKING = "Ranking"
VOTES = "Votes"
TRANSCRIPT = "Transcript, a page for your browser"
TRANSCRIPT_OPENED = "Open it in a browser; it is deleted when you leave:"
HEADER = ("Member", "What its peers said", "Original and changes", "Full reviews")
AGAIN = "Type another number, ? to list them, or press Enter to leave."
GOODBYE = (
    "This example was written by hand, and none of it was saved. To ask models of your own, set them "
    'in .env (README, Real models), then: council ask "your question"'
)


def introduction(members: int, takes: str) -> str:
    """Say what is about to be shown."""
    return (
        f"Watch a council work, in about {takes}: {members} members answer a question, review each "
        "other without knowing who wrote what, and correct themselves. Then a chairman writes the "
        "answer. Ctrl-C leaves."
    )


def mistake(name: str, number: int) -> str:
    """Point to the correction that shows what a council is for."""
    return f"{name}'s first answer was wrong, and its peers noticed: {number} shows what it changed."

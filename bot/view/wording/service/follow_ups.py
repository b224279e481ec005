"""What is said about follow-ups: in the form that asks for one, and to whoever sends it."""

TITLE = "Follow up"
QUESTION = "Your question"
QUESTION_HINT = "The council knows this conversation's earlier questions and answers."
ANSWER = "Your answer"
ANSWER_HINT = "The chairman asked for this. Write your answer below the question."
PROFILE = "Profile"
PROFILE_HINT = "Which council answers"
SEND = "Ask"

STILL_RUNNING = "This question is still being answered. Follow up once its answer is there."
NO_ANSWER = "This run gave no answer, so there is nothing to follow up. Press Retry or Ask again."
NOTHING_ASKED = "The chairman asked no question here. Use Follow up."
ALREADY_ASKED = "This question was already asked."
ASKED_HERE = "Your follow-up was asked."
ASKED_BELOW = "Your follow-up was asked. The answer appears in the thread."
USE_THE_BUTTON = (
    "Discord doesn't show me the text of this reply. Press Follow up below the answer instead."
)


def asked(link: str) -> str:
    """Say where the answer will be."""
    return f"Your follow-up was asked: {link}"

"""What Discord answers when it refuses: HTTP status, JSON code, message.

    ApiError           answered to the bot, as Discord would
    Impossible         a test asked for what no Discord client can do (press a button that isn't there)

Codes: https://discord.com/developers/docs/topics/opcodes-and-status-codes
"""

from typing import Any


class ApiError(Exception):
    """A refusal that the bot receives."""

    def __init__(
        self, status: int, code: int, message: str, *, errors: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{status} (code {code}): {message}")
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors
        self.retry_after: float | None = None
        self.is_global = False
        self.is_html = False

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": self.message, "code": self.code}
        if self.errors is not None:
            body["errors"] = self.errors
        if self.retry_after is not None:
            body |= {"retry_after": self.retry_after, "global": self.is_global}
        return body


class Impossible(Exception):
    """No person with a Discord client could do what the test asks."""


def unauthorized() -> ApiError:
    """Refuse a missing or wrong bot token."""
    return ApiError(401, 0, "401: Unauthorized")


def not_found() -> ApiError:
    """Refuse a route that doesn't exist (or that this fake doesn't know)."""
    return ApiError(404, 0, "404: Not Found")


def unknown_channel() -> ApiError:
    """Refuse a channel that never was or is gone."""
    return ApiError(404, 10003, "Unknown Channel")


def unknown_guild() -> ApiError:
    """Refuse a guild the bot isn't in."""
    return ApiError(404, 10004, "Unknown Guild")


def unknown_member() -> ApiError:
    """Refuse a user who isn't in the guild."""
    return ApiError(404, 10007, "Unknown Member")


def unknown_message() -> ApiError:
    """Refuse a message that is gone, elsewhere, or ephemeral."""
    return ApiError(404, 10008, "Unknown Message")


def unknown_user() -> ApiError:
    """Refuse an account that doesn't exist."""
    return ApiError(404, 10013, "Unknown User")


def unknown_webhook() -> ApiError:
    """Refuse a webhook or interaction token nobody issued."""
    return ApiError(404, 10015, "Unknown Webhook")


def unknown_interaction() -> ApiError:
    """Refuse a first response later than 3 s, or to an interaction nobody sent."""
    return ApiError(404, 10062, "Unknown interaction")


def rate_limited(retry_after: float, *, is_global: bool = False, code: int = 0) -> ApiError:
    """Refuse one request too many."""
    error = ApiError(429, code, "You are being rate limited.")
    error.retry_after = round(max(retry_after, 0.001), 3)
    error.is_global = is_global
    return error


def old_message(retry_after: float) -> ApiError:
    """Refuse one more edit of a message older than an hour (a 429 with a code)."""
    error = ApiError(
        429, 30046, "Maximum number of edits to messages older than 1 hour reached. Try again later"
    )
    error.retry_after = retry_after
    return error


def too_large() -> ApiError:
    """Refuse a file over 10 MiB."""
    return ApiError(413, 40005, "Request entity too large")


def already_acknowledged() -> ApiError:
    """Refuse a second first response."""
    return ApiError(400, 40060, "Interaction has already been acknowledged.")


def missing_access() -> ApiError:
    """Refuse what the bot cannot see."""
    return ApiError(403, 50001, "Missing Access")


def not_the_author() -> ApiError:
    """Refuse to edit somebody else's message."""
    return ApiError(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> ApiError:
    return ApiError(400, 50006, "Cannot send an empty message")


def closed_dms() -> ApiError:
    """Refuse to write to somebody who takes no direct messages."""
    return ApiError(403, 50007, "Cannot send messages to this user")


def missing_permissions() -> ApiError:
    """Refuse what the bot may not do here."""
    return ApiError(403, 50013, "Missing Permissions")


def wrong_channel_type() -> ApiError:
    """Refuse to open a thread inside a thread or on a forum."""
    return ApiError(400, 50024, "Cannot execute action on this channel type")


def expired_token() -> ApiError:
    """Refuse an interaction token older than 15 minutes."""
    return ApiError(401, 50027, "Invalid Webhook Token")


def archived() -> ApiError:
    """Refuse to change anything in an archived thread."""
    return ApiError(400, 50083, "Thread is archived")


def thread_exists() -> ApiError:
    """Refuse a second thread on one message."""
    return ApiError(400, 160004, "A thread has already been created for this message")


def locked() -> ApiError:
    """Refuse to send into a locked thread."""
    return ApiError(403, 160005, "This thread is locked")


def invalid(path: str, code: str, message: str) -> ApiError:
    """Refuse a body, naming the field (`embeds.0.description`) as Discord nests it."""
    nested: dict[str, Any] = {"_errors": [{"code": code, "message": message}]}
    for key in reversed(path.split(".")):
        nested = {key: nested}
    return ApiError(400, 50035, "Invalid Form Body", errors=nested)


def too_long(path: str, limit: int) -> ApiError:
    """Refuse a text over its limit."""
    return invalid(path, "BASE_TYPE_MAX_LENGTH", f"Must be {limit} or fewer in length.")


def bad_length(path: str, low: int, high: int) -> ApiError:
    """Refuse a text or list outside its bounds."""
    return invalid(path, "BASE_TYPE_BAD_LENGTH", f"Must be between {low} and {high} in length.")

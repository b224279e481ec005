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


# Refusals that need nothing said: `raise ApiError(*UNKNOWN_CHANNEL)`.
UNAUTHORIZED = (401, 0, "401: Unauthorized")
NOT_FOUND = (404, 0, "404: Not Found")
UNKNOWN_CHANNEL = (404, 10003, "Unknown Channel")
UNKNOWN_GUILD = (404, 10004, "Unknown Guild")
UNKNOWN_MEMBER = (404, 10007, "Unknown Member")
UNKNOWN_MESSAGE = (404, 10008, "Unknown Message")
UNKNOWN_USER = (404, 10013, "Unknown User")
UNKNOWN_WEBHOOK = (404, 10015, "Unknown Webhook")
UNKNOWN_INTERACTION = (404, 10062, "Unknown interaction")
TOO_LARGE = (413, 40005, "Request entity too large")
ALREADY_ACKNOWLEDGED = (400, 40060, "Interaction has already been acknowledged.")
MISSING_ACCESS = (403, 50001, "Missing Access")
NOT_THE_AUTHOR = (403, 50005, "Cannot edit a message authored by another user")
CLOSED_DMS = (403, 50007, "Cannot send messages to this user")
MISSING_PERMISSIONS = (403, 50013, "Missing Permissions")
WRONG_CHANNEL_TYPE = (400, 50024, "Cannot execute action on this channel type")
EXPIRED_TOKEN = (401, 50027, "Invalid Webhook Token")
ARCHIVED = (400, 50083, "Thread is archived")
THREAD_EXISTS = (400, 160004, "A thread has already been created for this message")
LOCKED = (403, 160005, "This thread is locked")
EMPTY_MESSAGE = (400, 50006, "Cannot send an empty message")


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

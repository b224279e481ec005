"""The methods and endpoints that the program uses, each with every error that its platform documents.

Slack lists the errors of each method, and some that every method may answer. Discord lists its codes
once for all endpoints: here, an endpoint has those that can apply to it.
"""

from pathlib import Path

from pydantic import BaseModel

FOLDER = Path(__file__).parent


class SlackMethods(BaseModel):
    """Slack's methods with the errors of each, and the `common` errors of all."""

    sources: list[str]
    common: list[str]
    methods: dict[str, list[str]]

    def errors(self, method: str) -> list[str]:
        return sorted({*self.common, *self.methods[method]})

    @property
    def every(self) -> list[str]:
        """Return every documented error of all methods."""
        return sorted({error for method in self.methods for error in self.errors(method)})


class DiscordEndpoints(BaseModel):
    """Discord's endpoints with the codes of each; a code has an HTTP status and a meaning."""

    sources: list[str]
    codes: dict[int, tuple[int, str]]
    common: list[int]
    endpoints: dict[str, list[int]]

    def errors(self, endpoint: str) -> list[int]:
        return sorted({*self.common, *self.endpoints[endpoint]})

    def status(self, code: int) -> int:
        return self.codes[code][0]


SLACK = SlackMethods.model_validate_json((FOLDER / "slack.json").read_bytes())
DISCORD = DiscordEndpoints.model_validate_json((FOLDER / "discord.json").read_bytes())

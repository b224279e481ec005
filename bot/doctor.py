"""`council doctor`: everything needed to run, checked at once, each fault with its fix.

The checks are in `bot.checks` and, for the platforms, in their own packages.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bot.app import operator_of
from bot.checks.channels import ChannelChecks
from bot.checks.check import MOST_COLUMNS, Check, Checked, Finding, Outcome, carry_out, wrapped
from bot.checks.folder import DATABASE, FolderChecks, ServerChecks
from bot.checks.machine import CLOCK, Clock, machine_checks, port
from bot.checks.models import PROVIDER, ModelChecks
from bot.config.configuration import (
    NO_PLATFORM,
    NOBODY_TO_ASK,
    Configuration,
    check,
    load,
    nearly_settings,
    slack_is_whole,
)
from bot.config.council_file import VARIABLES
from bot.config.settings import OPENROUTER, given_secrets
from bot.errors import ConfigurationError, Problem
from bot.view.wording.figures import count, listing
from council.accounts import Directory
from council.text.redaction import SHORT, Redaction

if TYPE_CHECKING:
    from council.models.client import ModelClient

CONFIGURATION = "Configuration"
ALL_WELL = "Everything is fine."
NOT_LIVE = "No model was asked anything; --live asks each member for one word."


@dataclass(frozen=True, slots=True)
class Examination:
    """What all checks found, without secrets."""

    checked: tuple[Checked, ...]
    live: bool

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    @property
    def findings(self) -> list[Finding]:
        """Everything that is wrong."""
        return [finding for one in self.checked for finding in one.outcome.findings]

    def text(self, width: int = MOST_COLUMNS) -> str:
        """Write it for people: a line a check, and what is wrong with its fix below."""
        lines = (line for one in self.checked for line in one.lines(width))
        return "\n".join([*lines, "", *wrapped(self._summary(), 0, width)])

    def to_json(self) -> str:
        """Write it for programs."""
        checks = [
            {
                "check": one.name,
                "state": one.outcome.state,
                "note": one.outcome.note,
                "details": list(one.outcome.details),
                "findings": [
                    {"weight": each.weight, "where": each.where, "what": each.what, "fix": each.fix}
                    for each in one.outcome.findings
                ],
            }
            for one in self.checked
        ]
        return json.dumps({"ok": self.is_well, "checks": checks}, indent=2, ensure_ascii=False)

    def hidden(self, hide: Callable[[str], str]) -> "Examination":
        """Return the same with every text passed through `hide`, which hides secrets."""

        def clean(finding: Finding) -> Finding:
            where, what, fix = hide(finding.where), hide(finding.what), hide(finding.fix)
            return replace(finding, where=where, what=what, fix=fix)

        return replace(
            self,
            checked=tuple(
                Checked(
                    one.name,
                    replace(
                        one.outcome,
                        note=hide(one.outcome.note),
                        details=tuple(map(hide, one.outcome.details)),
                        findings=tuple(map(clean, one.outcome.findings)),
                    ),
                )
                for one in self.checked
            ),
        )

    def _summary(self) -> str:
        if self.is_well:
            return ALL_WELL if self.live else f"{ALL_WELL} {NOT_LIVE}"
        weights = [finding.weight for finding in self.findings]
        counted = listing(
            count(weights.count(each), each) for each in ("error", "warning") if each in weights
        )
        them = "it" if len(weights) == 1 else "them"
        return f"{counted}. Fix {them}, then run `council doctor` again."


async def diagnose(*, live: bool = False, now: Callable[[], float] = time.time) -> Examination:
    """Read the configuration and check everything in it; `live` asks each member for one word.

    `now` is this machine's time, in seconds since 1970.
    """
    secrets = given_secrets()
    try:
        configuration = load()
        secrets += configuration.secrets
        if _is_set_up(configuration):
            examination = await _examine(configuration, live=live, now=now)
        else:
            nothing = Finding(str(Path.cwd()), "nothing is set up yet", "council init")
            examination = _only_of_configuration((nothing, *_misnamed()), live=live)
    except ConfigurationError as error:
        examination = _only_of_configuration(_findings(error.problems), live=live)
    return examination.hidden(Redaction(secrets).hide)


def _only_of_configuration(findings: tuple[Finding, ...], *, live: bool) -> Examination:
    return Examination((Checked(CONFIGURATION, Outcome(findings=findings)),), live)


async def _examine(configuration: Configuration, *, live: bool, now: Callable[[], float]) -> Examination:
    clock = Clock(now)
    async with AsyncExitStack() as stack:
        client = await _client(configuration, clock, stack)
        kept = _where_it_is_kept(configuration)
        of_models = ModelChecks(configuration, client).checks(live=live)
        # Without the provider's list, budgets would be judged by other prices than questions are.
        with_prices = tuple(one.name for one in of_models if one.name == PROVIDER)
        channels = ChannelChecks(
            operator_of(configuration, configuration.profiles),
            kept.channel_settings,
            client.catalog.refresh if with_prices else _no_prices,
            client.price,
        )
        checks = [
            Check(CONFIGURATION, lambda: _configured(configuration)),
            *machine_checks(configuration),
            *kept.checks(),
            *of_models,
            *channels.checks(needs=DATABASE, with_prices=with_prices),
            *await _of_discord(configuration, channels, clock, stack),
            *_of_slack(configuration, clock),
        ]
        asked = tuple(check.name for check in checks)
        checks.append(Check(CLOCK, clock.look, after=asked))
        return Examination(tuple(await carry_out(checks)), live)


async def _no_prices() -> None:
    """Fetch nothing: only servers of the members' own are asked, and the list isn't about those."""


def _where_it_is_kept(configuration: Configuration) -> FolderChecks | ServerChecks:
    if configuration.database:
        return ServerChecks(configuration.database, configuration.fingerprint)
    return FolderChecks(configuration.settings.council_data_dir)


async def _configured(configuration: Configuration) -> Outcome:
    read = _read_from(_files(configuration))
    said, findings = (
        "every setting can be used",
        (*_misnamed(), *_too_short(configuration), *_alone(configuration)),
    )
    try:
        check(configuration.settings)
    except ConfigurationError as error:
        if error.problems == [NO_PLATFORM]:
            said = "neither Discord nor Slack is configured; `council ask` and `council chat` work"
        else:
            findings = (*_findings(error.problems), *findings)
    # Beside what is wrong, there is no note.
    return Outcome(f"{said}; {read}", findings, details=(read,) if findings else ())


def _read_from(files: Sequence[str]) -> str:
    folder = Path.cwd()
    return f"read from {folder}: {listing(files)}" if files else f"no file read from {folder}"


def _files(configuration: Configuration) -> list[str]:
    """Name the files of the configuration that are there."""
    places = (Path(".env"), configuration.settings.council_config)
    return [str(place) for place in places if place.is_file()]


def _is_set_up(configuration: Configuration) -> bool:
    has_models = not configuration.is_demonstration
    return has_models or configuration.settings.has_platform or bool(_files(configuration))


def _misnamed() -> tuple[Finding, ...]:
    """Return the variables whose names are almost a setting's; nothing reads them."""
    return tuple(
        Finding(where, "nothing reads it", f"Call it {meant}, if that is meant", "warning")
        for where, meant in nearly_settings()
    )


def _too_short(configuration: Configuration) -> Iterator[Finding]:
    """Find what is too short for a model's key, such as a letter typed by mistake."""
    settings, profiles = configuration.settings, configuration.profiles.values()
    named = {seat.api_key_env for profile in profiles for seat in profile.seats if seat.api_key_env}
    keys = {name: configuration.keys[name.upper()] for name in sorted(named)}
    if settings.openrouter_base_url and settings.openrouter_api_key:  # OpenRouter's own have their form
        keys["OPENROUTER_API_KEY"] = settings.openrouter_api_key.get_secret_value()
    for name, key in keys.items():
        if len(key) < SHORT:
            yield Finding(
                name,
                f"it is too short for a key ({count(len(key), 'character')})",
                "Copy the whole of it again; where a server needs no key, remove it",
                "warning",
            )


def _alone(configuration: Configuration) -> Iterator[Finding]:
    """Find councils of one member, which nobody reviews."""
    for name, profile in configuration.profiles.items():
        if len(profile.members) == 1:
            key = f"profiles.{name}.members"
            in_file = configuration.origins.get(key, "").endswith(".toml")
            where = key if in_file else VARIABLES["members"]
            yield Finding(
                where,
                f"the council has one member, {profile.members[0].name}, so nobody reviews its answer",
                f"Add a second member to {where}, or a second seat with another persona",
                "warning",
            )


async def _client(configuration: Configuration, clock: Clock, stack: AsyncExitStack) -> "ModelClient":
    from council import demonstration
    from council.models.client import ModelClient

    settings = configuration.settings
    if configuration.is_demonstration and not demonstration.available():
        raise ConfigurationError([NOBODY_TO_ASK])
    key = settings.openrouter_api_key
    return await stack.enter_async_context(
        ModelClient(
            Directory(configuration.profiles.values()).find,
            base_url=settings.openrouter_base_url or OPENROUTER,
            api_key=key.get_secret_value() if key else None,
            dialect=settings.openrouter_dialect,
            keys=configuration.keys,
            on_date=clock.note,
        )
    )


async def _of_discord(
    configuration: Configuration, channels: ChannelChecks, clock: Clock, stack: AsyncExitStack
) -> list[Check]:
    settings = configuration.settings
    if settings.discord_token is None:
        return []
    from bot.discord.checks import DiscordChecks

    checks = DiscordChecks(
        settings.discord_token.get_secret_value(),
        api_base=settings.discord_api_base_url,
        reads_messages=settings.discord_message_content,
        access=configuration.operations.access,
        set_in_channels=lambda: channels.people,
        on_date=clock.note,
    )
    return (await stack.enter_async_context(checks)).checks()


def _of_slack(configuration: Configuration, clock: Clock) -> list[Check]:
    settings = configuration.settings
    if settings.slack_bot_token is None or not slack_is_whole(settings):
        return []
    from bot.slack.checks import SlackChecks

    app_token, secret = settings.slack_app_token, settings.slack_signing_secret
    host, number = settings.slack_http_host, settings.slack_http_port or 0
    return SlackChecks(
        settings.slack_bot_token.get_secret_value(),
        app_token=app_token.get_secret_value() if app_token else None,
        signing_secret=secret.get_secret_value() if secret else None,
        look_at_port=lambda: port(configuration, "SLACK_HTTP", host, number),
        api_url=settings.slack_api_url,
        allowed=configuration.operations.access.allow,
        reads_threads=any(one.context == "thread" for one in configuration.profiles.values()),
        on_date=clock.note,
    ).checks()


def _findings(problems: Sequence[Problem]) -> tuple[Finding, ...]:
    return tuple(Finding(one.where, one.what, one.fix) for one in problems)

"""`council doctor`: everything needed to run, checked at once, each fault with its fix.

The checks are in `bot.checks` and, for the platforms, in their own packages.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bot.app import client_of, operator_of
from bot.checks import machine
from bot.checks.channels import ChannelChecks
from bot.checks.check import MOST_COLUMNS, Check, CheckResult, Outcome, carry_out, wrapped
from bot.checks.models import PROVIDER, ModelChecks
from bot.config.configuration import NO_PLATFORM, Configuration, check, load, nearly_settings
from bot.config.settings import given_secrets
from bot.errors import ConfigurationError, Problem
from bot.view.wording.figures import count, listing
from council.accounts import Directory
from council.text.redaction import SHORT, Redaction

CONFIGURATION = "Configuration"
ALL_WELL = "Everything is fine."
NOT_LIVE = "No model was asked anything; --live asks each member for one word."


@dataclass(frozen=True, slots=True)
class Examination:
    """What all checks found; `hide` takes secrets out of what is written of it."""

    checked: tuple[CheckResult, ...]
    live: bool
    hide: Callable[[str], str] = str

    @property
    def is_well(self) -> bool:
        return not self.findings

    @property
    def findings(self) -> list[Problem]:
        return [finding for one in self.checked for finding in one.outcome.findings]

    def text(self, width: int = MOST_COLUMNS) -> str:
        """Write it for people: a line a check, and what is wrong with its fix below."""
        lines = [line for one in self.checked for line in one.lines(width, self.hide)]
        said = ALL_WELL if self.live else f"{ALL_WELL} {NOT_LIVE}"
        if weights := [finding.weight for finding in self.findings]:
            counted = listing(
                count(weights.count(each), each) for each in dict.fromkeys(sorted(weights))
            )
            them = "it" if len(weights) == 1 else "them"
            said = f"{counted}. Fix {them}, then run `council doctor` again."
        return "\n".join([*lines, "", *wrapped(said, 0, width)])

    def to_json(self) -> str:
        hide = self.hide
        checks = [
            {
                "check": one.name,
                "state": one.outcome.state,
                "note": hide(one.outcome.note),
                "details": [*map(hide, one.outcome.details)],
                "findings": [
                    {"weight": each.weight}
                    | {name: hide(getattr(each, name)) for name in ("where", "what", "fix")}
                    for each in one.outcome.findings
                ],
            }
            for one in self.checked
        ]
        return json.dumps({"ok": self.is_well, "checks": checks}, indent=2, ensure_ascii=False)


async def diagnose(*, live: bool = False, now: Callable[[], float] = time.time) -> Examination:
    """Read the configuration and check everything in it; `live` asks each member for one word.

    `now` is this machine's time, in seconds since 1970.
    """
    secrets = given_secrets()
    try:
        configuration = load()
        secrets += configuration.secrets
        has_models = not configuration.is_demonstration
        if has_models or configuration.settings.has_platform or _files(configuration):
            checked = await _examine(configuration, live=live, now=now)
        else:
            nothing = Problem(str(Path.cwd()), "nothing is set up yet", "Run `council init`")
            checked = [CheckResult(CONFIGURATION, Outcome(findings=(nothing, *_misnamed())))]
    except ConfigurationError as error:
        checked = [CheckResult(CONFIGURATION, Outcome(findings=tuple(error.problems)))]
    return Examination(tuple(checked), live, Redaction(secrets).hide)


async def _examine(
    configuration: Configuration, *, live: bool, now: Callable[[], float]
) -> list[CheckResult]:
    clock = machine.Clock(now)
    settings, database = configuration.settings, configuration.database
    async with AsyncExitStack() as stack:
        directory = Directory(configuration.profiles.values())
        opening = client_of(configuration, directory)(on_date=clock.note)
        client = await stack.enter_async_context(opening)
        kept: machine.Store = machine.FolderChecks(settings.council_data_dir)
        if database:
            kept = machine.ServerChecks(database, configuration.fingerprint)
        of_models = ModelChecks(configuration, client).checks(live=live)
        # Without the provider's list, budgets would be judged by other prices than questions are.
        listed = [one.name for one in of_models if one.name == PROVIDER]
        operator = operator_of(configuration, configuration.profiles)
        channels = ChannelChecks(operator, kept, client, listed)
        checks = [
            Check(CONFIGURATION, lambda: _configured(configuration)),
            Check("Secret files", lambda: asyncio.to_thread(machine.secret_files, configuration)),
            Check("Status port", lambda: machine.status_port(configuration)),
            *kept.checks(),
            *of_models,
            *channels.checks(needs=machine.DATABASE),
        ]
        if settings.discord_token:
            from bot.discord.checks import DiscordChecks

            discord = DiscordChecks(configuration, lambda: channels.people, clock.note)
            checks += (await stack.enter_async_context(discord)).checks()
        if settings.slack_is_whole:
            from bot.slack.checks import SlackChecks

            checks += SlackChecks(configuration, clock.note).checks()
        checks.append(Check("Clock", clock.look, after=tuple(check.name for check in checks)))
        return await carry_out(checks)


async def _configured(configuration: Configuration) -> Outcome:
    files, folder = _files(configuration), Path.cwd()
    read = f"read from {folder}: {listing(files)}" if files else f"no file read from {folder}"
    said = "every setting can be used"
    findings = (*_misnamed(), *_too_short(configuration), *_alone(configuration))
    try:
        check(configuration.settings)
    except ConfigurationError as error:
        if error.problems == [NO_PLATFORM]:
            said = "neither Discord nor Slack is configured; `council ask` and `council chat` work"
        else:
            findings = (*error.problems, *findings)
    # Beside what is wrong, there is no note.
    return Outcome(f"{said}; {read}", findings, details=(read,) if findings else ())


def _files(configuration: Configuration) -> list[str]:
    places = (Path(".env"), configuration.settings.council_config)
    return [str(place) for place in places if place.is_file()]


def _misnamed() -> Iterator[Problem]:
    for where, meant in nearly_settings():
        fix = f"Call it {meant}, if that is meant"
        yield Problem(where, "nothing reads it", fix, "warning")


def _too_short(configuration: Configuration) -> Iterator[Problem]:
    settings = configuration.settings
    seats = (seat for profile in configuration.profiles.values() for seat in profile.seats)
    named = sorted({seat.api_key_env for seat in seats if seat.api_key_env})
    keys = {name: configuration.keys[name.upper()] for name in named}
    if settings.openrouter_base_url and settings.openrouter_api_key:  # OpenRouter's own have their form
        keys["OPENROUTER_API_KEY"] = settings.openrouter_api_key.get_secret_value()
    for name, key in keys.items():
        if len(key) < SHORT:
            yield Problem(
                name,
                f"it is too short for a key ({count(len(key), 'character')})",
                "Copy the whole of it again; where a server needs no key, remove it",
                "warning",
            )


def _alone(configuration: Configuration) -> Iterator[Problem]:
    for profile in configuration.profiles.values():
        if len(profile.members) == 1:
            where = configuration.place(profile, profile.members[0])
            yield Problem(
                where,
                f"the council has one member, {profile.members[0].name}, so nobody reviews its answer",
                f"Add a second member to {where}, or a second seat with another persona",
                "warning",
            )

"""The configuration: precedence, secret files, and all problems reported at once, each with a fix."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.config.configuration import Configuration, load
from bot.config.settings import given_secrets
from bot.errors import ConfigurationError
from council.profile import PRESETS, Persona
from council.text.redaction import Redaction
from tests.pairs import rows

Write = Callable[..., None]

COUNCIL_TOML = """
[personas]
"The Skeptic" = "Doubt everything."

[profiles.default]
members = ["a/one", { model = "b/two", persona = "The Skeptic", fallbacks = ["b/three"] }]
chairman = "c/chair"
chairman_fallbacks = ["c/vice"]
straggler_grace = 20

[profiles.local]
members = [{ model = "llama", endpoint = "http://127.0.0.1:11434/v1" }]
"""


@pytest.fixture(autouse=True)
def _clean_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start from an empty working folder and an environment without settings."""
    import os

    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COUNCIL_", "OPENROUTER_", "DISCORD_", "SLACK_", "DATABASE_URL")):
            monkeypatch.delenv(name)


@pytest.fixture
def env(tmp_path: Path) -> Write:
    def write(**variables: str) -> None:
        lines = [f"{name}={value}" for name, value in variables.items()]
        (tmp_path / ".env").write_text("\n".join(lines), encoding="utf-8")

    return write


def toml(text: str) -> None:
    Path("council.toml").write_text(text, encoding="utf-8")


def problems() -> list[str]:
    """Load an invalid configuration; return the lines of its error."""
    with pytest.raises(ConfigurationError) as caught:
        load()
    return [str(problem) for problem in caught.value.problems]


def members(configuration: Configuration, profile: str = "default") -> list[str]:
    return [member.name for member in configuration.profiles[profile].members]


def test_a_key_and_members_make_the_default_council_and_nothing_the_demonstration(env: Write) -> None:
    """The first member takes the chair unless another is named; without key, address and endpoint the built-in model serves."""
    configuration = load()
    assert configuration.is_demonstration
    assert configuration.settings.council_data_dir == Path("data")
    env(OPENROUTER_API_KEY="sk-or-1", COUNCIL_MEMBERS="a/one, b/two")
    configuration = load()
    assert members(configuration) == ["a/one", "b/two"]
    assert configuration.profiles["default"].chairman.model == "a/one"
    assert configuration.profiles["default"].title_model is None
    assert configuration.origins["OPENROUTER_API_KEY"] == ".env"
    assert configuration.origins["profiles.default.members"] == ".env"


def test_the_environment_comes_before_env_and_toml(env: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """It sets only the default profile; keys it doesn't name keep the file's values."""
    toml(COUNCIL_TOML)
    env(OPENROUTER_API_KEY="sk-or-1", COUNCIL_MEMBERS="from/env-file", COUNCIL_TITLE_MODEL="t/env-file")
    monkeypatch.setenv("COUNCIL_MEMBERS", "x/one,y/two")
    configuration = load()
    default = configuration.profiles["default"]
    assert members(configuration) == ["x/one", "y/two"]
    assert default.chairman.model == "c/chair"
    assert default.title_model is not None
    assert default.title_model.model == "t/env-file"
    assert default.straggler_grace == 20
    assert configuration.origins["profiles.default.members"] == "environment"
    assert configuration.origins["profiles.default.chairman"] == "council.toml"
    assert members(configuration, "local") == ["llama"]


def test_personas_and_fallbacks_are_set_by_the_file(env: Write) -> None:
    """A persona is named once and used by name; one that the file defines replaces the built-in one of that name."""
    env(OPENROUTER_API_KEY="sk-or-1")
    toml(
        """
        [personas]
        "The Pragmatist" = "Ask what it costs."

        [profiles.default]
        answer_format = "structured"
        members = [
            { model = "a/one", persona = "The Architect" },
            { model = "a/one", persona = "The Pragmatist" },
        ]
        """
    )
    profile = load().profiles["default"]
    assert [member.persona for member in profile.members] == [
        PRESETS[0],
        Persona(name="The Pragmatist", prompt="Ask what it costs."),
    ]
    assert profile.answer_format == "structured"
    toml(COUNCIL_TOML)
    env(OPENROUTER_API_KEY="sk-or-1")
    default = load().profiles["default"]
    assert default.members[1].persona is not None
    assert default.members[1].persona.prompt == "Doubt everything."
    assert default.members[1].fallbacks == ("b/three",)
    assert [fallback.model for fallback in default.chairman_fallbacks] == ["c/vice"]


def test_members_with_their_own_endpoints_and_a_base_url_alone_need_no_key(env: Write) -> None:
    """Their calls don't go through OpenRouter; local servers often have none."""
    toml('[profiles.default]\nmembers = [{ model = "llama", endpoint = "http://127.0.0.1:11434/v1" }]')
    configuration = load()
    assert not configuration.is_demonstration
    assert members(configuration) == ["llama"]
    env(OPENROUTER_BASE_URL="http://127.0.0.1:9/api/v1/", COUNCIL_MEMBERS="a/one")
    assert load().settings.openrouter_base_url == "http://127.0.0.1:9/api/v1"


def test_secret_files_follow_the_same_precedence(
    env: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable itself comes before its file; a file that is overridden isn't read."""
    (tmp_path / "key").write_text("sk-or-from-file\n", encoding="utf-8")
    env(OPENROUTER_API_KEY_FILE=str(tmp_path / "key"), COUNCIL_MEMBERS="a/one")
    configuration = load()
    assert configuration.settings.openrouter_api_key is not None
    assert configuration.settings.openrouter_api_key.get_secret_value() == "sk-or-from-file"
    assert configuration.origins["OPENROUTER_API_KEY"] == ".env, by OPENROUTER_API_KEY_FILE"
    (tmp_path / "key").write_text("sk-or-from-file\n", encoding="utf-8")
    env(OPENROUTER_API_KEY="sk-or-1", COUNCIL_MEMBERS="a/one")
    monkeypatch.setenv("OPENROUTER_API_KEY_FILE", str(tmp_path / "key"))
    configuration = load()
    assert configuration.settings.openrouter_api_key == SecretStr("sk-or-from-file")
    assert configuration.origins["OPENROUTER_API_KEY"] == "environment, by OPENROUTER_API_KEY_FILE"
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-2")
    monkeypatch.setenv("OPENROUTER_API_KEY_FILE", "/nowhere/key")
    configuration = load()
    assert configuration.settings.openrouter_api_key == SecretStr("sk-or-2")
    assert configuration.origins["OPENROUTER_API_KEY"] == "environment"


OWN_KEY = '[profiles.default]\nmembers = [{{ model = "m", endpoint = "http://127.0.0.1:1/v1", api_key_env = "{}" }}]'
TO_A_SERVER = "profile default would send a platform's token to a model's server. Name the variable that holds the model's key in api_key_env"
BROKEN = tomllib.loads(Path(__file__).with_name("unusable.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", BROKEN.values(), ids=BROKEN)
def test_all_problems_are_reported_at_once(env: Write, tmp_path: Path, row: dict[str, Any]) -> None:
    """Each with where it is, what is wrong, and a fix; nothing leads to the built-in model."""
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    (tmp_path / "picture").write_bytes(b"\xff\xd8")
    env(**row["variables"])
    toml(row.get("toml", ""))
    assert problems() == row["said"]


def test_a_variable_of_the_environment_is_checked_and_so_is_a_dotenv(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing else is checked where it isn't text."""
    monkeypatch.setenv("COUNCIL_CHAIR", "c/chair")
    assert problems() == ["COUNCIL_CHAIR: there is no such setting. Did you mean COUNCIL_CHAIRMAN?"]
    Path(".env").write_bytes(b"OPENROUTER_API_KEY=\xff\xfe")
    assert problems() == [
        ".env: it can't be read: it isn't UTF-8 text. Save it as text that this user may read"
    ]


@pytest.mark.parametrize(
    ("variables", "text", "said"),
    [
        ({}, "members = [", "council.toml: it can't be read as TOML"),
        ({}, "[profiles]\ndefault = 3", "council.toml: profiles.default: it isn't a table"),
        ({}, "[profile.default]\nmembers = ['a']", "council.toml: profile: there is no such table"),
        ({"COUNCIL_CHAIRMAN": "a/one"}, "[", "council.toml: it can't be read as TOML"),
        ({"COUNCIL_MEMBERS": "a/one,,b/two"}, "", "COUNCIL_MEMBERS: there is an empty place"),
        ({"COUNCIL_MEMBER": "a/one"}, "", "COUNCIL_MEMBER in .env: there is no such setting"),
    ],
)
def test_members_in_an_unreadable_place_are_not_reported_missing(
    env: Write, variables: dict[str, str], text: str, said: str
) -> None:
    """Only the cause is reported, not its consequences."""
    env(OPENROUTER_API_KEY="sk-or-1", **variables)
    toml(text)
    (problem,) = problems()
    assert problem.startswith(said)


def test_opt_in_is_on_or_off(env: Write) -> None:
    """Its origin is known, because `/council-config` names it."""
    env(OPENROUTER_API_KEY="sk-or-1", COUNCIL_MEMBERS="a/one")
    toml("[access]\nopt_in = true\n")
    assert load().operations.access.opt_in
    assert load().origins["access.opt_in"] == "council.toml"
    toml('[access]\nopt_in = "perhaps"\n')
    [problem] = problems()
    assert problem.startswith("council.toml: access.opt_in: ")
    assert problem.endswith(". Write true or false, without quotes")


def test_an_endpoints_key_must_be_set_also_for_titles(env: Write) -> None:
    """The file names its variable, so that it contains no key; otherwise conversations would have no titles."""
    toml(
        "[profiles.default]\n"
        'members = [{ model = "m", endpoint = "http://127.0.0.1:1/v1", api_key_env = "VLLM_KEY" }]'
    )
    assert problems() == ["VLLM_KEY: profile default needs it, but it isn't set. Set it in .env"]
    env(VLLM_KEY="secret")
    configuration = load()
    assert configuration.profiles["default"].members[0].api_key_env == "VLLM_KEY"
    assert "secret" in configuration.secrets  # so that no log shows it
    toml(
        "[profiles.default]\n"
        'members = [{ model = "m", endpoint = "http://127.0.0.1:1/v1" }]\n'
        'title_model = { model = "t", endpoint = "http://127.0.0.1:2/v1", api_key_env = "TITLE_KEY" }'
    )
    assert problems() == ["TITLE_KEY: profile default needs it, but it isn't set. Set it in .env"]
    env(TITLE_KEY="secret")
    assert load().profiles["default"].title_model is not None


@rows("endpoint", ["htp://user:secret@127.0.0.1/v1", "http://", "http://127.0.0.1:99999/v1", "llama:1"])
def test_an_endpoint_is_an_address(endpoint: str) -> None:
    """A wrong one is found at the start, and isn't repeated: it may contain a password."""
    toml(f'[profiles.default]\nmembers = [{{ model = "llama", endpoint = "{endpoint}" }}]')
    (problem,) = problems()
    assert problem.startswith("profiles.default: endpoint of llama: an address ")
    assert problem.endswith(". Set it like http://127.0.0.1:11434/v1")
    assert "secret" not in problem


def test_admins_are_named_with_their_platform(env: Write) -> None:
    """In any letter case; an entry that matches nobody is a mistake."""
    env(COUNCIL_ADMINS="Discord:5, slack: u1")
    assert load().settings.council_admins == ["discord:5", "slack:U1"]


@rows("nobody", ["1234", "irc:5", "discord:", ":5", "discord:ada", "slack:ada"])
def test_an_admin_who_matches_nobody_is_refused(env: Write, nobody: str) -> None:
    """The error shows the right form."""
    env(COUNCIL_ADMINS=f"discord:5,{nobody}")
    [problem] = problems()
    assert problem == (
        f"COUNCIL_ADMINS: {nobody} is nobody's id; write discord:ID or slack:ID. It is the list of those "
        "who may stop any run and delete any answer: discord:ID,slack:ID"
    )


def test_a_databases_password_is_a_secret_and_its_server_is_none(env: Write, tmp_path: Path) -> None:
    """From the variable and from a file."""
    address = "postgresql://ada:hunter22@db.example.com/council"
    (tmp_path / "address").write_text(f"{address}\n")
    for variables in ({"DATABASE_URL": address}, {"DATABASE_URL_FILE": str(tmp_path / "address")}):
        env(**{"DATABASE_URL": "", "DATABASE_URL_FILE": "", **variables})
        configuration = load()
        assert configuration.database == address
        for secrets in (configuration.secrets, given_secrets()):
            assert "hunter22" in secrets
            hidden = Redaction(secrets).hide(f"{address} postgresql://db.example.com/council")
            assert "hunter22" not in hidden
            assert hidden.endswith("postgresql://db.example.com/council")


PLATFORM_VARIABLES = [
    f"{name}{ending}"
    for name in (
        "DISCORD_TOKEN",
        "SLACK_BOT_TOKEN",
        "SLACK_APP_TOKEN",
        "SLACK_SIGNING_SECRET",
        "DATABASE_URL",
    )
    for ending in ("", "_FILE")
]


@rows("variable", [*PLATFORM_VARIABLES, "discord_token"])
def test_a_platforms_token_is_no_models_key(variable: str) -> None:
    """Whether it is set or not."""
    toml(OWN_KEY.format(variable))
    assert problems() == [f"{variable}: {TO_A_SERVER}"]


def test_no_platforms_token_is_among_the_models_keys(env: Write) -> None:
    """Whatever variable a member names."""
    Path("token").write_text("xapp-1")
    ours = {"DISCORD_TOKEN": "t0ken", "SLACK_APP_TOKEN_FILE": "token"}
    env(**ours, VLLM_KEY="k", OPENROUTER_API_KEY="k2")
    toml(OWN_KEY.format("VLLM_KEY"))
    keys = load().keys
    assert keys["VLLM_KEY"] == "k"
    assert not keys.keys() & set(PLATFORM_VARIABLES)

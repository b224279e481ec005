"""Broken `council.toml`s: all that is wrong is said at once, by key, with what to do."""

import os
from pathlib import Path

import pytest

from bot.config.configuration import load
from bot.errors import ConfigurationError

NOBODY = "COUNCIL_MEMBERS: there is a model provider, but nobody to ask. Set COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro"
"""What follows where the file has no council that could be used."""
FILES: dict[str, tuple[str, ...]] = {
    "unclosed list": (
        '[profiles.default]\nmembers = ["a/one",\n',
        "council.toml: it can't be read as TOML (Invalid value (at the end, line 2)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "no value": (
        "[profiles.default]\nmembers =\n",
        "council.toml: it can't be read as TOML (Invalid value (at line 2, column 10)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "no quotes": (
        "[profiles.default]\nmembers = [openai/gpt-5]\n",
        "council.toml: it can't be read as TOML (Invalid value (at line 2, column 12)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "unclosed text": (
        '[profiles.default]\nmembers = ["a/one]\n',
        "council.toml: it can't be read as TOML (Illegal character '\\n' (at line 2, column 19)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "unclosed header": (
        '[profiles.default\nmembers = ["a/one"]\n',
        "council.toml: it can't be read as TOML (Expected ']' at the end of a table declaration (at line 1, column 18)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "key twice": (
        '[profiles.default]\nmembers = ["a/one"]\nmembers = ["b/two"]\n',
        "council.toml: it can't be read as TOML (Cannot overwrite a value (at line 3, column 20)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "table twice": (
        "[limits]\nruns = 1\n[limits]\nruns = 2\n",
        "council.toml: it can't be read as TOML (Cannot declare ('limits',) twice (at line 3, column 8)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "no equals sign": (
        "[limits]\nruns 3\n",
        "council.toml: it can't be read as TOML (Expected '=' after a key in a key/value pair (at line 2, column 6)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "Python's True": (
        '[profiles.default]\nmembers = ["a/one"]\nweb = True\n',
        "council.toml: it can't be read as TOML (Invalid value (at line 3, column 7)). Correct that line, then try again: what comes after it wasn't read",
    ),
    "wrong table": (
        '[profile.default]\nmembers = ["a/one"]\n',
        "council.toml: profile: there is no such table. Did you mean profiles?",
    ),
    "table without profiles": (
        '[fast]\nmembers = ["a/one"]\n',
        "council.toml: fast: there is no such table. Write [profiles.fast]",
        NOBODY,
    ),
    "key above every table": (
        'strategy = "consensus"\n[profiles.default]\nmembers = ["a/one"]\n',
        "council.toml: strategy: there is no such table. Write it below [profiles.default]",
    ),
    "profile is no table": (
        '[profiles]\ndefault = "a/one"\n',
        "council.toml: profiles.default: it isn't a table. Write [profiles.default]",
    ),
    "limits is no table": (
        "limits = 5\n",
        "council.toml: limits: it isn't a table. Write [limits]",
        NOBODY,
    ),
    "persona is no text": (
        "[personas]\nSkeptic = 5\n",
        "council.toml: personas.Skeptic: it isn't text. Write it in quotes",
        NOBODY,
    ),
    "no members": (
        "[profiles.default]\nquorum = 2\n",
        "profiles.default.members: the council has no members. Set COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro",
    ),
    "another profile without members": (
        '[profiles.default]\nmembers = ["a/one"]\n[profiles.fast]\nquorum = 2\n',
        'profiles.fast.members: the council has no members. Set members = ["openai/gpt-5", "anthropic/claude-sonnet-4.5", "google/gemini-2.5-pro"]',
    ),
    "empty members": (
        "[profiles.default]\nmembers = []\n",
        "profiles.default.members: the council has no members. Set COUNCIL_MEMBERS=openai/gpt-5,anthropic/claude-sonnet-4.5,google/gemini-2.5-pro",
    ),
    "members are text": (
        '[profiles.default]\nmembers = "a/one, b/two"\n',
        'profiles.default.members: it isn\'t a list. Write a list, such as ["one", "two"]',
    ),
    "member is a number": (
        '[profiles.default]\nmembers = ["a/one", 5]\n',
        "profiles.default.members.1: it isn't a table. Write a model's id in quotes, or a table such as { model = \"openai/gpt-5\" }",
    ),
    "member without a model": (
        '[profiles.default]\nmembers = ["a/one", { endpoint = "http://127.0.0.1:1/v1" }]\n',
        "profiles.default.members.1.model: it is missing. Add it",
    ),
    "empty model": (
        '[profiles.default]\nmembers = ["a/one", ""]\n',
        "profiles.default.members.1.model: it is empty. Fill it in, or remove it",
    ),
    "misspelt model key": (
        '[profiles.default]\nmembers = [{ modle = "a/one" }, "b/two"]\n',
        "profiles.default.members.0.model: it is missing. Add it",
        "profiles.default.members.0.modle: there is no such key. Did you mean model?",
    ),
    "too many members": (
        "[profiles.default]\nmembers = [" + "'a/one', " * 27 + "]",
        "profiles.default.members: it has more than 26 entries. Remove some",
    ),
    "a member twice": (
        '[profiles.default]\nmembers = ["a/one", "a/one"]\n',
        "profiles.default: a/one sits on the council 2 times; give each seat a persona of its own. Correct it; docs/configuration.md lists every key",
    ),
    "unknown persona": (
        '[profiles.default]\nmembers = [{ model = "a/one", persona = "The Architct" }]\n',
        "council.toml: profiles.default.members: there is no persona 'The Architct'. Did you mean The Architect?",
    ),
    "a persona by another name": (
        """
        [personas]
        "The Critic" = "Look."
        [profiles.default]
        members = [
            { model = "a/one", persona = "the-pragmatist" },
            { model = "a/two", persona = "devils advocate" },
            { model = "a/three", persona = "critic" },
        ]
        """,
        "council.toml: profiles.default.members: there is no persona 'the-pragmatist'. Did you mean The Pragmatist?",
        "council.toml: profiles.default.members: there is no persona 'devils advocate'. Did you mean The Devil's Advocate?",
        "council.toml: profiles.default.members: there is no persona 'critic'. Did you mean The Critic?",
    ),
    "extra that says what we say": (
        '[profiles.default]\nmembers = [{ model = "m", extra = { stream = false, top_k = 4 } }]\n',
        "profiles.default.members.0: extra can't set stream: the council sends it itself. Correct it; docs/configuration.md lists every key",
    ),
    "unknown dialect": (
        '[profiles.default]\nmembers = [{ model = "m", endpoint = "http://127.0.0.1:1/v1", dialect = "olama" }]\n',
        "profiles.default.members.0.dialect: it isn't one of generic, openai, azure, openrouter, anthropic, gemini, mistral, groq, together, fireworks, deepseek, xai, cerebras, perplexity, cohere, moonshot, zai, dashscope, huggingface, cloudflare, databricks, deepinfra, sambanova, vercel, minimax, nebius, ollama, vllm, sglang, lmstudio, llamacpp, koboldcpp or litellm. Did you mean ollama?",
    ),
    "endpoint without http": (
        '[profiles.default]\nmembers = [{ model = "m", endpoint = "127.0.0.1:1/v1" }]\n',
        "profiles.default: endpoint of m: an address starts with http:// or https://. Set it like http://127.0.0.1:11434/v1",
    ),
    "endpoint's key unset": (
        '[profiles.default]\nmembers = [{ model = "m", endpoint = "http://127.0.0.1:1/v1", api_key_env = "NO_SUCH_KEY" }]\n',
        "NO_SUCH_KEY: profile default needs it, but it isn't set. Set it in .env",
    ),
    "key in the place of its variable": (
        '[profiles.default]\nmembers = [{ model = "m", endpoint = "http://127.0.0.1:1/v1", api_key_env = "sk-or-v1-0123456789" }]\n',
        "profiles.default: api_key_env of m: it isn't the name of a variable. Write a name such as VLLM_API_KEY there, and set that variable to the key in .env",
    ),
    "a platform's token": (
        '[profiles.default]\nmembers = [{ model = "m", endpoint = "http://127.0.0.1:1/v1", api_key_env = "DISCORD_TOKEN" }]\n',
        "DISCORD_TOKEN: profile default would send a platform's token to a model's server. Name the variable that holds the model's key in api_key_env",
    ),
    "misspelt key": (
        '[profiles.default]\nmembers = ["a/one"]\nstrategie = "consensus"\n',
        "profiles.default.strategie: there is no such key. Did you mean strategy?",
    ),
    "unknown key": (
        '[profiles.default]\nmembers = ["a/one"]\ncolour = "red"\n',
        "profiles.default.colour: there is no such key. Remove it; `council config` lists what there is",
    ),
    "misspelt strategy": (
        '[profiles.default]\nmembers = ["a/one"]\nstrategy = "concensus"\n',
        "profiles.default.strategy: it isn't one of consensus, coverage, risk_averse, security_first, cost_capped or compare_only. Did you mean consensus?",
    ),
    "unknown strategy": (
        '[profiles.default]\nmembers = ["a/one"]\nstrategy = "best"\n',
        "profiles.default.strategy: it isn't one of consensus, coverage, risk_averse, security_first, cost_capped or compare_only. Choose one of them",
    ),
    "misspelt mode": (
        '[profiles.default]\nmembers = ["a/one"]\ncritique_mode = "extract"\nanswer_format = "json"\n',
        "profiles.default.critique_mode: it isn't one of full or extracted. Did you mean extracted?",
        "profiles.default.answer_format: it isn't one of plain or structured. Choose one of them",
    ),
    "rounds": (
        '[profiles.default]\nmembers = ["a/one"]\nmax_rounds = 9\n',
        "profiles.default.max_rounds: it is above 5. Write 5 or less",
    ),
    "no rounds": (
        '[profiles.default]\nmembers = ["a/one"]\nmax_rounds = 0\n',
        "profiles.default.max_rounds: it is below 1. Write 1 or more",
    ),
    "number in quotes": (
        '[profiles.default]\nmembers = ["a/one"]\nquorum = "two"\n',
        "profiles.default.quorum: it isn't a whole number. Write a whole number without quotes, such as 2",
    ),
    "half a number": (
        '[profiles.default]\nmembers = ["a/one"]\nmax_rounds = 2.5\n',
        "profiles.default.max_rounds: it isn't a whole number. Write a whole number without quotes, such as 2",
    ),
    "true in quotes": (
        '[profiles.default]\nmembers = ["a/one"]\nweb = "perhaps"\n',
        "profiles.default.web: it is neither true nor false. Write true or false, without quotes",
    ),
    "temperature": (
        '[profiles.default]\nmembers = ["a/one"]\ntemperature = 3\nstraggler_grace = -1\n',
        "profiles.default.straggler_grace: it is below 0. Write 0 or more",
        "profiles.default.temperature: it is above 2. Write 2 or less",
    ),
    "endless": (
        '[profiles.default]\nmembers = ["a/one"]\ncall_deadline = inf\n',
        "profiles.default.call_deadline: it isn't a finite number. Write a number without quotes, such as 0.5",
    ),
    "criteria": (
        '[profiles.default]\nmembers = ["a/one"]\ncriteria = "Cost:x"\n',
        "profiles.default.criteria: “Cost:x” isn't a criterion; write each as a name, with :weight and ! for a must-have where wanted: Cost:3, Security:2!, Speed. Correct it; docs/configuration.md lists every key",
    ),
    "criteria as tables": (
        '[profiles.default]\nmembers = ["a/one"]\n[[profiles.default.criteria]]\nname = "Cost"\nwieght = 2\nweight = 200\n',
        "profiles.default.criteria.0.weight: it is above 100. Write 100 or less",
        "profiles.default.criteria.0.wieght: there is no such key. Did you mean weight?",
    ),
    "limits": (
        '[limits]\nruns = 0\nrun_per_user = 3\ncooldown = "long"\n',
        "council.toml: limits.runs: it isn't above 0. Write more than 0",
        "council.toml: limits.cooldown: it isn't a number. Write a number without quotes, such as 0.5",
        "council.toml: limits.run_per_user: there is no such key. Did you mean runs_per_user?",
        NOBODY,
    ),
    "durability": (
        "[durability]\ndrain_seconds = -1\nresume = 5\n",
        "council.toml: durability.drain_seconds: it is below 0. Write 0 or more",
        "council.toml: durability.resume: there is no such key. Did you mean resume_within?",
        NOBODY,
    ),
    "budgets": (
        '[budgets]\nrun = "much"\nuser_day = 0\nchannel_day = inf\nmonth = 5\n',
        "council.toml: budgets.run: it isn't a number. Write a number without quotes, such as 0.5",
        "council.toml: budgets.user_day: it isn't above 0. Write more than 0",
        "council.toml: budgets.channel_day: it is above 1000000. Write 1000000 or less",
        "council.toml: budgets.month: there is no such key. Did you mean user_month?",
        NOBODY,
    ),
    "access": (
        '[access]\nallow = ["C0123456789"]\n[access.deny]\nusers = "U0123456789"\nchannels = ["#general"]\npeople = []\n',
        "council.toml: access.allow: it isn't a table. Write [access.allow]",
        'council.toml: access.deny.channels: \'#general\' isn\'t an id of that kind. List ids, such as ["123456789012345678", "C0123456789"]',
        'council.toml: access.deny.users: it isn\'t a list. List ids, such as ["123456789012345678", "C0123456789"]',
        "council.toml: access.deny.people: there is no such key. [access.deny] has workspaces, channels, categories, roles, groups, users",
        NOBODY,
    ),
    "access to nothing": (
        '[profiles.fast]\nmembers = ["a/one"]\n[access.profiles.fats]\nusers = ["U0123456"]\n',
        NOBODY,
        "council.toml: access.profiles.fats: there is no such profile. Did you mean fast?",
    ),
    "everything at once": (
        'rounds = 2\n[limit]\nruns = 1\n[budgets]\nrun = -1\n[profiles.default]\nmembers = [{ modle = "a/one" }, { model = "b/two", endpoint = "there" }, { model = "c", persona = "Nobody" }]\nquorum = 0\nstrategy = "risky"\n[profiles.fast]\nmembers = ["a/one", "a/one"]\ntemprature = 1\n',
        "council.toml: budgets.run: it isn't above 0. Write more than 0",
        "council.toml: rounds: there is no such table. Remove it; `council config` lists what there is",
        "council.toml: limit: there is no such table. Did you mean limits?",
        'council.toml: profiles.default.members: there is no persona \'Nobody\'. Add it under [personas]: "Nobody" = "what it should look at"',
        "profiles.default.members.0.model: it is missing. Add it",
        "profiles.default.members.0.modle: there is no such key. Did you mean model?",
        "profiles.default.quorum: it isn't above 0. Write more than 0",
        "profiles.default.strategy: it isn't one of consensus, coverage, risk_averse, security_first, cost_capped or compare_only. Did you mean risk_averse?",
        "profiles.fast.temprature: there is no such key. Did you mean temperature?",
        "profiles.fast: a/one sits on the council 2 times; give each seat a persona of its own. Correct it; docs/configuration.md lists every key",
        "profiles.default: endpoint of b/two: an address starts with http:// or https://. Set it like http://127.0.0.1:11434/v1",
    ),
}
"""Each file with what is said of it; of a syntax error, the first with its line."""


@pytest.mark.parametrize("row", FILES.values(), ids=FILES)
def test_all_that_is_wrong_is_said_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: tuple[str, ...]
) -> None:
    """Where, what and what to do, in a person's words."""
    text, *said = row
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COUNCIL_", "OPENROUTER_", "DISCORD_", "SLACK_", "DATABASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENROUTER_BASE_URL", "http://127.0.0.1:1/v1")
    (tmp_path / "council.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load()
    assert [str(problem) for problem in caught.value.problems] == said
    assert not any("nput should" in each or "pydantic" in each for each in said)

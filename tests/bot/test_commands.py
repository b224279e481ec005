"""The typed form of `/council`: flags before the question, as people really type them."""

import pytest

from bot.commands import COMMANDS, Typed, UsageError, parse


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Shard now?", Typed("Shard now?")),
        ("  Shard\nnow?  ", Typed("Shard\nnow?")),
        ("--private Shard now?", Typed("Shard now?", private=True)),
        ("\u2014private Shard now?", Typed("Shard now?", private=True)),
        ("--PRIVATE  Shard now?", Typed("Shard now?", private=True)),
        ("Is --private a flag?", Typed("Is --private a flag?")),
        ("-- --private is a flag?", Typed("--private is a flag?")),
        ("\u201cShard\u201d or not?", Typed("\u201cShard\u201d or not?")),
    ],
)
def test_flags_are_read_before_the_first_word_only(text: str, typed: Typed) -> None:
    """The question itself stays as it was typed."""
    assert parse(text) == typed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no question. Write one: /council Should we shard now?"),
        ("--private", "There is no question. Write one: /council Should we shard now?"),
        (
            "--privat Shard?",
            "There is no flag --privat. Did you mean --private? Flags stand before the question.",
        ),
        (
            "--rounds 2 Shard?",
            "There is no flag --rounds. There is: --private. Flags stand before the question.",
        ),
    ],
)
def test_what_is_typed_wrongly_is_said_with_what_is_right(text: str, said: str) -> None:
    """Nothing is asked then."""
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert str(caught.value) == said


def test_the_registry_fits_the_platforms() -> None:
    """Names and descriptions within Discord's limits; one required option first."""
    for command in COMMANDS:
        assert command.name == command.name.lower()
        assert len(command.description) <= 100
        assert all(len(option.description) <= 100 for option in command.options)
        required = [option.required for option in command.options]
        assert required == sorted(required, reverse=True)

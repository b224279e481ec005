"""Changing settings leaves every other line as it was."""

import io
import tomllib

import pytest
from dotenv import dotenv_values
from hypothesis import given
from hypothesis import strategies as st

from bot.config.editing import with_table, with_variables
from tests.pairs import rows

MEMBERS, CHAIRMAN = '[\n    "a/x",\n    { model = "b/y" },\n]', '"c/z"'
DEFAULT = ("profiles", "default"), {"members": MEMBERS, "chairman": CHAIRMAN}
COUNCIL = f"[profiles.default]\nmembers = {MEMBERS}\nchairman = {CHAIRMAN}\n"


@rows(
    ("before", "after"),
    [
        ("", "KEY=1\n"),
        ("# mine\nOTHER='a b' # c", "# mine\nOTHER='a b' # c\nKEY=1\n"),
        ("KEY=\nOTHER=2\n", "KEY=1\nOTHER=2\n"),
        ("\n\nkey = 'old'  # why\n\nOTHER=2\n", "\n\nKEY=1\n\nOTHER=2\n"),
        ("export KEY=old\r\nOTHER=2\r\n", "export KEY=1\nOTHER=2\r\n"),
        ("KEY=a\nOTHER=2\nKEY=b\n", "KEY=1\nOTHER=2\n"),
        ('OTHER="two\nKEY=lines"\n', 'OTHER="two\nKEY=lines"\nKEY=1\n'),
        ("# KEY=commented\n", "# KEY=commented\nKEY=1\n"),
    ],
)
def test_a_variable_changes_where_it_is(before: str, after: str) -> None:
    """Or is added at the end."""
    assert with_variables(before, {"KEY": "1"}) == after


def test_a_removed_variable_is_emptied_and_odd_values_are_safe() -> None:
    """A missing one isn't added; `${…}` names another variable there; below, the value's own marks would end a quotation."""
    assert with_variables("KEY=1\n", {"KEY": "", "ABSENT": ""}) == "KEY=\n"
    with pytest.raises(ValueError, match=r"^$"):
        with_variables("", {"KEY": "a${HOME}b"})
    assert with_variables("A=1\nB='", {"KEY": "*"}) == "KEY='*'\nA=1\nB='"


@given(st.text(), st.text(st.characters(min_codepoint=33, max_codepoint=126)))
def test_what_is_written_is_read_back(before: str, value: str) -> None:
    """Whatever else is in the file."""
    try:
        after = with_variables(before, {"KEY": value})
    except ValueError:
        assert "${" in value
        return
    assert (dotenv_values(stream=io.StringIO(after)).get("KEY") or "") == value


@rows(
    ("before", "after"),
    [
        ("", COUNCIL),
        ("[limits]\nrunning = 2", f"[limits]\nrunning = 2\n\n{COUNCIL}"),
        ('[profiles.own]\nmembers = ["m"]\n', f'[profiles.own]\nmembers = ["m"]\n\n{COUNCIL}'),
        (
            '[profiles.default] # mine\n# note\nmembers = [\n  "m", # ]\n  "n"]\nquorum = 2\n\n[limits]\n',
            f"{COUNCIL.replace(']', '] # mine', 1)}# note\nquorum = 2\n\n[limits]\n",
        ),
    ],
)
def test_changing_members_changes_nothing_else(before: str, after: str) -> None:
    """Comments and other keys are kept."""
    assert with_table(before, *DEFAULT) == after
    assert tomllib.loads(after)["profiles"]["default"]["chairman"] == "c/z"


@rows(
    "text",
    [
        'profiles.default.members = ["m"]\n',
        '[profiles]\ndefault = { members = ["m"] }\n',
        'x = """\n[profiles.default]\n"""\n',
    ],
)
def test_an_unsafe_change_is_left_to_a_person(text: str) -> None:
    """The file stays as it is."""
    with pytest.raises(ValueError):  # noqa: PT011 - TOML's own error is one
        with_table(text, *DEFAULT)

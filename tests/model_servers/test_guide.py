"""docs/providers.md shows the rows of the table of servers."""

import re
import tomllib

import httpx
import pytest

from council.models.servers import SERVERS, Server, is_own, known_server
from council.profile import PRESETS, Profile
from tests.model_servers import table
from tests.model_servers.stand_in import ORIGINALS
from tests.pairs import rows

TEXT = table.GUIDE.read_text(encoding="utf-8")
ROWS = [row for row in SERVERS.values() if row.name != "generic"]
FAMILIES = {original.dialect: original.title for original in ORIGINALS.values()}


@rows("row", ROWS, ids=lambda row: row.name)
def test_an_address_of_the_table_says_which_server_it_is(row: Server) -> None:
    """Or is of one's own machine, or OpenRouter's, which needs none."""
    title, address, _ = row.shown
    assert title
    assert re.split(r"\W", title)[0].lower() in FAMILIES[row.name].lower()
    if "://" in address:
        url = httpx.URL(address)
        assert known_server(url).name == ("generic" if is_own(url) else row.name)


@pytest.mark.parametrize(("part", "text"), table.guide().items())
def test_the_guide_shows_each_row(part: str, text: str) -> None:
    """Its address, its name for a proxy and what else is to know of it."""
    assert table.part_of(TEXT, part) == text, "python -m tests.model_servers.table"


def test_the_guides_members_are_profiles() -> None:
    """As they are in the file."""
    one, three = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    names = [persona.name for persona in PRESETS]
    seats = tomllib.loads(one)["profiles"]["default"]["members"]
    assert {seat["persona"] for seat in seats} <= {*names}
    profile = Profile.model_validate(tomllib.loads(three)["profiles"]["default"])
    addresses = [httpx.URL(str(seat.endpoint)) for seat in profile.members]
    assert [known_server(address).name for address in addresses] == ["openai", "gemini", "generic"]

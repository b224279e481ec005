"""docs/providers.md names addresses and dialects that the program knows."""

import re
import tomllib

import httpx
import pytest

from council.models.servers import SERVERS, is_own, known_server
from council.personas import PRESETS
from council.profile import Profile
from tests.model_servers.stand_in import ORIGINALS
from tests.model_servers.table import DOCUMENT

TEXT = DOCUMENT.read_text(encoding="utf-8")
ADDRESSES = re.findall(r"^\| ([^|]+) \| `(https?://[^`]+)` \|", TEXT, re.MULTILINE)
FAMILIES = {original.dialect: original.title for original in ORIGINALS.values()}


@pytest.mark.parametrize(("server", "address"), ADDRESSES)
def test_an_address_of_the_table_says_which_server_it_is(server: str, address: str) -> None:
    """Or is of one's own machine."""
    url = httpx.URL(address)
    dialect = known_server(url).name
    assert is_own(url) or dialect != "generic"
    first = re.split(r"\W", server)[0].lower()
    assert is_own(url) or first in FAMILIES[dialect].lower()


def test_the_table_has_every_server() -> None:
    """OpenRouter without an address."""
    hosted = {known_server(httpx.URL(address)).name for _, address in ADDRESSES} - {"generic"}
    assert hosted == {row.name for row in SERVERS.values() if row.hosts} - {"openrouter"}


def test_the_guide_names_every_dialect() -> None:
    """In the order of nothing in particular."""
    _, _, section = TEXT.partition("## Behind a proxy")
    section, _, _ = section.partition("\n## ")
    _, _, names = section.partition("The names:")
    assert {*re.findall(r"`(\w+)`", names)} == {*SERVERS}


def test_the_guides_members_are_profiles() -> None:
    """As they are in the file."""
    one, three = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    names = [persona.name for persona in PRESETS]
    seats = tomllib.loads(one)["profiles"]["default"]["members"]
    assert {seat["persona"] for seat in seats} <= {*names}
    profile = Profile.model_validate(tomllib.loads(three)["profiles"]["default"])
    addresses = [httpx.URL(str(seat.endpoint)) for seat in profile.members]
    assert [known_server(address).name for address in addresses] == ["openai", "gemini", "generic"]

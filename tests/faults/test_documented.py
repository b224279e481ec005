"""The record of the platforms' errors is complete and consistent."""

from tests.discord_server.rest import ROUTES
from tests.faults.documented import DISCORD, SLACK


def test_every_documented_endpoint_is_one_of_discords() -> None:
    """The fake serves it under the same name, so that it can be made to fail."""
    assert DISCORD.endpoints.keys() <= ROUTES.keys()


def test_every_code_has_a_status_and_is_used() -> None:
    """No code is only in the table or only in an endpoint."""
    used = {code for endpoint in DISCORD.endpoints for code in DISCORD.errors(endpoint)}
    assert used == DISCORD.codes.keys()


def test_every_method_has_the_common_errors_and_its_own() -> None:
    """An error is in one of the two lists."""
    for method, own in SLACK.methods.items():
        assert set(SLACK.errors(method)) == {*own, *SLACK.common}
        assert not {*own} & {*SLACK.common}, method

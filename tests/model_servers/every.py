"""All stand-ins, in the order in which people read of them."""

from tests.model_servers.hosts import HOSTS
from tests.model_servers.local import LOCAL
from tests.model_servers.makers import MAKERS
from tests.model_servers.stand_in import StandIn

EVERY: tuple[type[StandIn], ...] = (*MAKERS, *HOSTS, *LOCAL)

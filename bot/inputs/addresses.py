"""Which addresses on the internet may be asked for a page: public ones, in whatever notation.

Sources: RFC 6890 and IANA's special-purpose registries (through `ipaddress`), RFC 6052 (NAT64),
RFC 3056 (6to4), RFC 4291 (addresses that hold an IPv4 address).
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether an address is a public one of a single machine; false for what is no address.

    What an IPv6 address holds of an IPv4 one is looked at: the connection would end there.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return _is_public_4(found)
    if found.scope_id is not None:
        return False
    inner = _within(found)
    if inner is not None:
        return _is_public_4(inner)
    return found in _GLOBAL_UNICAST and found.is_global and found.teredo is None


def _is_public_4(address: IPv4Address) -> bool:
    return address.is_global and not (address.is_multicast or address.is_reserved)


def _within(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address inside a mapped, NAT64 or 6to4 IPv6 address, if there is one."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.sixtofour

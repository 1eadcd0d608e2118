"""Which IP addresses are public: the rule behind "private addresses are refused"."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NEVER_PUBLIC_V4 = (
    IPv4Network("192.0.0.0/24"),  # IETF protocol assignments; older Pythons call most of it global
    IPv4Network("192.88.99.0/24"),  # the withdrawn 6to4 relay anycast (RFC 7526)
    IPv4Network("168.63.129.16/32"),  # Azure's host agent: public by number, reachable only from inside
)
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_TEREDO = IPv6Network("2001::/32")
_CARRIES_V4_IN_LAST_BITS = (
    IPv6Network("::ffff:0:0/96"),  # IPv4-mapped (RFC 4291)
    IPv6Network("::ffff:0:0:0/96"),  # IPv4-translated (RFC 2765)
    IPv6Network("::/96"),  # IPv4-compatible, deprecated (RFC 4291)
    IPv6Network("64:ff9b::/96"),  # NAT64's well-known prefix (RFC 6052)
)


def is_public_address(text: str) -> bool:
    """Tell whether `text` is the numeric address of a host on the public internet.

    False for loopback, private, link-local, multicast, reserved, unspecified and carrier NAT (100.64/10)
    addresses, for IPv6 forms that carry such an IPv4 address, and for whatever is not an address at all.
    The ranges are the IANA special-purpose address registries.
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return _is_public_v4(address) if isinstance(address, IPv4Address) else _is_public_v6(address)


def _is_public_v4(address: IPv4Address) -> bool:
    special = address.is_multicast or address.is_reserved or not address.is_global
    return not special and not any(address in network for network in _NEVER_PUBLIC_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    if any(address in network for network in _CARRIES_V4_IN_LAST_BITS):
        return _is_public_v4(IPv4Address(int(address) & 0xFFFF_FFFF))
    if address.sixtofour is not None:
        return _is_public_v4(address.sixtofour)
    # IANA has given out nothing but 2000::/3, so that asking for it refuses every other range at once.
    # Teredo hides an arbitrary IPv4 peer behind a relay.
    return address in _GLOBAL_UNICAST_V6 and address not in _TEREDO and address.is_global

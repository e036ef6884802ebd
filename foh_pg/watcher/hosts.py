"""Which names a watcher answers to."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

# Letters that a name or an address can have. Some programs read %2e or a dot of another script as a dot.
HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[0-9A-Za-z._-]+))(?::[0-9]+)?")


def answers_to(header: str | None, names: Collection[str] = ()) -> bool:
    """Whether a request with this Host header is meant for us.

    A stranger's page can have its own name resolve to 127.0.0.1 and then read, in the browser of somebody on
    this machine, whatever is served there (DNS rebinding). The browser still sends the stranger's name, which
    has a dot. So these are taken: addresses, names without a dot (localhost, a service in a network of
    containers), names below localhost, and the names that were allowed. Programs that send no name are no
    browsers.

    Examples
    --------
    >>> [answers_to(host) for host in ("127.0.0.1:9187", "[::1]:9187", "localhost", "watch:9187", None)]
    [True, True, True, True, True]
    >>> answers_to("rebound.example.com:9187"), answers_to("foh.example.com", ["foh.example.com"])
    (False, True)
    >>> answers_to("evil%2ecom"), answers_to("[e%2eb]"), answers_to("[abc]")
    (False, False, False)
    """
    if header is None:
        return True
    found = HOST.fullmatch(header.strip())
    if found is None:
        return False
    if found["v6"] is not None:
        return is_address(found["v6"])
    name = found["name"].rstrip(".").lower()
    allowed = "." not in name or name.endswith(".localhost") or name in {other.lower() for other in names}
    return allowed or is_address(name)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True

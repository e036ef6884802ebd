"""Which names a watcher answers to."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.%]+\]|[^:\[\]/\s]+)(?::\d+)?")


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
    """
    if header is None:
        return True
    found = HOST.fullmatch(header.strip())
    if found is None:
        return False
    name = found["name"].strip("[]").rstrip(".").lower()
    if "." not in name or name.endswith(".localhost") or name in {other.lower() for other in names}:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

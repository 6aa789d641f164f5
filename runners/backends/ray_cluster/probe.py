"""Asks a Ray cluster one question with the token of its environment; the exit status tells."""

import sys

from ray._raylet import (  # type: ignore[attr-defined]  # private, and without types
    AuthenticationTokenLoader,
    GcsClient,
)
from ray.exceptions import AuthenticationError

from runners.backends.ray_cluster.admission import LET_IN, NO_TOKEN, REFUSED

_ASK_S = 10


def main() -> int:
    """Ask for the nodes: Ray has no other way to ask before one is connected."""
    if not AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        return NO_TOKEN
    try:
        GcsClient(address=sys.argv[1]).get_all_node_info(timeout=_ASK_S)
    except AuthenticationError:
        return REFUSED
    return LET_IN


if __name__ == "__main__":
    raise SystemExit(main())

"""How the protocol writes values down."""

from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
"""An object of Discord's JSON: the protocol is checked by the rules, not by types."""


def iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()

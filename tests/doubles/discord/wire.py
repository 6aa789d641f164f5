"""The protocol's JSON and its times."""

from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
"""A JSON object of the protocol; `rules/` checks its fields, not the type checker."""


def iso(moment: float | None) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC).isoformat()

"""What a backup of a whole database holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BackupContents:
    """When it was made and by which version of Podium, and how many rows each table has in it."""

    made_at: datetime
    podium: str
    rows: Mapping[str, int]

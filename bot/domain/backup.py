"""What a backup of a whole database contains."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BackupContents:
    """When and by which version of Podium it was made, and the rows in each table."""

    made_at: datetime
    podium: str
    rows: Mapping[str, int]

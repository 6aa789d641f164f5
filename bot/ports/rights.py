"""What each person may, by the source that vouches for it."""

from datetime import timedelta
from typing import Protocol

from bot.domain.ids import PersonId
from bot.domain.records import RightsGrant
from bot.domain.rights import Rights


class PeoplesRights(Protocol):
    """Rights as each source, such as `discord-guild:123`, saw them last."""

    async def note(self, person: PersonId, source: str, rights: Rights) -> None:
        """Replace what this source vouches for; when, is kept to the minute."""

    async def forget(self, person: PersonId, source: str) -> bool:
        """It vouches for nothing any more; False when it did not."""

    async def of(self, person: PersonId) -> Rights:
        """What all sources vouch for together."""

    async def stale(self, kind: str, age: timedelta, limit: int) -> tuple[RightsGrant, ...]:
        """What sources `kind:...` have not said for so long, the longest ago first."""

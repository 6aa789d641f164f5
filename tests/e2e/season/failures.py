"""How a local Discord fails during a season: rarely at any time, and more in outages."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from typing_extensions import override

from tests.doubles.discord.limits import CALLBACK
from tests.doubles.discord.rest.faults import ANY, Fault, Faults


@dataclass(eq=False)
class Chance(Fault):
    """A failure of some requests."""

    name: str = ""
    share: float = 1.0
    dice: random.Random = field(default_factory=random.Random)

    @override
    def applies_to(self, method: str, path: str) -> bool:
        return super().applies_to(method, path) and self.dice.random() < self.share


@dataclass(frozen=True)
class Outage:
    """A time in which more requests fail."""

    at_s: float
    for_s: float
    status: int = 500
    share: float = 1.0
    retry_after: float = 0.0
    scope: str = "shared"

    def fault(self, dice: random.Random) -> Chance:
        """Return the failure of its requests."""
        fault = Chance(status=self.status, retry_after=self.retry_after, scope=self.scope)
        kind = f"429 ({self.scope})" if self.status == 429 else f"{self.status} in an outage"
        fault.name, fault.share, fault.dice = kind, self.share, dice
        return fault


def background_failures(dice: random.Random) -> list[Chance]:
    """Return the failures at any time: lost responses, and requests that get no response."""

    def some(name: str, share: float, method: str, path: str, status: int | None) -> Chance:
        fault = Chance(method, path, status, carried_out=True)
        fault.name, fault.share, fault.dice = name, share, dice
        return fault

    return [
        some("acknowledgement carried out, answer 502", 0.05, "POST", CALLBACK, 502),
        some("acknowledgement carried out, no answer", 0.02, "POST", CALLBACK, None),
        some("carried out, answer 502", 0.02, "POST", ANY, 502),
        some("carried out, answer 502", 0.02, "PATCH", ANY, 502),
        some("carried out, no answer", 0.005, ANY, ANY, None),
        some("thread member: carried out, answer 502", 0.05, "PUT", ANY, 502),
    ]


class Failures:
    """Applies the background failures and the outages of a plan."""

    def __init__(self, faults: Faults, seed: int, outages: Sequence[Outage]) -> None:
        self._faults, self._outages = faults, outages
        self._dice = random.Random(seed)  # noqa: S311 - no secret
        self._all: list[Chance] = []

    async def run(self) -> None:
        """Return when the last outage is over; background failures continue until `end`."""
        async with asyncio.TaskGroup() as group:
            for outage in self._outages:
                group.create_task(self._apply(outage))
            for fault in background_failures(self._dice):
                self._add(fault)

    async def _apply(self, outage: Outage) -> None:
        await asyncio.sleep(outage.at_s)
        fault = outage.fault(self._dice)
        self._add(fault)
        await asyncio.sleep(outage.for_s)
        fault.lifted.set()

    def _add(self, fault: Chance) -> None:
        self._all.append(fault)
        self._faults.add(fault)

    def end(self) -> None:
        """End all failures."""
        for each in self._all:
            each.lifted.set()

    @property
    def hits(self) -> Counter[str]:
        """Return how many requests failed in each way."""
        counted = Counter[str]()
        for each in self._all:
            counted[each.name] += each.hits
        return counted

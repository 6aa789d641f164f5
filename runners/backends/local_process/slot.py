"""A slot of this machine: the harness is a child of this process."""

import logging
from collections.abc import Sequence

from runners.contract.evaluation import CPU
from runners.contract.runner import Capabilities
from runners.slots.fitness import Fitness
from runners.slots.harness import Gpu, Harness, Walls, start_harness

_log = logging.getLogger(__name__)


class LocalSlot:
    """It has one GPU, or none; or several, joined for one evaluation that spreads over them."""

    def __init__(self, gpus: tuple[Gpu, ...], walls: Walls) -> None:
        self.gpus = gpus
        self.walls = walls
        self.harness: Harness | None = None
        self.offered: Capabilities | None = None
        self.fitness = Fitness(gpus[0].kind if gpus else CPU, tuple(gpu.handle for gpu in gpus))

    async def warm(self) -> Harness:
        if self.harness is not None and not self.harness.alive:
            _log.warning("harness %d died while idle; starting another", self.harness.pid)
            await self.cool()
        if self.harness is None:
            self.harness = await start_harness(self.gpus, self.walls)
            self.offered = self.harness.capabilities
        return self.harness

    async def rest(self) -> None:
        if self.harness is not None:
            await self.harness.rest()

    async def cool(self) -> None:
        harness, self.harness = self.harness, None
        if harness is not None:
            await harness.stop()


def join(slots: Sequence[LocalSlot]) -> LocalSlot:
    """One slot that sees the GPUs of all of them, for which no other evaluation runs there."""
    return LocalSlot(tuple(gpu for slot in slots for gpu in slot.gpus), slots[0].walls)

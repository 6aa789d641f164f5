"""What travels between this process, Ray's driver and the nodes, as JSON."""

from enum import StrEnum

from pydantic import Field

from runners.contract.evaluation import CPU, Evaluation, Progress
from runners.contract.gpus import spelled
from runners.contract.wire import Wire

CPU_RESOURCE = "PODIUM_CPU"
"""The custom resource of a node that evaluates on its CPU: `CPU` counts cores, and is Ray's."""
LINES_MAX = 64 << 20
"""Bytes of the longest line between this process and the driver: JSON in JSON grows."""
POLL_S = 1.0
"""How long a question for news may wait at a node: the first question of another driver, and its
killing of the slot, were seen to wait until it ends."""


class DriverFault(StrEnum):
    """Why there is no answer."""

    ERROR = "error"
    """Something of ours failed."""
    UNFIT = "unfit"
    """The GPU of the slot is not fit."""
    LOST = "lost"
    """The process or the node ended under it."""
    UNREACHED = "unreached"
    """It had ended before anything was begun."""
    AWAY = "away"
    """It cannot be reached now; what was begun may go on."""


class DriverOperation(StrEnum):
    """What the driver is asked to do."""

    RESOURCES = "resources"
    """Say what each node that is alive has."""
    PLACE = "place"
    """Have a slot made, wherever its GPUs are."""
    ASK = "ask"
    """Call a method of a slot."""
    END = "end"
    """Kill a slot and what runs in it."""
    SLOTS = "slots"
    """Name every slot that is alive, of other workers too."""


class Command(Wire):
    """One line to the driver."""

    number: int = 0
    deed: DriverOperation
    slot: str = ""
    kind: str = CPU
    gpus: int = 1
    strict: bool = False
    method: str = ""
    arguments: tuple[str, ...] = ()
    within_s: float = 0.0


class DriverReply(Wire):
    """One line from the driver; the first one, number 0, says whether it is connected."""

    number: int
    text: str = ""
    """The answer, or what the fault is."""
    fault: DriverFault | None = None


class Resources(Wire):
    """What the nodes have, by the names of their resources."""

    nodes: tuple[dict[str, float], ...]

    def most(self, kind: str) -> int:
        """The most GPUs of a type on one node that an evaluation could have."""
        name = self.called(kind)
        return max((int(_least(node, name)) for node in self.nodes), default=0)

    def called(self, kind: str) -> str:
        """The resource by which nodes announce a GPU type: under its one name or another."""
        named = {name for node in self.nodes for name in node}
        return kind if kind in named else spelled(kind, sorted(named)) or kind

    def kinds(self) -> tuple[str, ...]:
        """The GPU types that nodes announce."""
        named = {name for node in self.nodes for name in node}
        custom = {each for each in named if ":" not in each and each not in _OF_RAY}
        return tuple(sorted(CPU if each == CPU_RESOURCE else each for each in custom))


_OF_RAY = frozenset({"CPU", "GPU", "memory", "object_store_memory"})


def demand(kind: str, gpus: int) -> dict[str, float]:
    """The resources of a slot, by Ray's names."""
    return {CPU_RESOURCE: 1} if kind == CPU else {kind: gpus, "GPU": gpus}


def _least(node: dict[str, float], kind: str) -> float:
    return min(node.get(name, 0) for name in demand(kind, 1))


class SlotNames(Wire):
    """The names of slots."""

    names: tuple[str, ...]


class Assignment(Wire):
    """A request for a slot, under the name of its call."""

    call: str
    request: str
    limit_s: float
    """After how many seconds its harness is killed."""


class CallUpdate(Wire):
    """What became of a call so far."""

    number: int = Field(default=0, ge=0)
    """How many news there were; one that has seen these waits for more."""
    progress: Progress | None = None
    evaluation: Evaluation | None = None
    fault: DriverFault | None = None
    words: str = ""

    @property
    def ended(self) -> bool:
        """Whether there will be no more."""
        return self.evaluation is not None or self.fault is not None

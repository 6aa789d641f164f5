"""The JSON messages between this process, Ray's driver and the nodes."""

from enum import StrEnum

from pydantic import Field

from runners.contract.evaluation import CPU, Evaluation, Progress
from runners.contract.gpus import find_gpu_type
from runners.contract.wire import Wire

CPU_RESOURCE = "PODIUM_CPU"
"""The custom resource of a node that evaluates on its CPU; Ray's own `CPU` counts cores."""
LINES_MAX = 64 << 20
"""The most bytes of a line to or from the driver. It is more than a harness's limit, because the
harness's JSON is a string in the driver's JSON, which is longer."""
POLL_S = 1.0
"""Seconds of a long poll at a node. It is short because of an observation: another driver's first
request to the slot, and its attempt to kill the slot, waited for the end of a running poll."""


class DriverFault(StrEnum):
    """Why a command or a call has no result."""

    ERROR = "error"
    """The system failed."""
    UNFIT = "unfit"
    """The GPU of the slot is unfit."""
    LOST = "lost"
    """The process or node ended during the call."""
    UNREACHED = "unreached"
    """The process or node had ended before the call started."""
    UNAVAILABLE = "unavailable"
    """The cluster or node cannot be reached now; a running call may continue."""


class DriverOperation(StrEnum):
    """The operation of a command."""

    RESOURCES = "resources"
    """Return the resources of each live node."""
    PLACE = "place"
    """Create a slot on any node that has the GPUs."""
    CALL = "call"
    """Call a method of a slot."""
    END = "end"
    """Kill a slot and everything in it."""
    SLOTS = "slots"
    """Return the names of all live slots, including those of other workers."""


class Command(Wire):
    """One line to the driver."""

    number: int = 0
    operation: DriverOperation
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
    """The result, or the message of the fault."""
    fault: DriverFault | None = None


class Resources(Wire):
    """The resources of the live nodes; for each node, name of a resource -> amount."""

    nodes: tuple[dict[str, float], ...]

    def most(self, kind: str) -> int:
        """The most GPUs of a type that one evaluation can have on one node."""
        needed = demand(self.resource_name(kind), 1)
        counts = (min(node.get(name, 0) for name in needed) for node in self.nodes)
        return int(max(counts, default=0))

    def resource_name(self, kind: str) -> str:
        """The name of a GPU type's resource: `kind`, or another name of the same card."""
        names = {name for node in self.nodes for name in node}
        return kind if kind in names else find_gpu_type(kind, sorted(names)) or kind

    def kinds(self) -> tuple[str, ...]:
        """The GPU types that nodes announce."""
        names = {name for node in self.nodes for name in node}
        custom = {name for name in names if ":" not in name and name not in _RAY_RESOURCES}
        return tuple(sorted(CPU if name == CPU_RESOURCE else name for name in custom))


_RAY_RESOURCES = frozenset({"CPU", "GPU", "memory", "object_store_memory"})


def demand(kind: str, gpus: int) -> dict[str, float]:
    """The resources of a slot, by Ray's names."""
    return {CPU_RESOURCE: 1} if kind == CPU else {kind: gpus, "GPU": gpus}


class SlotNames(Wire):
    """The names of slots."""

    names: tuple[str, ...]


class Assignment(Wire):
    """A request for a slot, with the id of its call."""

    call: str
    request: str
    limit_s: float
    """Seconds after which its harness is killed."""


class CallUpdate(Wire):
    """The state of a call."""

    number: int = Field(default=0, ge=0)
    """The number of this update; a poll that has seen it waits for the next one."""
    progress: Progress | None = None
    evaluation: Evaluation | None = None
    fault: DriverFault | None = None
    message: str = ""

    @property
    def ended(self) -> bool:
        """Whether this is the last update."""
        return self.evaluation is not None or self.fault is not None

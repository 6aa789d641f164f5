"""The runner on this machine: the harness of each slot is a child of this process."""

import importlib.util
import logging
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from runners.contract.evaluation import CPU
from runners.contract.gpus import gpu_type
from runners.contract.runner import Capabilities, Runner, RunnerError
from runners.slots.harness import Gpu, Harness, SandboxOptions, start_harness
from runners.slots.runner import Fitness, SlotRunner

_NOISE = re.compile(r"NVIDIA|Tesla|GeForce|Quadro|SXM\d*|HBM\w*|\d+GB", re.IGNORECASE)
_LISTED_CARD = re.compile(r"^GPU (\d+): (.+?) \(UUID: (\S+)\)$", re.MULTILINE)
_DRIVER = Path("/proc/driver/nvidia/gpus")
_TOOL_S = 30


def type_of_model(model: str) -> str:
    """The canonical GPU type for the driver's model name: H200, A100-80GB, RTX-4090 and so on."""
    words = [word for word in re.split(r"[\s_-]+", model) if word and not _NOISE.fullmatch(word)]
    name = "-".join(words) or "GPU"
    if words[:1] == ["A100"]:  # the only card with two types by memory size
        name = "A100-80GB" if "80GB" in model else "A100"
    return gpu_type(name)


def from_driver(folder: Path) -> Iterator[Gpu]:
    """The cards in the driver's folder in /proc, sorted by PCI bus id as in nvidia-smi."""
    for index, card in enumerate(sorted(folder.glob("*/information"))):
        lines = (line.partition(":") for line in card.read_text().splitlines())
        facts = {name.strip(): value.strip() for name, _, value in lines}
        handle = facts.get("GPU UUID", "?")  # has question marks until the card is first used
        yield Gpu(index, str(index) if "?" in handle else handle, type_of_model(facts["Model"]))


def from_listing(text: str) -> Iterator[Gpu]:
    """The cards in the output of `nvidia-smi -L`."""
    for index, model, handle in _LISTED_CARD.findall(text):
        yield Gpu(int(index), handle, type_of_model(model))


def find_gpus(driver: Path = _DRIVER) -> tuple[Gpu, ...]:
    """The GPUs of this machine, by index."""
    if found := tuple(from_driver(driver)):
        return found
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        listed = subprocess.run(
            [tool, "-L"], capture_output=True, text=True, timeout=_TOOL_S, check=False
        )
    except (subprocess.TimeoutExpired, OSError):
        return ()
    return tuple(from_listing(listed.stdout))


_log = logging.getLogger(__name__)


class LocalSlot:
    """A slot with one GPU, with none (the CPU), or with several for one multi-GPU evaluation."""

    def __init__(self, gpus: tuple[Gpu, ...], sandbox: SandboxOptions) -> None:
        self.gpus = gpus
        self.sandbox = sandbox
        self.harness: Harness | None = None
        self.offered: Capabilities | None = None
        self.fitness = Fitness(gpus[0].kind if gpus else CPU, tuple(gpu.handle for gpu in gpus))

    async def warm_harness(self) -> Harness:
        if self.harness is not None and not self.harness.alive:
            _log.warning("harness %d died while idle; starting another", self.harness.pid)
            await self.stop()
        if self.harness is None:
            self.harness = await start_harness(self.gpus, self.sandbox)
            self.offered = self.harness.capabilities
        return self.harness

    async def wait_ready(self) -> None:
        if self.harness is not None:
            await self.harness.wait_ready()

    async def stop(self) -> None:
        harness, self.harness = self.harness, None
        if harness is not None:
            await harness.stop()


def join(slots: Sequence[LocalSlot]) -> LocalSlot:
    """One slot with the GPUs of all these slots, which must not be used at the same time."""
    return LocalSlot(tuple(gpu for slot in slots for gpu in slot.gpus), slots[0].sandbox)


NAME = "local_process"


def create(
    *, slots: Mapping[str, int] | None = None, strict: bool = False, hidden: Iterable[Path] = ()
) -> Runner:
    """A runner over this machine's GPUs, or its CPU if it has none.

    `slots` is GPU type -> number of slots, at most one per GPU; the default is one per GPU. With
    `strict` the harness refuses to run if a sandbox layer is missing. Submissions cannot see the
    folders `hidden`. ModuleNotFoundError if torch, which every harness needs, is missing;
    RunnerError for slots that this machine does not have.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    found = find_gpus()
    kinds = list(dict.fromkeys(gpu.kind for gpu in found)) or [CPU]
    wanted = slots or {kind: max(1, _count(found, kind)) for kind in kinds}
    sandbox = SandboxOptions(strict=strict, hidden=tuple(hidden))
    slots_of = {kind: _slots(kind, count, found, sandbox) for kind, count in wanted.items()}
    return SlotRunner(NAME, slots_of, join, "this machine", one_machine=True)


def _count(found: tuple[Gpu, ...], kind: str) -> int:
    return sum(gpu.kind == kind for gpu in found)


def _slots(
    kind: str, count: int, found: tuple[Gpu, ...], sandbox: SandboxOptions
) -> tuple[LocalSlot, ...]:
    if kind == CPU:
        if count != 1:
            raise RunnerError(
                f"{count} slots of {CPU} were requested; a machine runs one evaluation at a time "
                "on its CPU, because two would disturb each other's times"
            )
        return (LocalSlot((), sandbox),)
    gpus = [gpu for gpu in found if gpu.kind == kind]
    if not 1 <= count <= len(gpus):
        raise RunnerError(f"{count} slots of {kind} were requested; this machine has {len(gpus)}")
    return tuple(LocalSlot((gpu,), sandbox) for gpu in gpus[:count])

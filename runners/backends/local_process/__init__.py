"""Runs the harness on this machine: one warm process a slot, one slot a GPU or one for the CPU."""

import importlib.util
from collections.abc import Iterable, Mapping
from pathlib import Path

from runners.backends.local_process.gpus import find_gpus
from runners.backends.local_process.slot import LocalSlot, join
from runners.contract.evaluation import CPU
from runners.contract.runner import Runner, RunnerError
from runners.slots.harness import Gpu, Walls
from runners.slots.pool import SlotRunner

NAME = "local_process"


def create(
    *,
    slots: Mapping[str, int] | None = None,
    strict: bool = False,
    hidden: Iterable[Path] = (),
) -> Runner:
    """A runner over this machine's GPUs, or over its CPU where it has none.

    `slots` asks for a number of slots by GPU type; a GPU never gets more than one. `strict`
    refuses to run where a layer of the sandbox is missing; no submission sees the folders `hidden`.
    ModuleNotFoundError without torch, which every harness needs.
    """
    if importlib.util.find_spec("torch") is None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    found = find_gpus()
    kinds = list(dict.fromkeys(gpu.kind for gpu in found)) or [CPU]
    wanted = slots or {kind: max(1, _count(found, kind)) for kind in kinds}
    walls = Walls(strict=strict, hidden=tuple(hidden))
    slots_of = {kind: _slots(kind, count, found, walls) for kind, count in wanted.items()}
    return SlotRunner(NAME, slots_of, join, "this machine")


def _count(found: tuple[Gpu, ...], kind: str) -> int:
    return sum(gpu.kind == kind for gpu in found)


def _slots(kind: str, count: int, found: tuple[Gpu, ...], walls: Walls) -> tuple[LocalSlot, ...]:
    if kind == CPU:
        if count != 1:
            raise RunnerError(
                f"{count} slots of {CPU} are asked for; a machine runs one evaluation at a time "
                "on its CPU, because two would disturb each other's times"
            )
        return (LocalSlot((), walls),)
    gpus = [gpu for gpu in found if gpu.kind == kind]
    if not 1 <= count <= len(gpus):
        raise RunnerError(f"{count} slots of {kind} are asked for; this machine has {len(gpus)}")
    return tuple(LocalSlot((gpu,), walls) for gpu in gpus[:count])

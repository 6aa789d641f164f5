"""Whether a GPU is fit for the next evaluation.

It is fit if no other process computes on it, its memory is free and cleared, it had no
uncorrectable memory error, and its arithmetic is right. The server checks once before its first
evaluation, and every judge checks before it reads its request.
"""

import json
import os
import select
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass

import torch

from runners.contract.runner import Health
from runners.harness.gpu.nvml import Monitor
from runners.harness.gpu.warm import make_context
from runners.harness.sandbox.program import visible_gpus

SETTLE_S = 10.0
"""Seconds for the driver to free the memory of exited processes."""
LOOK_S = 0.02
LEFT_MOST = 256 << 20
"""The most bytes in use beyond those of the first check; the driver needs some itself."""
SAMPLE_BYTES = 2 << 30
"""Bytes of fresh memory that a judge examines; unless all are zero, all free memory is wiped."""
BLOCK_BYTES = 1 << 30
RESERVE_BYTES = 1 << 30
"""Bytes of GPU memory that wiping leaves unallocated."""
NUMBERS = 1 << 20
SQUARES = 34_348_066_600
"""The sum of the squares of 0 to `NUMBERS` - 1, each modulo `MODULUS`."""
MODULUS = 65_521


@dataclass(frozen=True, slots=True)
class Card:
    """The state of one GPU before its first evaluation."""

    handle: str
    """Its UUID or its index."""
    used: int
    """Bytes of its memory in use."""
    errors: int
    """Uncorrectable memory errors since the driver was loaded."""


def first_look() -> tuple[Card, ...]:
    """Return the state of this process's GPUs, before any process of the harness uses them.

    A child process reads it, because a process that has used the driver cannot fork others that do.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.write(writer, json.dumps([asdict(each) for each in _cards()]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told = answer.read()
    os.waitpid(pid, 0)
    return tuple(Card(**each) for each in json.loads(told or b"[]"))


def _cards() -> Iterable[Card]:
    for handle in visible_gpus():
        monitor = Monitor(handle)
        yield Card(handle, monitor.used(), monitor.memory_errors())


def examine(cards: Iterable[Card]) -> Health:
    """Check the GPUs and create a context; no process of the harness may have one before."""
    for card in cards:
        if why := _unfitness(card):
            return Health(unfit=why)
    make_context()
    try:
        wiped = 0
        for number in range(torch.cuda.device_count()):
            with torch.cuda.device(number):
                if not reckons_right("cuda"):
                    return Health(unfit=f"GPU {number} makes mistakes: a sum came out wrong")
                wiped += scrub()
    except (RuntimeError, AssertionError) as error:
        return Health(unfit=f"CUDA does not work: {error}"[:1000])
    return Health(scrubbed=wiped) if torch.cuda.device_count() else Health(unfit="there is no GPU")


def _unfitness(card: Card) -> str:
    """Return what occupies a GPU or is wrong with it; "" if nothing.

    Waits up to `SETTLE_S` for processes that are just exiting.
    """
    monitor = Monitor(card.handle)
    if monitor.memory_errors() > card.errors:
        return f"GPU {card.handle}: its memory failed beyond correction"
    deadline = time.monotonic() + SETTLE_S
    while why := _occupied(monitor, card):
        if time.monotonic() > deadline:
            return f"GPU {card.handle}: {why}"
        select.select([], [], [], LOOK_S)
    return ""


def _occupied(monitor: Monitor, card: Card) -> str:
    if others := monitor.processes():
        return f"{others} other process{'es' if others > 1 else ''} computing on it"
    left = monitor.used() - card.used
    return f"{left >> 20} MiB of its memory were not given back" if left > LEFT_MOST else ""


def reckons_right(device: str) -> bool:
    """Return whether integer arithmetic over some megabytes gives the right result."""
    numbers = torch.arange(NUMBERS, dtype=torch.int64, device=device)
    return int((numbers * numbers % MODULUS).sum()) == SQUARES


def scrub() -> int:
    """Wipe the current GPU's free memory if a sample is not all zero; return the wiped bytes."""
    free, _ = torch.cuda.mem_get_info()
    sample = torch.empty(min(SAMPLE_BYTES, free // 4) & ~7, dtype=torch.uint8, device="cuda")
    dirty = bool(sample.view(torch.int64).any())
    del sample
    torch.cuda.empty_cache()
    return _wipe() if dirty else 0


def _wipe() -> int:
    blocks: list[torch.Tensor] = []
    with suppress(torch.OutOfMemoryError):
        while torch.cuda.mem_get_info()[0] > BLOCK_BYTES + RESERVE_BYTES:
            blocks.append(torch.zeros(BLOCK_BYTES, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    wiped = BLOCK_BYTES * len(blocks)
    blocks.clear()
    torch.cuda.empty_cache()
    return wiped

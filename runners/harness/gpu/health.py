"""The state of a GPU: NVML's readings, and whether the GPU is fit for the next evaluation.

A GPU is fit if no other process computes on it, its memory is free and cleared, it had no new
uncorrectable memory error, and its arithmetic is right. The server reads its GPUs once before its
first evaluation, and every judge checks them before it reads its request.
"""

import ctypes
import functools
import json
import os
import select
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field

import torch

from runners.contract.runner import Health
from runners.harness.gpu.warm import limit_copy_queues
from runners.harness.sandbox.program import visible_gpus

_NAME_BYTES = 96
_INSUFFICIENT_SIZE = 7
_UNCORRECTED, _SINCE_BOOT = 1, 0
_TEMPERATURE = 0
_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}
_PROCESSES = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses")
"""NVML's name of the function, and its name before driver 510."""
_REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
"""NVML's name of the function, and its name before driver 535."""
SLOWED = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Reasons for lower clocks that make times meaningless.

The power cap is not among them, because a heavy kernel reaches it by itself. Source: NVML API,
`nvmlClocksEventReasons`.
"""
_AT_POWER_CAP = 0x04


@dataclass(frozen=True, slots=True)
class Readings:
    """A GPU's identity and current readings."""

    name: str
    uuid: str
    driver: str
    clocks: dict[str, float] = field(default_factory=dict)
    """As in `evaluation.Environment`."""


class Monitor:
    """Reads one GPU through NVML; without NVML every value is unknown.

    `handle` is the GPU's UUID or index.
    """

    def __init__(self, handle: str) -> None:
        self.handle = handle
        self.device = ctypes.c_void_p()
        nvml = _open_library()
        self.nvml = nvml if nvml and self._find_device(nvml, handle) == 0 else None

    def _find_device(self, nvml: ctypes.CDLL, handle: str) -> int:
        pointer = ctypes.byref(self.device)
        if handle.isdecimal():
            return int(nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(handle)), pointer))
        return int(nvml.nvmlDeviceGetHandleByUUID(handle.encode(), pointer))

    def used(self) -> int:
        """Bytes of the GPU's memory in use by all processes; 0 if unknown."""
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        status = self.nvml and self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory[2] if status == 0 else 0

    def processes(self) -> int:
        """How many processes have a compute context on the GPU; 0 if unknown."""
        count = ctypes.c_uint(0)
        if self.nvml is None:
            return 0
        status = _function(self.nvml, _PROCESSES)(self.device, ctypes.byref(count), None)
        return count.value if status == _INSUFFICIENT_SIZE else 0

    def memory_errors(self) -> int:
        """Uncorrectable memory errors since the driver was loaded; 0 if unknown."""
        count = ctypes.c_ulonglong()
        status = self.nvml and self.nvml.nvmlDeviceGetTotalEccErrors(
            self.device, _UNCORRECTED, _SINCE_BOOT, ctypes.byref(count)
        )
        return int(count.value) if status == 0 else 0

    def read(self) -> Readings | None:
        """The GPU's identity and its state; None without NVML."""
        if self.nvml is None:
            return None
        return Readings(
            name=_text(self.nvml.nvmlDeviceGetName, self.device),
            uuid=_text(self.nvml.nvmlDeviceGetUUID, self.device),
            driver=_text(self.nvml.nvmlSystemGetDriverVersion),
            clocks=self.clocks(),
        )

    def slowed_by(self) -> tuple[str, ...]:
        """The reasons that slow the GPU now, as in `SLOWED`; () if there are none."""
        reasons = self._reasons(self.nvml) if self.nvml else 0
        return tuple(name for bit, name in SLOWED.items() if reasons & bit)

    def _reasons(self, nvml: ctypes.CDLL) -> int:
        reasons = ctypes.c_ulonglong()
        status = _function(nvml, _REASONS)(self.device, ctypes.byref(reasons))
        return reasons.value if status == 0 else 0

    def clocks(self) -> dict[str, float]:
        """The state now, as in `evaluation.Environment.clocks`, without what cannot be read."""
        nvml = self.nvml
        if nvml is None:
            return {}
        value = ctypes.c_uint()
        readings: dict[str, float] = {}
        for name, kind in _CLOCKS.items():
            if nvml.nvmlDeviceGetClockInfo(self.device, kind, ctypes.byref(value)) == 0:
                readings[name] = float(value.value)
        if nvml.nvmlDeviceGetTemperature(self.device, _TEMPERATURE, ctypes.byref(value)) == 0:
            readings["temperature_c"] = float(value.value)
        if nvml.nvmlDeviceGetPowerUsage(self.device, ctypes.byref(value)) == 0:
            readings["power_w"] = value.value / 1000
        if nvml.nvmlDeviceGetEnforcedPowerLimit(self.device, ctypes.byref(value)) == 0:
            readings["power_limit_w"] = value.value / 1000
        readings["power_capped"] = float(bool(self._reasons(nvml) & _AT_POWER_CAP))
        return readings


@functools.cache
def first_gpu() -> Monitor:
    """The monitor of this process's first visible GPU."""
    return Monitor(f"GPU-{torch.cuda.get_device_properties(0).uuid}")


def _open_library() -> ctypes.CDLL | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return nvml if nvml.nvmlInit_v2() == 0 else None


def _function(nvml: ctypes.CDLL, names: tuple[str, str]) -> Callable[..., int]:
    """The function of NVML with the first name or, in an older driver, with the second one."""
    name, old_name = names
    function: Callable[..., int] = getattr(nvml, name, None) or getattr(nvml, old_name)
    return function


def _text(call: Callable[..., int], *device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    return buffer.value.decode(errors="replace") if call(*device, buffer, _NAME_BYTES) == 0 else ""


SETTLE_S = 10.0
"""Seconds that the driver has to free the memory of exited processes."""
POLL_S = 0.02
MAX_LEFT_BYTES = 256 << 20
"""The most bytes in use beyond those of the first check; the driver needs some itself."""
SAMPLE_BYTES = 2 << 30
"""Bytes of fresh memory that a judge examines; unless all are zero, all free memory is wiped."""
BLOCK_BYTES = 1 << 30
RESERVE_BYTES = 1 << 30
"""Bytes of GPU memory that wiping leaves unallocated."""
SUMMED_NUMBERS = 1 << 20
SUM_OF_SQUARES = 34_348_066_600
"""The sum of the squares of 0 to `SUMMED_NUMBERS` - 1, each modulo `MODULUS`."""
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


def read_cards() -> tuple[Card, ...]:
    """Return the state of this process's GPUs, before any process of the harness uses them.

    A child process reads it, because after a process has used the driver, its forks cannot use it.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with suppress(BaseException):
            os.write(writer, json.dumps([asdict(card) for card in _cards()]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        data = answer.read()
    os.waitpid(pid, 0)
    return tuple(Card(**card) for card in json.loads(data or b"[]"))


def _cards() -> Iterable[Card]:
    for handle in visible_gpus():
        monitor = Monitor(handle)
        yield Card(handle, monitor.used(), monitor.memory_errors())


def examine(cards: Iterable[Card]) -> Health:
    """Check the GPUs and create a context; no process of the harness may have one before."""
    for card in cards:
        if reason := _unfitness(card):
            return Health(unfit=reason)
    make_context()
    try:
        wiped = 0
        for number in range(torch.cuda.device_count()):
            with torch.cuda.device(number):
                if not arithmetic_is_right("cuda"):
                    return Health(unfit=f"GPU {number} computes wrong results: a test sum is wrong")
                wiped += scrub()
    except (RuntimeError, AssertionError) as error:
        return Health(unfit=f"CUDA does not work: {error}"[:1000])
    return Health(scrubbed=wiped) if torch.cuda.device_count() else Health(unfit="there is no GPU")


def make_context() -> None:
    """Create the CUDA context, which takes 0.1 s; ignore errors, which the next use repeats."""
    limit_copy_queues()
    with suppress(RuntimeError, AssertionError):
        torch.zeros(1, dtype=torch.uint8, device="cuda").fill_(1)
        first_gpu()


def _unfitness(card: Card) -> str:
    """Return why a GPU is not fit; "" if it is.

    Waits up to `SETTLE_S` for processes that are exiting.
    """
    monitor = Monitor(card.handle)
    if monitor.memory_errors() > card.errors:
        return f"GPU {card.handle}: its memory has new uncorrectable errors"
    deadline = time.monotonic() + SETTLE_S
    while reason := _occupied(monitor, card):
        if time.monotonic() > deadline:
            return f"GPU {card.handle}: {reason}"
        select.select([], [], [], POLL_S)
    return ""


def _occupied(monitor: Monitor, card: Card) -> str:
    if others := monitor.processes():
        return f"{others} other process{'es' if others > 1 else ''} computing on it"
    left_bytes = monitor.used() - card.used
    if left_bytes <= MAX_LEFT_BYTES:
        return ""
    return f"{left_bytes >> 20} MiB of its memory were not freed"


def await_processes(most: int) -> bool:
    """Wait up to `SETTLE_S` until at most so many processes compute on the first visible GPU."""
    deadline = time.monotonic() + SETTLE_S
    while first_gpu().processes() > most:
        if time.monotonic() > deadline:
            return False
        select.select([], [], [], POLL_S)
    return True


def arithmetic_is_right(device: str) -> bool:
    """Return whether integer arithmetic over some megabytes gives the right result."""
    numbers = torch.arange(SUMMED_NUMBERS, dtype=torch.int64, device=device)
    return int((numbers * numbers % MODULUS).sum()) == SUM_OF_SQUARES


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

"""Reads from NVML a GPU's identity, clocks, memory use, processes and reasons for slowdown."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

_NAME_BYTES = 96
_TOO_SMALL = 7
_UNCORRECTED, _SINCE_BOOT = 1, 0
_TEMPERATURE = 0
_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}
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


@dataclass(frozen=True, slots=True)
class Readings:
    """A GPU's identity and current readings."""

    name: str
    uuid: str
    driver: str
    clocks: dict[str, float] = field(default_factory=dict)


class Monitor:
    """Reads NVML's data of one GPU; without NVML every value is unknown.

    `handle` is the GPU's UUID or index.
    """

    def __init__(self, handle: str) -> None:
        self.handle = handle
        self.device = ctypes.c_void_p()
        nvml = _open_library()
        self.nvml = nvml if nvml and self._find_device(nvml, handle) == 0 else None

    def _find_device(self, nvml: ctypes.CDLL, handle: str) -> int:
        place = ctypes.byref(self.device)
        if handle.isdecimal():
            return int(nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(handle)), place))
        return int(nvml.nvmlDeviceGetHandleByUUID(handle.encode(), place))

    def used(self) -> int:
        """Bytes of the GPU's memory in use by all processes; 0 if unknown."""
        memory = (ctypes.c_ulonglong * 3)()  # total, free, used
        told = self.nvml and self.nvml.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory))
        return memory[2] if told == 0 else 0

    def processes(self) -> int:
        """How many processes have a compute context on the GPU; 0 if unknown."""
        count = ctypes.c_uint(0)
        if self.nvml is None:
            return 0
        listed = _listing_of(self.nvml)(self.device, ctypes.byref(count), None)
        return count.value if listed == _TOO_SMALL else 0

    def memory_errors(self) -> int:
        """Uncorrectable memory errors since the driver was loaded; 0 if unknown."""
        count = ctypes.c_ulonglong()
        told = self.nvml and self.nvml.nvmlDeviceGetTotalEccErrors(
            self.device, _UNCORRECTED, _SINCE_BOOT, ctypes.byref(count)
        )
        return int(count.value) if told == 0 else 0

    def read(self) -> Readings | None:
        """The GPU's identity, clocks (MHz), temperature (C) and power (W); None without NVML."""
        if self.nvml is None:
            return None
        return Readings(
            name=_text(self.nvml.nvmlDeviceGetName, self.device),
            uuid=_text(self.nvml.nvmlDeviceGetUUID, self.device),
            driver=_text(self.nvml.nvmlSystemGetDriverVersion),
            clocks=self._clocks(self.nvml),
        )

    def slowed_by(self) -> tuple[str, ...]:
        """The reasons that slow the GPU now, as in `SLOWED`; () if there are none."""
        reasons = ctypes.c_ulonglong()
        if self.nvml is None or _reasons_of(self.nvml)(self.device, ctypes.byref(reasons)) != 0:
            return ()
        return tuple(name for bit, name in SLOWED.items() if reasons.value & bit)

    def _clocks(self, nvml: ctypes.CDLL) -> dict[str, float]:
        value = ctypes.c_uint()
        found: dict[str, float] = {}
        for name, kind in _CLOCKS.items():
            if nvml.nvmlDeviceGetClockInfo(self.device, kind, ctypes.byref(value)) == 0:
                found[name] = float(value.value)
        if nvml.nvmlDeviceGetTemperature(self.device, _TEMPERATURE, ctypes.byref(value)) == 0:
            found["temperature_c"] = float(value.value)
        if nvml.nvmlDeviceGetPowerUsage(self.device, ctypes.byref(value)) == 0:
            found["power_w"] = value.value / 1000
        return found


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


def _listing_of(nvml: ctypes.CDLL) -> Callable[..., int]:
    try:
        found: Callable[..., int] = nvml.nvmlDeviceGetComputeRunningProcesses_v3
    except AttributeError:  # its name before driver 510
        found = nvml.nvmlDeviceGetComputeRunningProcesses
    return found


def _reasons_of(nvml: ctypes.CDLL) -> Callable[..., int]:
    try:
        found: Callable[..., int] = nvml.nvmlDeviceGetCurrentClocksEventReasons
    except AttributeError:  # its name before driver 535
        found = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return found


def _text(call: Callable[..., int], *device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    return buffer.value.decode(errors="replace") if call(*device, buffer, _NAME_BYTES) == 0 else ""

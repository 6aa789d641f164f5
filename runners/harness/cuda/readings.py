"""What the judge reads of the GPU through NVML: who it is, how it runs, and what slows it."""

import ctypes
import functools
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

_NAME_BYTES = 96
_TEMPERATURE = 0
_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}
SLOWED = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
"""Reasons for lower clocks that protect the card: what is timed meanwhile tells of no kernel.

The power cap is not among them, for a heavy kernel reaches it by itself. Source: NVML API,
`nvmlClocksEventReasons`.
"""


@dataclass(frozen=True, slots=True)
class Readings:
    """One look at a GPU."""

    name: str
    uuid: str
    driver: str
    clocks: dict[str, float] = field(default_factory=dict)


class Monitor:
    """NVML's view of one GPU; of a machine without NVML it tells nothing."""

    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        self.device = ctypes.c_void_p()
        nvml = _opened()
        found = nvml and nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.device))
        self.nvml = nvml if found == 0 else None

    def read(self) -> Readings | None:
        """The GPU's identity, clocks (MHz), temperature (C) and power (W)."""
        if self.nvml is None:
            return None
        return Readings(
            name=_text(self.nvml.nvmlDeviceGetName, self.device),
            uuid=_text(self.nvml.nvmlDeviceGetUUID, self.device),
            driver=_text(self.nvml.nvmlSystemGetDriverVersion),
            clocks=self._clocks(self.nvml),
        )

    def slowed_by(self) -> tuple[str, ...]:
        """What slows the GPU at this moment, in words; () when nothing does."""
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
    """The monitor of the GPU that this process sees first."""
    return Monitor(f"GPU-{torch.cuda.get_device_properties(0).uuid}")


def _opened() -> ctypes.CDLL | None:
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return nvml if nvml.nvmlInit_v2() == 0 else None


def _reasons_of(nvml: ctypes.CDLL) -> Callable[..., int]:
    try:
        found: Callable[..., int] = nvml.nvmlDeviceGetCurrentClocksEventReasons
    except AttributeError:  # the name that it had before driver 535
        found = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return found


def _text(call: Callable[..., int], *device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    return buffer.value.decode(errors="replace") if call(*device, buffer, _NAME_BYTES) == 0 else ""

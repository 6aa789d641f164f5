"""What the judge reads of the GPU through NVML: who it is and how it runs."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

_NAME_BYTES = 96
_TEMPERATURE = 0
_CLOCKS = {"sm_mhz": 1, "memory_mhz": 2}


@dataclass(frozen=True, slots=True)
class Readings:
    """One look at a GPU."""

    name: str
    uuid: str
    driver: str
    clocks: dict[str, float] = field(default_factory=dict)


def read_gpu(uuid_or_index: str) -> Readings | None:
    """The GPU's identity, clocks (MHz), temperature (C) and power (W); None without NVML."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    try:
        return _read(nvml, uuid_or_index)
    finally:
        nvml.nvmlShutdown()


def _read(nvml: ctypes.CDLL, uuid_or_index: str) -> Readings | None:
    device = ctypes.c_void_p()
    if uuid_or_index.isdigit():
        found = nvml.nvmlDeviceGetHandleByIndex_v2(int(uuid_or_index), ctypes.byref(device))
    else:
        found = nvml.nvmlDeviceGetHandleByUUID(uuid_or_index.encode(), ctypes.byref(device))
    if found != 0:
        return None
    return Readings(
        name=_text(nvml.nvmlDeviceGetName, device),
        uuid=_text(nvml.nvmlDeviceGetUUID, device),
        driver=_text(nvml.nvmlSystemGetDriverVersion),
        clocks=_clocks(nvml, device),
    )


def _text(call: Callable[..., int], *device: ctypes.c_void_p) -> str:
    buffer = ctypes.create_string_buffer(_NAME_BYTES)
    return buffer.value.decode(errors="replace") if call(*device, buffer, _NAME_BYTES) == 0 else ""


def _clocks(nvml: ctypes.CDLL, device: ctypes.c_void_p) -> dict[str, float]:
    value = ctypes.c_uint()
    found: dict[str, float] = {}
    for name, kind in _CLOCKS.items():
        if nvml.nvmlDeviceGetClockInfo(device, kind, ctypes.byref(value)) == 0:
            found[name] = float(value.value)
    if nvml.nvmlDeviceGetTemperature(device, _TEMPERATURE, ctypes.byref(value)) == 0:
        found["temperature_c"] = float(value.value)
    if nvml.nvmlDeviceGetPowerUsage(device, ctypes.byref(value)) == 0:
        found["power_w"] = value.value / 1000
    return found

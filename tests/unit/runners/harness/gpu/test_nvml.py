"""NVML as the driver answers, by a library of the test's own."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from runners.harness.gpu import health
from runners.harness.gpu.health import SLOWED, Monitor


def text(answer: bytes) -> Callable[..., int]:
    def give(*args: Any) -> int:  # noqa: ANN401 - as the library is called
        args[-2].value = answer
        return 0

    return give


def number(answer: int, status: int = 0) -> Callable[..., int]:
    def give(*args: Any) -> int:  # noqa: ANN401 - as the library is called
        args[-1]._obj.value = answer
        return status

    return give


def library(reasons: int = 0, **changes: object) -> SimpleNamespace:
    calls: dict[str, object] = {
        "nvmlInit_v2": lambda: 0,
        "nvmlDeviceGetHandleByUUID": lambda uuid, device: 0 if uuid == b"GPU-ab" else 6,
        "nvmlDeviceGetName": text(b"NVIDIA H200"),
        "nvmlDeviceGetUUID": text(b"GPU-ab"),
        "nvmlSystemGetDriverVersion": text(b"580.159"),
        "nvmlDeviceGetClockInfo": number(1980),
        "nvmlDeviceGetTemperature": number(41),
        "nvmlDeviceGetPowerUsage": number(132_500),
        "nvmlDeviceGetEnforcedPowerLimit": number(700_000),
        "nvmlDeviceGetCurrentClocksEventReasons": number(reasons),
    }
    return SimpleNamespace(**calls | changes)


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Monitor]:
    def make(uuid: str = "GPU-ab", **changes: Any) -> Monitor:  # noqa: ANN401 - any call's answer
        monkeypatch.setattr(ctypes, "CDLL", lambda name: library(**changes))
        return Monitor(uuid)

    return make


def test_a_gpu_is_read(watching: Callable[..., Monitor]) -> None:
    found = watching().read()

    assert found is not None
    assert (found.name, found.uuid, found.driver) == ("NVIDIA H200", "GPU-ab", "580.159")
    assert found.clocks == {
        "sm_mhz": 1980.0, "memory_mhz": 1980.0, "temperature_c": 41.0,
        "power_w": 132.5, "power_limit_w": 700.0, "power_capped": 0.0,
    }  # fmt: skip


def test_what_cannot_be_read_is_left_out(watching: Callable[..., Monitor]) -> None:
    found = watching(nvmlDeviceGetPowerUsage=number(0, 3), nvmlDeviceGetName=lambda *_: 3).read()

    assert found is not None
    assert (found.name, "power_w" in found.clocks) == ("", False)


@pytest.mark.parametrize(("bits", "capped"), [(0x4, 1.0), (0x5, 1.0), (0x81, 0.0)])
def test_a_gpu_at_its_power_limit_is_read_as_such(
    watching: Callable[..., Monitor], bits: int, capped: float
) -> None:
    assert watching(reasons=bits).clocks()["power_capped"] == capped


@pytest.mark.parametrize("bit", sorted(SLOWED))
def test_each_protection_of_the_card_is_named(watching: Callable[..., Monitor], bit: int) -> None:
    assert watching(reasons=bit | 0x1).slowed_by() == (SLOWED[bit],)


@pytest.mark.parametrize("bits", [0x0, 0x1, 0x2, 0x4, 0x100])
def test_idling_a_setting_and_the_power_cap_slow_nothing(
    watching: Callable[..., Monitor], bits: int
) -> None:
    assert watching(reasons=bits).slowed_by() == ()


def test_an_older_driver_has_another_name_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    old = library()
    del old.nvmlDeviceGetCurrentClocksEventReasons
    old.nvmlDeviceGetCurrentClocksThrottleReasons = number(0x40)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: old)

    assert Monitor("GPU-ab").slowed_by() == ("hardware thermal slowdown",)


def test_a_machine_without_nvml_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    found = Monitor("GPU-ab")

    assert (found.read(), found.slowed_by(), found.clocks()) == (None, (), {})


@pytest.mark.parametrize(
    "changes", [{"nvmlInit_v2": lambda: 9}, {"nvmlDeviceGetHandleByUUID": lambda *_: 6}]
)
def test_an_nvml_that_refuses_tells_nothing(
    watching: Callable[..., Monitor], changes: dict[str, object]
) -> None:
    found = watching(**changes)

    assert (found.read(), found.slowed_by()) == (None, ())


def test_a_process_watches_the_gpu_that_it_sees_first(monkeypatch: pytest.MonkeyPatch) -> None:
    properties = SimpleNamespace(uuid="ab")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library())
    health.first_gpu.cache_clear()

    found = health.first_gpu()
    health.first_gpu.cache_clear()

    assert found.read() is not None
    assert (found.handle, found.slowed_by()) == ("GPU-ab", ())


def test_a_gpu_is_found_by_its_number_too(watching: Callable[..., Monitor]) -> None:
    by_index = {"nvmlDeviceGetHandleByIndex_v2": lambda index, device: 0 if index.value == 3 else 2}

    assert watching("3", **by_index).read() is not None
    assert watching("4", **by_index).read() is None


def memory(used: int) -> Callable[..., int]:
    def give(*args: Any) -> int:  # noqa: ANN401 - as the library is called
        args[-1]._obj[2] = used
        return 0

    return give


def listing(count: int, status: int) -> Callable[..., int]:
    def give(_device: object, asked: Any, room: None) -> int:  # noqa: ANN401 - as it is called
        assert (asked._obj.value, room) == (0, None)
        asked._obj.value = count
        return status

    return give


def test_what_is_used_on_a_gpu_is_read(watching: Callable[..., Monitor]) -> None:
    found = watching(
        nvmlDeviceGetMemoryInfo=memory(5 << 30),
        nvmlDeviceGetTotalEccErrors=number(3),
        nvmlDeviceGetComputeRunningProcesses_v3=listing(2, 7),
    )

    assert (found.used(), found.memory_errors(), found.processes()) == (5 << 30, 3, 2)


def test_older_drivers_list_their_processes_under_another_name(
    watching: Callable[..., Monitor],
) -> None:
    assert watching(nvmlDeviceGetComputeRunningProcesses=listing(1, 7)).processes() == 1
    assert watching(nvmlDeviceGetComputeRunningProcesses=listing(0, 0)).processes() == 0


def test_what_is_not_told_counts_as_nothing(watching: Callable[..., Monitor]) -> None:
    for found in (
        watching("GPU-none"),
        watching(
            nvmlDeviceGetMemoryInfo=lambda *_: 3,
            nvmlDeviceGetTotalEccErrors=number(9, status=3),
            nvmlDeviceGetComputeRunningProcesses_v3=listing(9, 3),
        ),
    ):
        assert (found.used(), found.memory_errors(), found.processes()) == (0, 0, 0)

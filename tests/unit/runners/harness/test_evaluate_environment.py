import importlib.metadata
import os
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from runners.harness import HARNESS_VERSION, evaluate
from runners.harness.gpu.health import Readings


def test_the_machine_is_recorded() -> None:
    found = evaluate.host_environment()

    assert found.torch == torch.__version__
    assert found.python == platform.python_version()
    assert found.harness_version == HARNESS_VERSION
    assert found.cores >= 1
    assert (found.gpu, found.transport) == ("CPU", "shared-memory")


def test_a_processor_without_a_name_is_known_by_its_architecture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path) -> str:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)

    assert evaluate.cpu_model.__wrapped__() == platform.machine()


def test_the_processor_is_known_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "processor : 0\nmodel name : Fast CPU: 2\n"
    monkeypatch.setattr(Path, "read_text", lambda path: text)

    assert evaluate.cpu_model.__wrapped__() == "Fast CPU: 2"


def test_a_package_that_is_absent_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", refuse)

    assert evaluate.host_environment().triton is None


@pytest.mark.parametrize(
    ("read", "driver", "clocks"),
    [
        (Readings("GPU", "GPU-ab-12", "570.1", {"sm_mhz": 1980.0}), "570.1", {"sm_mhz": 1980.0}),
        (None, None, {}),
    ],
)
def test_a_gpu_is_recorded_with_what_can_be_read_of_it(
    monkeypatch: pytest.MonkeyPatch,
    read: Readings | None,
    driver: str | None,
    clocks: dict[str, float],
) -> None:
    seen = SimpleNamespace(handle="GPU-ab-12", read=lambda: read)
    monkeypatch.setattr(evaluate, "first_gpu", lambda: seen)

    found = evaluate.gpu_environment("H100", "vmm")

    assert (found.gpu, found.gpu_uuid, found.transport) == ("H100", "GPU-ab-12", "vmm")
    assert (found.driver, found.clocks) == (driver, clocks)
    assert found.torch == torch.__version__


def test_only_the_cores_that_the_judge_may_use_are_counted() -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert evaluate.host_environment().cores == 1
    finally:
        os.sched_setaffinity(0, allowed)

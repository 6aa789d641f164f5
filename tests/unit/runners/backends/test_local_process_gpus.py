"""GPU types without loading CUDA."""

from pathlib import Path

import pytest

from runners.backends import local_process
from runners.backends.local_process import find_gpus, from_listing, type_of_model
from runners.contract.runner import RunnerError
from runners.slots.harness import Gpu


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100-80GB"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", "T4"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA", "GPU"),
        ("NVIDIA A10G", "A10"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA H100 NVL", "H100-NVL"),
    ],
)
def test_a_model_has_the_name_that_boards_use(model: str, name: str) -> None:
    assert type_of_model(model) == name


def test_the_listing_of_nvidia_smi_is_understood() -> None:
    text = "GPU 0: NVIDIA H200 (UUID: GPU-1a)\nGPU 1: Tesla T4 (UUID: GPU-2b)\n"
    assert tuple(from_listing(text)) == (Gpu(0, "GPU-1a", "H200"), Gpu(1, "GPU-2b", "T4"))


def test_no_gpu_is_found_in_an_error_message() -> None:
    assert tuple(from_listing("NVIDIA-SMI has failed because ...")) == ()


def test_the_folder_of_the_driver_is_understood(tmp_path: Path) -> None:
    for bus, uuid in (("0000:2b:00.0", "GPU-????"), ("0000:1a:00.0", "GPU-1a")):
        (tmp_path / bus).mkdir()
        text = f"Model: \t\t NVIDIA H200\nIRQ:   \t\t 60\nGPU UUID: \t {uuid}\n"
        (tmp_path / bus / "information").write_text(text)
    assert find_gpus(tmp_path) == (Gpu(0, "GPU-1a", "H200"), Gpu(1, "1", "H200"))


def test_a_gpu_never_gets_two_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_process, "find_gpus", lambda: (Gpu(0, "GPU-1a", "H200"),))
    with pytest.raises(RunnerError, match="this machine has 1"):
        local_process.create(slots={"H200": 2})

"""Which device nodes a sandbox gets, on machines with and without GPUs."""

from pathlib import Path

import pytest

from runners.harness.sandbox import devices

UUIDS = "GPU-0a", "GPU-1b", "GPU-2c"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of three GPUs, whose nodes have other numbers than their places on the bus."""
    dev = tmp_path / "dev"
    dev.mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia2", "nvidiactl", "nvidia-caps", "sda"):
        (dev / name).touch()
    for number, uuid in enumerate(UUIDS):
        card = tmp_path / f"0000:0{number}:00.0"
        card.mkdir()
        text = f"Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nDevice Minor: \t {2 - number}\n"
        (card / "information").write_text(text)
    real = Path
    monkeypatch.setattr(
        devices, "Path", lambda path, *more: real(dev if path == "/dev" else path, *more)
    )
    monkeypatch.setattr(devices, "_CARDS", tmp_path)


def test_the_gpus_device_nodes_are_there_only_for_a_gpu() -> None:
    plain, beside_gpu = set(devices.devices(gpu=False)), set(devices.devices(gpu=True))
    assert "/dev/null" in plain
    cards = {f"/dev/nvidia{number}" for number in range(3)}
    assert beside_gpu - plain == {*cards, "/dev/nvidiactl", "/dev/nvidia-caps"}


@pytest.mark.parametrize(
    ("named", "cards"),
    [
        ("GPU-0a", "2"),
        ("GPU-0a, GPU-2c", "02"),
        ("1", "012"),  # nobody knows in which order CUDA counts them
        ("GPU-0a,1", "012"),
        ("GPU-9f", "012"),
        ("", "012"),
    ],
)
def test_a_candidate_has_no_gpu_of_which_its_harness_has_none(
    monkeypatch: pytest.MonkeyPatch, named: str, cards: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    found = set(devices.own_devices(gpu=True))
    assert found & {f"/dev/nvidia{each}" for each in "012"} == {f"/dev/nvidia{c}" for c in cards}
    assert {"/dev/nvidiactl", "/dev/nvidia-caps", "/dev/null"} <= found

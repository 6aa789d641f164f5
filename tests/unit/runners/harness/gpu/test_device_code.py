"""Device code in a context: what the driver is asked, with arguments of the right types."""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from runners.contract.launch import LaunchNumbers
from runners.contract.parameters import BufferArgument, LaunchScalar
from runners.harness.gpu import device_code, memory
from runners.harness.gpu.device_code import DeviceCode, ReadyLaunch
from runners.harness.gpu.memory import DriverError

NUMBERS = LaunchNumbers(
    grid=(5, 6, 7),
    block=(8, 2, 3),
    shared=1 << 16,
    arguments=(
        BufferArgument(kind="in", index=1),
        LaunchScalar(data="0000803f"),
        BufferArgument(kind="out", index=0),
        LaunchScalar(data="01"),
    ),
)


class Driver:
    """Plays the driver: notes each call, with the values that its C side would see."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.fails: dict[str, int] = {}

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*args: Any) -> int:  # noqa: ANN401 - as C takes them
            self.calls.append((name, *(getattr(each, "value", each) for each in args)))
            if name == "cuModuleGetFunction":
                args[0]._obj.value = 77
            if name in ("cuGetErrorName", "cuGetErrorString"):
                args[1]._obj.value = f"{name} of {args[0]}".encode()
            return self.fails.get(name, 0)

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [call for call in self.calls if call[0] == name]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(device_code, "cuda_driver", lambda: made)
    monkeypatch.setattr(memory, "cuda_driver", lambda: made)
    return made


@pytest.fixture
def launch() -> ReadyLaunch:
    tensors = [torch.zeros(4) for _ in range(3)]
    return ReadyLaunch(NUMBERS, tensors[:2], tensors[2:])


def test_arguments_lie_in_memory_as_their_types_do() -> None:
    inputs, outputs = [torch.zeros(4), torch.zeros(4)], [torch.zeros(4)]

    ready = ReadyLaunch(NUMBERS, inputs, outputs)

    sizes = (8, 4, 8, 1)
    found = [ctypes.string_at(at, size) for at, size in zip(ready.pointers, sizes, strict=True)]
    assert found == [
        inputs[1].data_ptr().to_bytes(8, "little"),
        b"\x00\x00\x80\x3f",
        outputs[0].data_ptr().to_bytes(8, "little"),
        b"\x01",
    ]
    assert ready.returned == ()


def test_a_kernel_is_loaded_by_its_name_and_launched_with_its_sizes(
    cuda: Driver, launch: ReadyLaunch
) -> None:
    kernel = DeviceCode(b"\x7fELF\0machine code", "_Z3addPf")
    assert kernel(launch) == ()

    assert cuda.named("cuModuleLoadData")[0][2] == b"\x7fELF\0machine code"
    assert cuda.named("cuModuleGetFunction")[0][3] == b"_Z3addPf"
    assert cuda.named("cuLaunchKernel") == [
        ("cuLaunchKernel", 77, 5, 6, 7, 8, 2, 3, 1 << 16, None, launch.pointers, None)
    ]


def test_shared_memory_is_asked_for_once_and_again_only_for_more(
    cuda: Driver, launch: ReadyLaunch
) -> None:
    kernel = DeviceCode(b"", "add")
    for shared in (0, 1000, 500, 1000, 2000):
        launch.shared = shared
        kernel(launch)

    asked = [call[1:] for call in cuda.named("cuFuncSetAttribute")]
    assert asked == [(77, 8, 1000), (77, 8, 2000)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("cuModuleLoadData", "cuModuleLoadData failed: cuGetErrorName of 701"),
        ("cuModuleGetFunction", "cuModuleGetFunction failed"),
        ("cuFuncSetAttribute", "requesting 65536 bytes of dynamic shared memory failed"),
        ("cuLaunchKernel", r"cuLaunchKernel failed: .*\(cuGetErrorString of 701\)"),
    ],
)
def test_a_call_that_fails_is_told_by_cudas_name(
    cuda: Driver, launch: ReadyLaunch, call: str, words: str
) -> None:
    cuda.fails[call] = 701
    with pytest.raises(DriverError, match=words):
        DeviceCode(b"", "add")(launch)


def test_an_error_that_the_driver_does_not_know_is_told_by_its_number(cuda: Driver) -> None:
    cuda.fails = {"cuGetErrorName": 1}
    assert memory.reason_of(4711) == "CUDA error 4711"


def test_a_whole_context_is_broken_by_nothing(cuda: Driver) -> None:
    assert memory.broken_by() is None
    cuda.fails["cuCtxSynchronize"] = 700
    assert memory.broken_by() == "cuGetErrorName of 700 (cuGetErrorString of 700)"


@pytest.mark.parametrize("status", [0, 801])
def test_persistent_cache_lines_are_made_normal_where_a_gpu_has_any(
    monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    done: list[str] = []

    def reset() -> int:
        done.append("reset")
        return status

    monkeypatch.setattr(
        memory, "cuda_driver", lambda: SimpleNamespace(cuCtxResetPersistingL2Cache=reset)
    )
    monkeypatch.setattr(memory, "reason_of", str)
    memory.reset_persisting_lines()
    assert done == ["reset"]

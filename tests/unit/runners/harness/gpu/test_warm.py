"""What a warm process imports, with and without Triton."""

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
import torch

from runners.harness.gpu import memory, warm
from runners.harness.gpu.warm import limit_copy_queues, load_empty_module, make_context, warm_up


class Knobs:
    """Where Triton keeps what it compiled."""

    dir = "everybody's"

    @classmethod
    @contextmanager
    def scope(cls) -> Iterator[None]:
        before = cls.dir
        yield
        cls.dir = before


class Utils:
    """Triton's link to the driver, built in the cache of the moment whenever it is asked for."""

    caches: ClassVar[list[str]] = []

    def __init__(self) -> None:
        assert Path(Knobs.dir).stat().st_mode & 0o077 == 0
        self.caches.append(Knobs.dir)


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Triton as version 3.6 has it; gives how often what of it was asked for."""
    asked: Counter[str] = Counter()
    monkeypatch.setattr(Utils, "caches", [])
    monkeypatch.setattr(Utils, "__init__", Utils.__init__)  # put back what is replaced
    parts: dict[str, dict[str, object]] = {
        "runtime.cache": {"triton_key": lambda: asked.update(["files"])},
        "runtime.build": {"platform_key": lambda: asked.update(["platform"])},
        "experimental.gluon.nvidia": {},
        "backends.nvidia.compiler": {"get_ptxas_version": lambda of: asked.update([f"sm_{of}"])},
        "backends.nvidia.driver": {"CudaUtils": Utils},
        "knobs": {"cache": Knobs},
    }
    made = {"triton": ModuleType("triton")}
    for path, values in parts.items():
        whole = "triton"
        for name in path.split("."):
            above, whole = made[whole], f"{whole}.{name}"
            setattr(above, name, made.setdefault(whole, ModuleType(whole)))
        vars(made[whole]).update(values)
    for whole, module in made.items():
        monkeypatch.setitem(sys.modules, whole, module)
    return asked


def test_what_triton_does_once_a_process_is_done_once_for_all(triton: Counter[str]) -> None:
    warm_up()

    assert triton == dict.fromkeys(
        ["files", "platform", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"], 1
    )
    (folder,) = Utils.caches
    assert not Path(folder).exists()
    assert Knobs.dir == "everybody's"
    Utils()
    assert len(Utils.caches) == 1


@pytest.mark.parametrize("lacking", ["runtime.cache", "runtime.build", "backends.nvidia.driver"])
def test_what_another_version_of_triton_lacks_is_left_out(
    triton: Counter[str], lacking: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"triton.{lacking}", None)
    warm_up()
    assert triton["sm_90"] == 1


def test_what_fails_while_it_is_built_is_left_to_who_needs_it(
    triton: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Utils) -> None:
        raise AssertionError("libcuda.so cannot found!")

    monkeypatch.setattr(Utils, "__init__", broken)
    warm_up()
    assert triton["sm_90"] == 1
    assert Utils.__init__ is broken


def test_without_triton_there_is_nothing_to_warm(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    warm_up()
    assert "triton.runtime" not in sys.modules


def test_a_context_has_one_queue_for_copies_and_as_many_as_ever_for_kernels() -> None:
    names = b"CUDA_DEVICE_MAX_COPY_CONNECTIONS", b"CUDA_DEVICE_MAX_CONNECTIONS"
    getenv = ctypes.CDLL(None).getenv  # which the driver asks, and which os.environ may not show
    getenv.restype = ctypes.c_char_p
    pid = os.fork()
    if pid == 0:
        limit_copy_queues()
        os._exit(0 if tuple(map(getenv, names)) == (b"1", None) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_context_waits_for_memory_that_another_candidate_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    full = torch.AcceleratorError("CUDA error: out of memory\nSearch for more", 2)
    tries = iter([full, torch.OutOfMemoryError("CUDA out of memory."), None])
    zeros = torch.zeros

    def allocate(*sizes: int, **_: object) -> torch.Tensor:
        if error := next(tries):
            raise error
        return zeros(*sizes, dtype=torch.int32)

    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "zeros", allocate)
    monkeypatch.setattr(warm, "RETRY_S", 0.0)
    make_context()
    assert not list(tries)


def test_a_context_is_not_tried_again_on_a_broken_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> torch.Tensor:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered", 700)

    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch, "zeros", fail)
    with pytest.raises(torch.AcceleratorError, match="illegal"):
        make_context()


@pytest.mark.parametrize("failing", [None, "cuLinkCreate_v2", "cuModuleLoadData"])
def test_an_empty_module_is_compiled_once_and_loaded_each_time_if_there_is_memory(
    monkeypatch: pytest.MonkeyPatch, failing: str | None
) -> None:
    called: list[str] = []

    class Driver:
        def __getattr__(self, name: str) -> Callable[..., int]:
            def call(*_: object) -> int:
                called.append(name)
                return int(name == failing)

            return call

    monkeypatch.setattr(memory, "cuda_driver", Driver)
    monkeypatch.setattr(memory, "reason_of", lambda _: "out of memory")
    warm._empty_module.cache_clear()
    for _ in range(2):
        load_empty_module()
    warm._empty_module.cache_clear()

    compiled = ["cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete", "cuLinkDestroy"]
    loaded = ["cuModuleLoadData", "cuModuleUnload"]
    assert (
        called
        == {
            None: compiled + loaded * 2,
            "cuLinkCreate_v2": compiled[:1] * 2,
            "cuModuleLoadData": compiled + loaded[:1] * 2,
        }[failing]
    )

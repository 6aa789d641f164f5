"""What a warm process imports, with and without Triton."""

import sys
from types import ModuleType

import pytest
import torch

from runners.harness.cuda import warm
from runners.harness.cuda.warm import make_context, warm_up


def installed(monkeypatch: pytest.MonkeyPatch, **cache: object) -> None:
    """Let Triton be there, with this in `triton.runtime.cache`."""
    for name in ("triton", "triton.runtime", "triton.runtime.cache"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, value in cache.items():
        setattr(sys.modules["triton.runtime.cache"], name, value)


def test_triton_is_imported_and_its_files_are_read_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    installed(monkeypatch, triton_key=lambda: asked.append(1))

    warm_up()

    assert asked == [1]


def test_without_triton_or_with_another_version_of_it_there_is_nothing_to_warm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed(monkeypatch)
    warm_up()
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in ("triton.runtime", "triton.runtime.cache"):
        monkeypatch.delitem(sys.modules, name)
    warm_up()
    assert "triton.runtime" not in sys.modules


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_there_is_no_context_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(warm, "first_gpu", lambda: asked.append(1))

    make_context()

    assert asked == []

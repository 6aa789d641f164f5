"""What a warm process imports, with and without Triton."""

import sys
from types import ModuleType

import pytest

from runners.harness.cuda.warm import warm_up


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

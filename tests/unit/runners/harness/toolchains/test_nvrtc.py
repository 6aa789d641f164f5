"""Where NVRTC is looked for; what it compiles is tested in languages/test_cuda.py."""

import ctypes
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from runners.harness.toolchains import nvrtc


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing on it but what a test lays beneath `wheels` and `toolkit`."""
    spec = ModuleSpec("nvidia", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "wheels")]
    (tmp_path / "wheels").mkdir()
    monkeypatch.setattr(nvrtc.importlib.util, "find_spec", lambda _: spec)  # type: ignore[attr-defined]
    monkeypatch.setattr(nvrtc.shutil, "which", lambda _: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(nvrtc, "TOOLKIT", tmp_path / "toolkit")
    return tmp_path


def lay(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    return file


def test_a_machine_without_the_library_has_none(place: Path) -> None:
    assert nvrtc.find() is None
    lay(place / "toolkit/include/cuda_fp16.h")
    assert nvrtc.find() is None


def test_the_wheels_of_torch_come_before_a_toolkit_which_adds_headers(place: Path) -> None:
    library = lay(place / "wheels/cu13/lib/libnvrtc.so.13")
    lay(place / "wheels/cu13/include/cuda_fp16.h")
    lay(place / "toolkit/lib64/libnvrtc.so.13")
    lay(place / "toolkit/include/cuda_fp16.h")
    lay(place / "toolkit/include/cccl/nv/target")

    found = nvrtc.find()

    assert found is not None
    assert (found.library, found.version) == (library, "13")
    include = place / "toolkit/include"
    assert found.includes == (place / "wheels/cu13/include", include, include / "cccl")


def test_library_and_headers_may_lie_in_two_wheels(place: Path) -> None:
    lay(place / "wheels/cuda_nvrtc/lib/libnvrtc.so.12")
    lay(place / "wheels/cuda_runtime/include/cuda_fp16.h")

    found = nvrtc.find()

    assert found is not None
    assert found.includes == (place / "wheels/cuda_runtime/include",)


@pytest.mark.parametrize(
    ("capability", "name"),
    [((7, 5), "sm_75"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")],
)
def test_newer_gpus_get_their_own_instructions(capability: tuple[int, int], name: str) -> None:
    assert nvrtc.architecture(capability) == name


def test_the_librarys_other_half_is_loaded_first_for_not_every_release_finds_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = lay(place / "lib/libnvrtc.so.13")
    half = lay(place / "lib/libnvrtc-builtins.so.13.0")
    lay(place / "lib/libnvrtc-builtins.alt.so.13.0")
    loaded: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", loaded.append)

    nvrtc._load(library)

    assert loaded == [str(half), str(library)]

"""Where NVIDIA's compiler is looked for, and what is said where it is missing."""

import sys
from pathlib import Path

import pytest

from runners.harness.toolchains import nvcc

SAYS = "#!/bin/sh\necho 'Cuda compilation tools, release 13.0, V13.0.88'\n"


def install(folder: Path, script: str = SAYS) -> Path:
    found = folder / "nvcc"
    folder.mkdir(parents=True)
    found.write_text(script)
    found.chmod(0o755)
    return found


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has a C++ compiler and nothing else."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "g++").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.setattr(nvcc, "TOOLKIT", tmp_path / "toolkit")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages")])


def test_each_place_is_looked_at_in_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert nvcc.find() is None
    wheel = install(tmp_path / "packages" / "nvidia" / "cu13" / "bin")
    assert nvcc.find() == wheel
    toolkit = install(tmp_path / "toolkit" / "bin")
    assert nvcc.find() == toolkit
    on_path = install(tmp_path / "some")
    monkeypatch.setenv("PATH", f"{tmp_path / 'some'}:{tmp_path / 'bin'}")
    assert nvcc.find() == on_path
    home = install(tmp_path / "home" / "bin")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert nvcc.find() == home
    home.chmod(0o644)
    assert nvcc.find() == on_path


def test_it_tells_its_version(tmp_path: Path) -> None:
    install(tmp_path / "toolkit" / "bin")
    assert nvcc.toolchain() == "nvcc 13.0.88"


def test_without_it_the_places_are_named(tmp_path: Path) -> None:
    assert nvcc.toolchain() is None
    assert nvcc.why_missing().startswith("there is no nvcc in CUDA_HOME, on PATH, in ")


def test_it_is_of_no_use_without_the_compiler_of_the_host(tmp_path: Path) -> None:
    install(tmp_path / "toolkit" / "bin")
    (tmp_path / "bin" / "g++").unlink()
    assert nvcc.toolchain() is None
    assert nvcc.why_missing() == "there is no g++, which nvcc needs"


@pytest.mark.parametrize("script", ["#!/bin/sh\nexit 1\n", "#!/bin/sh\necho hello\n", "nothing"])
def test_one_that_does_not_run_is_none(tmp_path: Path, script: str) -> None:
    install(tmp_path / "toolkit" / "bin", script)
    assert nvcc.toolchain() is None
    assert nvcc.why_missing().endswith("nvcc --version` does not answer")

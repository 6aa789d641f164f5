"""NVIDIA's compiler `nvcc` on this machine: its path and version."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from runners.harness.toolchains import TOOLKIT, version_of

NAME = "nvcc"
_IN_PACKAGES = "nvidia/cu13"
"""The folder in site-packages into which the CUDA 13 wheels install one toolkit."""
_HOST_COMPILER = "g++"
_VERSION = re.compile(r"release [\d.]+, V([\d.]+)")


def find() -> Path | None:
    """Return the first compiler that exists, or None.

    They are searched for in `CUDA_HOME`, on PATH, in the default toolkit and in NVIDIA's wheels.
    """
    return next((path for path in _places() if os.access(path, os.X_OK)), None)


def toolchain() -> str | None:
    """Return the compiler's name and version, as in `nvcc 13.0.88`; None if it cannot be used.

    nvcc needs a host compiler, so both must be installed.
    """
    compiler = find()
    if compiler is None or shutil.which(_HOST_COMPILER) is None:
        return None
    version = version_of(compiler, _VERSION)
    return None if version is None else f"{NAME} {version}"


def why_missing() -> str:
    """Return why `toolchain` returns None; for messages."""
    compiler = find()
    if compiler is None:
        places = f"CUDA_HOME, on PATH, in {TOOLKIT}/bin or in the wheel nvidia-cuda-{NAME}"
        return f"there is no {NAME} in {places}"
    if shutil.which(_HOST_COMPILER) is None:
        return f"there is no {_HOST_COMPILER}, which {NAME} needs"
    return f"`{compiler} --version` does not answer"


def _places() -> Iterator[Path]:
    if home := os.environ.get("CUDA_HOME"):
        yield Path(home, "bin", NAME)
    if compiler := shutil.which(NAME):
        yield Path(compiler)
    yield TOOLKIT / "bin" / NAME
    for folder in sys.path:
        yield Path(folder, _IN_PACKAGES, "bin", NAME)

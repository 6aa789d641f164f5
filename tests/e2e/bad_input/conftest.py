"""One Podium with one database for every case that needs a running one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.command import IDENTITY, Podium, fresh, served

KERNEL = "def custom_kernel(data):\n    return data[0].float()\n"


@pytest.fixture(scope="session")
def podium() -> Iterator[Podium]:
    """The command without a server, and a kernel and a task's files beside it."""
    with fresh() as podium:
        podium.file("kernel.py", KERNEL)
        yield podium


@pytest.fixture(scope="session")
def hall() -> Iterator[Podium]:
    """A running Podium with the real judge and the board `identity`."""
    with fresh("local") as podium, served(podium):
        podium.file("kernel.py", KERNEL)
        assert podium("task", "publish", IDENTITY, "--gpu", "CPU", "--unchecked").returncode == 0
        yield podium


@pytest.fixture
def small_disk(podium: Podium) -> Iterator[Path]:
    """A disk of 20 MB, where this account may make one."""
    place = podium.folder / "disk"
    place.mkdir(exist_ok=True)
    if os.system(f"mount -t tmpfs -o size=20m,mode=755 tmpfs {place} 2>/dev/null") != 0:  # noqa: S605  a path of our own
        pytest.skip("mounting needs root")
    yield place
    os.system(f"umount {place}")  # noqa: S605  a path of our own

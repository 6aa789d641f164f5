"""NVIDIA's profiler of kernels, `ncu` of Nsight Compute: where it is, and whether it may look.

Source: Nsight Compute CLI, "Command Line Options"; NVIDIA's page on ERR_NVGPUCTRPERM.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runners.contract.profile import ProfileOptions
from runners.harness.toolchains.tool import version_of

NAME = "ncu"
SECTIONS = (
    "SpeedOfLight",
    "MemoryWorkloadAnalysis",
    "MemoryWorkloadAnalysis_Tables",
    "Occupancy",
    "LaunchStats",
)
MORE_SECTIONS = (
    "ComputeWorkloadAnalysis",
    "SchedulerStats",
    "WarpStateStats",
    "SourceCounters",
    "SpeedOfLight_RooflineChart",
)
"""For those who want every counter and no table."""
KERNELS_MOST = 16
"""How many kernels of one call are looked at unless told otherwise: each is run some 30 times."""
PERMITTING = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
"""What lets everybody profile, in a file under /etc/modprobe.d, once the driver is loaded again."""
_PACKAGES = Path("/opt/nvidia/nsight-compute")
"""Where NVIDIA's packages put it, in a folder by its version."""
_TOOLKIT = Path("/usr/local/cuda")
_DRIVER = Path("/proc/driver/nvidia/params")
_RESTRICTED = re.compile(r"^RmProfilingAdminOnly:\s*1$", re.MULTILINE)
_VERSION = re.compile(r"^Version (\S+)", re.MULTILINE)


USUAL = ProfileOptions()
Details = Literal["header", "body"]
"""Which part of every section: some lines of it, or one for every counter."""


class UnusableError(Exception):
    """Kernels cannot be profiled here: why, and what its owner can do."""


@dataclass(frozen=True, slots=True)
class Ncu:
    """The profiler that is here."""

    program: Path
    version: str

    def measuring(
        self,
        report: str,
        command: Iterable[str],
        sections: Iterable[str] = SECTIONS,
        asked: ProfileOptions = USUAL,
    ) -> tuple[str, ...]:
        """The command that profiles what another one launches between its start and stop marks.

        The clocks of the card are left alone, as they are when kernels are timed.
        """
        count = asked.launch_count or KERNELS_MOST
        return (
            *(str(self.program), "--profile-from-start", "off", "--clock-control", "none"),
            *("--target-processes", "application-only", "--launch-count", str(count)),
            *_filter(asked),
            *(word for name in sections for word in ("--section", name)),
            *("--force-overwrite", "--export", report),
            *command,
        )

    def reading(self, report: str, details: Details) -> tuple[str, ...]:
        """The command that prints the tables of a report; it needs no GPU."""
        printed = ("--page", "details", "--print-details", details)
        return (str(self.program), "--import", report, *printed)

    def listing(self, report: str) -> tuple[str, ...]:
        """The command that prints the details of a report as CSV, a row for each of them."""
        return (str(self.program), "--import", report, "--page", "details", "--csv")

    def counting(self, report: str) -> tuple[str, ...]:
        """The command that prints every counter of a report, a row for each kernel, as CSV."""
        printed = ("--page", "raw", "--csv", "--print-units", "base")
        return (str(self.program), "--import", report, *printed)


def _filter(asked: ProfileOptions) -> Iterator[str]:
    """The options that say which kernels are looked at."""
    if asked.kernel_name is not None:
        yield from ("--kernel-name", asked.kernel_name)
    if asked.kernel_name_base is not None:
        yield from ("--kernel-name-base", asked.kernel_name_base)


def folders() -> tuple[Path, ...]:
    """The folder that NVIDIA installed it into, if it did: it needs its neighbours there."""
    found = next((path for path in _installed() if os.access(path, os.X_OK)), None)
    return () if found is None else (found.parent,)


def here() -> Ncu:
    """The profiler, if it may look at this machine's GPUs; UnusableError when not."""
    found = _program()
    if found is None:
        places = f"{_PACKAGES}, CUDA_HOME, {_TOOLKIT} or on PATH"
        raise UnusableError(f"there is no {NAME} in {places}; Nsight Compute has it")
    version = version_of(found, _VERSION)
    if version is None:
        raise UnusableError(f"`{found} --version` does not answer")
    if _restricted():
        raise UnusableError(
            "the driver lets administrators alone profile; its owner can allow it to everybody "
            f"with the line `{PERMITTING}` in a file under /etc/modprobe.d, and a restart"
        )
    return Ncu(found, version)


def _program() -> Path | None:
    return next((path for path in _places() if os.access(path, os.X_OK)), None)


def _places() -> Iterator[Path]:
    """Where it may lie. The one in a toolkit's `bin` only looks for the others: it comes last."""
    yield from _installed()
    if found := shutil.which(NAME):
        yield Path(found).resolve()


def _installed() -> Iterator[Path]:
    yield from _newest_first(_PACKAGES.glob(f"*/{NAME}"))
    for toolkit in (os.environ.get("CUDA_HOME"), _TOOLKIT):
        if toolkit:
            yield from _newest_first(Path(toolkit).glob(f"nsight-compute-*/{NAME}"))


def _newest_first(found: Iterable[Path]) -> list[Path]:
    return sorted(found, key=_numbers, reverse=True)


def _numbers(path: Path) -> list[int]:
    """The version in the name of a program's folder."""
    return [int(number) for number in re.findall(r"\d+", path.parent.name)]


def _restricted() -> bool:
    """Whether the driver says so; where it says nothing, a trial will tell."""
    try:
        return _RESTRICTED.search(_DRIVER.read_text()) is not None
    except OSError:
        return False

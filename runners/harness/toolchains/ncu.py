"""NVIDIA's kernel profiler `ncu` (Nsight Compute): its path, permission and command lines.

Source: Nsight Compute CLI, "Command Line Options"; NVIDIA's page on ERR_NVGPUCTRPERM.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runners.contract.evaluation import ProfileOptions
from runners.harness.toolchains import TOOLKIT, version_of

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
"""Additional sections for a report with all counters."""
KERNELS_MOST = 16
"""By default, at most this many kernels of a call are profiled; each is run about 30 times."""
PERMITTING = "options nvidia NVreg_RestrictProfilingToAdminUsers=0"
"""The line in /etc/modprobe.d that lets all users profile once the driver is reloaded."""
_PACKAGES = Path("/opt/nvidia/nsight-compute")
"""The folder into which NVIDIA's packages install `ncu`, with one subfolder per version."""
_DRIVER = Path("/proc/driver/nvidia/params")
_RESTRICTED = re.compile(r"^RmProfilingAdminOnly:\s*1$", re.MULTILINE)
_VERSION = re.compile(r"^Version (\S+)", re.MULTILINE)


DEFAULT_OPTIONS = ProfileOptions()
Details = Literal["header", "body"]
"""How much of each section is printed: a summary, or one line per counter."""


class UnusableError(Exception):
    """Kernels cannot be profiled here; the message says why and what the machine's owner can do."""


@dataclass(frozen=True, slots=True)
class Ncu:
    """The profiler of this machine."""

    program: Path
    version: str

    def measuring(
        self,
        report: str,
        command: Iterable[str],
        sections: Iterable[str] = SECTIONS,
        options: ProfileOptions = DEFAULT_OPTIONS,
    ) -> tuple[str, ...]:
        """The command that profiles the kernels that `command` launches between the marks.

        The program sets the marks with the start and stop calls of the CUDA profiler. The clocks of
        the GPU are not locked, because they are not locked for timing either.
        """
        count = options.launch_count or KERNELS_MOST
        return (
            *(str(self.program), "--profile-from-start", "off", "--clock-control", "none"),
            *("--target-processes", "application-only", "--launch-count", str(count)),
            *_filter(options),
            *(word for name in sections for word in ("--section", name)),
            *("--force-overwrite", "--export", report),
            *command,
        )

    def reading(self, report: str, details: Details) -> tuple[str, ...]:
        """The command that prints the tables of a report; it needs no GPU."""
        printed = ("--page", "details", "--print-details", details)
        return (str(self.program), "--import", report, *printed)

    def listing(self, report: str) -> tuple[str, ...]:
        """The command that prints the details of a report as CSV, one row per counter."""
        return (str(self.program), "--import", report, "--page", "details", "--csv")

    def counting(self, report: str) -> tuple[str, ...]:
        """The command that prints every counter of a report as CSV, one row per kernel."""
        printed = ("--page", "raw", "--csv", "--print-units", "base")
        return (str(self.program), "--import", report, *printed)


def _filter(options: ProfileOptions) -> Iterator[str]:
    """The options that select which kernels are profiled."""
    if options.kernel_name is not None:
        yield from ("--kernel-name", options.kernel_name)
    if options.kernel_name_base is not None:
        yield from ("--kernel-name-base", options.kernel_name_base)


def folders() -> tuple[Path, ...]:
    """Return the profiler's folder, whose other files it needs; () if it is not installed."""
    program = next((path for path in _installed() if os.access(path, os.X_OK)), None)
    return () if program is None else (program.parent,)


def here() -> Ncu:
    """Return the profiler; UnusableError if it is missing or may not profile these GPUs."""
    program = next((path for path in _places() if os.access(path, os.X_OK)), None)
    if program is None:
        places = f"{_PACKAGES}, CUDA_HOME, {TOOLKIT} or on PATH"
        raise UnusableError(f"there is no {NAME} in {places}; Nsight Compute has it")
    version = version_of(program, _VERSION)
    if version is None:
        raise UnusableError(f"`{program} --version` does not answer")
    if _restricted():
        raise UnusableError(
            "the driver lets only administrators profile; the machine's owner can allow it for all "
            f"with the line `{PERMITTING}` in a file under /etc/modprobe.d, and a restart"
        )
    return Ncu(program, version)


def _places() -> Iterator[Path]:
    """Possible paths. The script in a toolkit's `bin` only searches for the others; it is last."""
    yield from _installed()
    if program := shutil.which(NAME):
        yield Path(program).resolve()


def _installed() -> Iterator[Path]:
    yield from _newest_first(_PACKAGES.glob(f"*/{NAME}"))
    for toolkit in (os.environ.get("CUDA_HOME"), TOOLKIT):
        if toolkit:
            yield from _newest_first(Path(toolkit).glob(f"nsight-compute-*/{NAME}"))


def _newest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=_numbers, reverse=True)


def _numbers(path: Path) -> list[int]:
    """The version in the name of a program's folder."""
    return [int(number) for number in re.findall(r"\d+", path.parent.name)]


def _restricted() -> bool:
    """Whether the driver restricts profiling to administrators; False if unknown."""
    try:
        return _RESTRICTED.search(_DRIVER.read_text()) is not None
    except OSError:
        return False

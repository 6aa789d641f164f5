"""Reads Nsight Compute's report about the kernels of a call: percentages, facts, findings.

The judge stores the details of a report with a profile, as CSV. A submission influences them, so
every part has a limit. The names of sections and metrics are those of Nsight Compute 2025.3.
"""

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, islice

from bot.domain.records import StoredFile
from bot.domain.times import show_time
from bot.reports.escaping import one_line

KERNELS_MOST = 8
FINDINGS_MOST = 3
_ROWS_MOST = 20_000
_TEXT_MOST = 4 << 20
_WORDS_MOST = 420
_NAME_MOST, _SHORT_NAME = 120, 60
_BUSY = 60.0
"""A unit that is used by less than this percentage does not limit a kernel."""
_OF_PART = 0.25
"""The weight of an estimate for one part of a kernel; one for the whole kernel has weight 1."""
_SPEED, _MEMORY = "GPU Speed Of Light Throughput", "Memory Workload Analysis"
_LAUNCH, _OCCUPANCY = "Launch Statistics", "Occupancy"
_ACHIEVED, _THEORETICAL = "Achieved Occupancy", "Theoretical Occupancy"
_SHARES = (
    ("Arithmetic", _SPEED, "Compute (SM) Throughput"),
    ("Memory", _SPEED, "Memory Throughput"),
    ("Memory bandwidth", _SPEED, "DRAM Throughput"),
    ("L2 cache", _SPEED, "L2 Cache Throughput"),
    ("L1 cache", _SPEED, "L1/TEX Cache Throughput"),
    ("L2 hits", _MEMORY, "L2 Hit Rate"),
    ("L1 hits", _MEMORY, "L1/TEX Hit Rate"),
    ("Occupancy", _OCCUPANCY, _ACHIEVED),
)
_LIMITS = {
    "Block Limit Registers": "registers",
    "Block Limit Shared Mem": "shared memory",
    "Block Limit Warps": "threads of a block",
    "Block Limit SM": "blocks of a multiprocessor",
    "Block Limit Barriers": "barriers",
}
_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_NS |= {"nsecond": 1.0, "usecond": 1e3, "msecond": 1e6, "second": 1e9}


@dataclass(frozen=True, slots=True)
class Share:
    """A percentage: use of a unit, hit rate, or occupancy, with the most that the launch allows."""

    name: str
    percent: float
    most: float | None = None


@dataclass(frozen=True, slots=True)
class ProfileFinding:
    """One of the profiler's findings about a kernel, and the speedup that it estimates, if any."""

    kernel: str
    words: str
    percent: float | None
    whole: bool
    """Whether the estimate is for the whole kernel, not only for one of its parts."""
    weight: float
    """The estimate times the kernel's share of all kernels' time, and `_OF_PART` unless `whole`."""

    @property
    def estimate(self) -> str:
        """Return the estimate in words; empty without one."""
        if self.percent is None:
            return ""
        of = "of the kernel" if self.whole else "of this part alone"
        return f"estimated speedup {self.percent:.0f} % {of}"


@dataclass(frozen=True, slots=True)
class ProfiledKernel:
    """One kernel: the unit that limits it, its percentages, and facts such as its launch."""

    name: str
    limit: str
    shares: tuple[Share, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """The kernels of one case on a GPU type; `more` counts the kernels that are left out."""

    case: str
    kernels: tuple[ProfiledKernel, ...]
    findings: tuple[ProfileFinding, ...]
    more: int = 0


def profiles(files: Iterable[StoredFile], gpu: str) -> tuple[Profile, ...]:
    """Return the profile of each case on a GPU type whose details can be read."""
    found = []
    for each in files:
        if each.gpu == gpu and each.file.name.endswith(".csv"):
            with suppress(ValueError, csv.Error):
                text = each.file.content()[:_TEXT_MOST].decode(errors="replace")
                found.append(profile(each.file.name.removesuffix(".csv").replace("-", " "), text))
    return tuple(each for each in found if each.kernels)


_Row = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """One kernel's rows, and its metrics with their units, by section and name."""

    rows: tuple[_Row, ...]
    metrics: Mapping[tuple[str, str], tuple[str, str]]

    def number(self, section: str, name: str) -> float | None:
        return _number(self.metrics.get((section, name), ("", ""))[0])

    def words(self, section: str, name: str) -> str:
        """Return a metric with its unit; empty if the profiler did not report it."""
        value, unit = self.metrics.get((section, name), ("", ""))
        return f"{value} {unit.partition('/')[0]}".strip()

    @property
    def name(self) -> str:
        return one_line(self.rows[0].get("Kernel Name") or "")[:_NAME_MOST]

    @property
    def ns(self) -> float:
        """How long it took; 0 if that is unknown."""
        unit = self.metrics.get((_SPEED, "Duration"), ("", ""))[1]
        return (self.number(_SPEED, "Duration") or 0.0) * _NS.get(unit, 0.0)


def profile(case: str, details: str) -> Profile:
    """Return the profile in the details of a report; it has no kernels if they cannot be read."""
    rows = islice(csv.DictReader(io.StringIO(details)), _ROWS_MOST)
    by_kernel = [_kernel(tuple(group)) for _, group in groupby(rows, lambda row: row.get("ID"))]
    kernels = [each for each in by_kernel if each.metrics]
    total_ns = sum(each.ns for each in kernels)
    findings = [found for each in kernels for found in _findings(each, total_ns)]
    findings.sort(key=lambda each: each.weight, reverse=True)
    shown = tuple(
        ProfiledKernel(each.name, _limit(each), tuple(_shares(each)), tuple(_facts(each)))
        for each in kernels[:KERNELS_MOST]
    )
    return Profile(case, shown, tuple(findings[:FINDINGS_MOST]), len(kernels) - len(shown))


def _kernel(rows: tuple[_Row, ...]) -> _Kernel:
    metrics = {
        (row.get("Section Name") or "", name): (
            one_line(row.get("Metric Value") or "")[:40],
            one_line(row.get("Metric Unit") or "")[:40],
        )
        for row in rows
        if (name := row.get("Metric Name"))
    }
    return _Kernel(rows, metrics)


def _number(text: str | None) -> float | None:
    with suppress(ValueError):
        value = float((text or "").replace(",", ""))
        return value if math.isfinite(value) else None
    return None


def _shares(kernel: _Kernel) -> Iterator[Share]:
    for name, section, metric in _SHARES:
        percent = kernel.number(section, metric)
        if percent is not None:
            most = kernel.number(_OCCUPANCY, _THEORETICAL) if metric == _ACHIEVED else None
            yield Share(name, min(100.0, max(0.0, percent)), most)


def _limit(kernel: _Kernel) -> str:
    """Return what limits a kernel, by the same threshold as the profiler's own."""
    compute = kernel.number(_SPEED, "Compute (SM) Throughput")
    memory = kernel.number(_SPEED, "Memory Throughput")
    if compute is None or memory is None:
        return ""
    if max(compute, memory) < _BUSY:
        return (
            f"neither memory ({memory:.0f} %) nor arithmetic ({compute:.0f} %) is busy: it waits, "
            "or too few of its threads run at once"
        )
    if memory >= compute:
        return f"memory limits it: {memory:.0f} % used, and {compute:.0f} % of the arithmetic"
    return f"arithmetic limits it: {compute:.0f} % used, and {memory:.0f} % of the memory"


def _facts(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    row = kernel.rows[0]
    parts = [one_line(row.get(name) or "")[:40] for name in ("Grid Size", "Block Size")]
    if all(parts):
        yield "Launch", f"grid {parts[0]}, block {parts[1]}"
    if kernel.ns:
        yield "Duration", show_time(kernel.ns)
    if registers := kernel.words(_LAUNCH, "Registers Per Thread"):
        yield "Registers", f"{registers.partition(' ')[0]} per thread"
    shared = {name: f"{name} Shared Memory Per Block" for name in ("Static", "Dynamic")}
    used = [
        f"{kernel.words(_LAUNCH, metric)} {name.lower()}"
        for name, metric in shared.items()
        if kernel.number(_LAUNCH, metric)
    ]
    if all((_LAUNCH, metric) in kernel.metrics for metric in shared.values()):
        yield "Shared memory", f"{' and '.join(used)}, per block" if used else "none"
    if spilled := kernel.number(_MEMORY, "Local Memory Spilling Requests"):
        yield "Spills", f"{spilled:,.0f} requests to local memory"
    if waves := kernel.words(_LAUNCH, "Waves Per SM"):
        yield "Waves", f"{waves} per multiprocessor"
    yield from _occupancy(kernel)


def _occupancy(kernel: _Kernel) -> Iterator[tuple[str, str]]:
    """Yield the occupancy, and what keeps more blocks from running at once."""
    achieved, most = (kernel.number(_OCCUPANCY, name) for name in (_ACHIEVED, _THEORETICAL))
    if achieved is None or most is None:
        return
    words = f"{achieved:.0f} % of at most {most:.0f} %"
    limits = {what: kernel.number(_OCCUPANCY, name) for name, what in _LIMITS.items()}
    known = {what: value for what, value in limits.items() if value is not None}
    if known and most < 100.0:
        least = min(known.values())
        limiting = [what for what, value in known.items() if value == least]
        words += f", limited by {' and '.join(limiting)}"
    yield "Occupancy", words


def _findings(kernel: _Kernel, total_ns: float) -> Iterator[ProfileFinding]:
    part = kernel.ns / total_ns if total_ns else 0.0
    for row in kernel.rows:
        words = one_line(row.get("Rule Description") or "")
        if row.get("Rule Type") in {"OPT", "WRN"} and words:
            percent = _number(row.get("Estimated Speedup"))
            whole = row.get("Estimated Speedup Type") == "global"
            weight = (percent or 0.0) * part * (1.0 if whole else _OF_PART)
            yield ProfileFinding(
                kernel.name[:_SHORT_NAME], _shortened(words), percent, whole, weight
            )


def _shortened(words: str) -> str:
    """Return whole sentences within the limit; if the first is too long, its beginning."""
    if len(words) <= _WORDS_MOST:
        return words
    end = words.rfind(". ", 0, _WORDS_MOST)
    return words[: end + 1] if end > 0 else f"{words[:_WORDS_MOST]} …"

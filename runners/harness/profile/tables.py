"""Turns the tables that `ncu` prints for a report into one text of limited size."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from runners.harness.sandbox.diagnostics import cut
from runners.harness.toolchains.ncu import KERNELS_MOST

MEMORY_TABLES = "Memory Workload Analysis Tables"
TABLES_MAX = 6 << 10
"""The most bytes of one kernel's memory tables, which list all counters of every cache."""
_KERNEL = re.compile(r"^  \S.*, Context \d+, Stream \d+\b")
"""The first line of one kernel's tables."""
_SECTION = re.compile(r"^    Section: (?P<name>.*\S)$")
_NOISE = re.compile(
    r"^==WARNING== No metrics to show|^    Warning: Data collection happened without"
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """One profiled kernel: its name with its launch, and its sections."""

    name: str
    sections: dict[str, list[str]] = field(default_factory=dict)

    def text(self) -> str:
        """Its name and its sections as `ncu` printed them."""
        return "\n".join(
            [self.name, *(line for each in self.sections.values() for line in each), ""]
        )

    def with_tables(self, detailed: "Kernel") -> "Kernel":
        """The kernel with the memory tables of its detailed version."""
        more = detailed.sections.get(MEMORY_TABLES, [])
        if not more:
            return self
        advice = [line for line in self.sections.get(MEMORY_TABLES, []) if line not in set(more)]
        tables = [*cut("\n".join(more), TABLES_MAX).splitlines(), *advice]
        return Kernel(self.name, {**self.sections, MEMORY_TABLES: tables})


def kernels_of(printed: str) -> tuple[Kernel, ...]:
    """The kernels of a printed report, in the order of their launches.

    If the profiler's format is unknown, the whole text becomes one kernel without sections.
    """
    found: list[Kernel] = []
    section: list[str] = []
    for line in map(str.rstrip, printed.splitlines()):
        if _KERNEL.match(line):
            found.append(Kernel(line))
            section = []
        elif found and not _NOISE.match(line):
            if named := _SECTION.match(line):
                section = found[-1].sections.setdefault(named["name"], [])
            section.append(line)
    other = "\n".join(map(str.rstrip, printed.strip().splitlines()))
    return tuple(found) or ((Kernel(other),) if other else ())


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of all kernels that one call launched."""

    short: tuple[Kernel, ...]
    detailed: tuple[Kernel, ...] = ()
    """The same kernels with all counters."""

    def text(self, most: int) -> str:
        """The tables in at most `most` bytes: with memory tables, without them, or shortened."""
        pairs = zip(self.short, self.detailed, strict=False)
        full = [each.with_tables(more) for each, more in pairs]
        for kernels in (full, self.short):
            text = _joined(kernels)
            if kernels and len(text.encode()) <= most:
                return text
        return cut(_joined(self.short), most)


def _joined(kernels: Sequence[Kernel]) -> str:
    more = len(kernels) >= KERNELS_MOST
    head = f"the first {KERNELS_MOST} kernels of the call, and no more:\n" if more else ""
    return head + "".join(each.text() for each in kernels)

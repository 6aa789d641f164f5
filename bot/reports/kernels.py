"""What `ncu` found of each kernel of a profile, in one line: occupancy and use of the memory."""

import re
from collections.abc import Iterator

_KERNEL = re.compile(
    r"^  (?P<name>\S.*?) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream "
)
"""How the tables of one kernel begin, see `runners.harness.tables`."""
_PERCENT = re.compile(
    r"^\s+(?P<what>Achieved Occupancy|Theoretical Occupancy|DRAM Throughput)"
    r"\s+%\s+(?P<share>\d+(?:\.\d+)?)\s*$"
)
_NAME_MOST = 80


def kernel_lines(log: str, most: int) -> Iterator[str]:
    """A line for each of the first `most` kernels whose occupancy the log of a profile tells."""
    found: list[tuple[str, dict[str, str]]] = []
    for line in log.splitlines():
        if head := _KERNEL.match(line):
            found.append((head["name"][:_NAME_MOST], {}))
        elif found and (told := _PERCENT.match(line)):
            found[-1][1].setdefault(told["what"], told["share"])
    kernels = [each for each in found if "Achieved Occupancy" in each[1]]
    for name, shares in kernels[:most]:
        yield f"{name}: {_words(shares)}"
    if len(kernels) > most:
        yield f"occupancy: and {len(kernels) - most} more"


def _words(shares: dict[str, str]) -> str:
    words = f"occupancy {shares['Achieved Occupancy']} %"
    if "Theoretical Occupancy" in shares:
        words += f" of at most {shares['Theoretical Occupancy']} %"
    if "DRAM Throughput" in shares:
        words += f", {shares['DRAM Throughput']} % of the memory's bandwidth"
    return words

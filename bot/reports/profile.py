"""The files of a profile, and a line for each of its kernels."""

import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from itertools import groupby

from bot.domain.ids import SubmissionId
from bot.domain.records import StoredFile
from bot.reports.blocks import Attachment
from runners.contract.files import EvaluationFile

_WHEN = (1980, 1, 1, 0, 0, 0)
"""A constant time, so that the same files give the same archive."""


def archives(submission: SubmissionId, files: Sequence[StoredFile]) -> tuple[Attachment, ...]:
    """Return the archives; `files` come by GPU type. Those that cannot be unpacked are omitted."""
    return tuple(
        Attachment(f"profile-{submission}-{gpu}.zip", _zipped([each.file for each in of_gpu]))
        for gpu, of_gpu in groupby(files, lambda each: each.gpu)
    )


def _zipped(files: Sequence[EvaluationFile]) -> bytes:
    made = BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in files:
            with suppress(ValueError):
                archive.writestr(
                    zipfile.ZipInfo(each.name, _WHEN), each.content(), zipfile.ZIP_DEFLATED
                )
    return made.getvalue()


_KERNEL = re.compile(
    r"^  (?P<name>\S.*?) \(\d+, \d+, \d+\)x\(\d+, \d+, \d+\), Context \d+, Stream "
)
"""Matches the start of a kernel's tables, see `runners.harness.profile.kernel_profile`."""
_PERCENT = re.compile(
    r"^\s+(?P<what>Achieved Occupancy|Theoretical Occupancy|DRAM Throughput)"
    r"\s+%\s+(?P<share>\d+(?:\.\d+)?)\s*$"
)
_NAME_MOST = 80


def kernel_lines(log: str, most: int) -> Iterator[str]:
    """Yield a line for each of the first `most` kernels whose occupancy is in a profile's log."""
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
        words += f", {shares['DRAM Throughput']} % of the memory bandwidth"
    return words

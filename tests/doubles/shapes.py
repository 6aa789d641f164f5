"""A board with several benchmarks in an exhibition: its reference, its runs, and a profile."""

import csv
import io
from collections.abc import Sequence

from bot.domain.board import Access, Board, SourceVisibility
from bot.domain.ids import SubmissionId
from bot.domain.job import PRIORITIES
from bot.domain.publication import PublishRequest
from bot.domain.submission import NewSubmission
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CaseKind, CaseResult
from runners.contract.files import EvaluationFile
from runners.contract.task import Mode, RankingBy, Workload
from tests.doubles.exhibition import Exhibition, make_timing
from tests.doubles.factories import make_case, make_task

GPU = "L4"
"""A GPU type for which no other jobs of the exhibition wait."""
SIZES = (1 << 14, 1 << 20, 1 << 24)
PROFILE_HEADER = (
    "ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream",
    "Block Size", "Grid Size", "Device", "CC", "Section Name", "Metric Name", "Metric Unit",
    "Metric Value", "Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
    "Estimated Speedup",
)  # fmt: skip
"""The columns of Nsight Compute 2025.3. A row of a metric has none of the last five."""
METRICS = (
    ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "72.88"),
    ("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "72.88"),
    ("GPU Speed Of Light Throughput", "Duration", "us", "31.39"),
    ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", "8.22"),
    ("Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "3.50"),
    ("Memory Workload Analysis", "L2 Hit Rate", "%", "50.70"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "168"),
    ("Launch Statistics", "Dynamic Shared Memory Per Block", "Kbyte/block", "213.19"),
    ("Launch Statistics", "Static Shared Memory Per Block", "byte/block", "0"),
    ("Launch Statistics", "Waves Per SM", "", "7.76"),
    ("Occupancy", "Block Limit Registers", "block", "1"),
    ("Occupancy", "Block Limit Shared Mem", "block", "1"),
    ("Occupancy", "Block Limit Warps", "block", "5"),
    ("Occupancy", "Theoretical Occupancy", "%", "18.75"),
    ("Occupancy", "Achieved Occupancy", "%", "14.13"),
)
"""Metrics of a kernel on an H200, as printed: section, name, unit and value."""
RULES = (
    ("LaunchConfiguration", "OPT", "The grid is too small.", "global", "3.03"),
    ("TheoreticalOccupancy", "OPT", "Registers limit it.", "local", "81.25"),
    ("SOLBottleneck", "INF", "All is well.", "", ""),
    ("AccessPattern", "OPT", "4.0 of the 32 bytes are used.", "global", "77.89"),
    ("SlowPipe", "WRN", "A remark without an estimate.", "", ""),
)


def listed(*kernels: str, metrics: Sequence[tuple[str, ...]] = METRICS) -> str:
    """The details of a report with these kernels as CSV."""
    text = io.StringIO()
    written = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    written.writerow(PROFILE_HEADER)
    for number, name in enumerate(kernels):
        head = (number, 544, "python3", "127.0.0.1", name, 1, 7, "(128, 1, 1)", "(2, 64, 1)", 0, 9)
        for metric in metrics:
            written.writerow((*head, *metric))
        for rule in RULES:
            written.writerow((*head, "Occupancy", "", "", "", *rule))
    return text.getvalue()


async def add_shapes(shown: Exhibition, *access: SourceVisibility) -> Board:
    """Open the board `shapes`, whose benchmarks take 12 bytes and 24 operations an element."""
    task = make_task(
        name="shapes",
        bytes="12*size",
        flops="24*size",
        benchmarks=tuple(Workload(args={"size": size}) for size in SIZES),
        gpus=(GPU,),
        ranking_by=RankingBy.GEOM,
    )
    request = PublishRequest(
        shown.people["Ada"], access=Access(source=(*access, SourceVisibility.ALWAYS)[0])
    )
    board = (await publish(shown.store, shown.clock, request, task)).board
    shown.boards["shapes"] = board
    return board


async def shaped(
    shown: Exhibition, who: str, *times_ns: float, mode: Mode = Mode.RANKED
) -> SubmissionId:
    """A run that passed with these times of the benchmarks."""
    await shown.submit(who, "shapes", (GPU,), mode)
    return await shown.judge(GPU, cases=_cases(shown, times_ns))


async def referenced(shown: Exhibition, *times_ns: float) -> None:
    """The reference, judged with these times."""
    board = shown.boards["shapes"]
    new = NewSubmission(
        person=shown.people["Ada"],
        board=board.id,
        task_version=board.task_version,
        file_name="reference.py",
        source="pass",
        mode=Mode.RANKED,
        gpus=(GPU,),
        priority=PRIORITIES[Mode.RANKED],
    )
    assert await shown.store.references.order(new)
    await shown.judge(GPU, cases=_cases(shown, times_ns))


def _cases(shown: Exhibition, times_ns: tuple[float, ...]) -> tuple[CaseResult, ...]:
    timed = (
        make_case(
            CaseKind.BENCHMARK,
            spec=f"size: {size}",
            measurement=make_timing(shown.chance, time, time / 500),
        )
        for size, time in zip(SIZES, times_ns, strict=False)
    )
    return (make_case(spec="size: 16"), *timed)


async def profiled(shown: Exhibition, who: str, *kernels: str) -> SubmissionId:
    """A profile of these kernels."""
    await shown.submit(who, "shapes", (GPU,), Mode.PROFILE)
    file = EvaluationFile.of("case-1.csv", listed(*kernels).encode())
    return await shown.judge(GPU, cases=(), files=(file,))

"""The `ncu` counters of a kernel, in the groups that the evaluation server's clients expect.

Source of the counters' names: Nsight Compute, "Metrics Reference". If this GPU or this version of
the profiler does not have a counter, its field is omitted.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from runners.contract.evaluation import Evaluation
from runners.contract.io_contract import COUNTERS, Side

Row = Mapping[str, str]
Group = dict[str, float | str]
KERNELS_MOST = 64
"""The most rows that are read of a file, because a submission can influence it."""
NAME_MOST = 200
_DURATION = "gpu__time_duration.sum"
_NS_PER_S = 1e9
_GIGA = 1e9
_UNITS = {"gpu_time_duration_sum": "ns", "gpc_cycles_elapsed_max": "cycle"}
"""Units of the fields that clients get with a unit; the profiler prints base units."""
_SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
_FUSED = "derived__smsp__sass_thread_inst_executed_op_{}_pred_on_x2"
_PRECISIONS = {"sp": "f", "dp": "d"}
"""The precisions whose operations the roofline section counts."""

_OCCUPANCY = {
    f"occupancy_limit_{name}": f"launch__occupancy_limit_{counter}"
    for name, counter in (
        ("blocks", "blocks"), ("registers", "registers"), ("shared_mem", "shared_mem"),
        ("warps", "warps"),
    )
}  # fmt: skip
_ELAPSED, _ACTIVE = "avg.pct_of_peak_sustained_elapsed", "avg.pct_of_peak_sustained_active"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_GROUPS: dict[str, dict[str, str]] = {
    "speed_of_light": {
        "compute_memory_throughput_pct": f"gpu__compute_memory_throughput.{_ELAPSED}",
        "compute_throughput_pct": f"gpu__compute_memory_throughput.{_ELAPSED}",
        "sm_throughput_pct": f"sm__throughput.{_ELAPSED}",
        "gpu_dram_throughput_pct": f"gpu__dram_throughput.{_ELAPSED}",
        "memory_throughput_pct": f"gpu__dram_throughput.{_ELAPSED}",
        "dram_throughput_pct": f"dram__throughput.{_ELAPSED}",
    },
    "detailed_metrics": {
        "l1_hit_rate_pct": "l1tex__t_sector_hit_rate.pct",
        "l2_hit_rate_pct": "lts__t_sector_hit_rate.pct",
        "warp_occupancy_pct": f"sm__warps_active.{_ACTIVE}",
        "sm_active_cycles_pct": f"sm__cycles_active.{_ELAPSED}",
        "instructions_per_cycle": "sm__inst_executed.avg.per_cycle_active",
        "waves_per_sm": "launch__waves_per_multiprocessor",
    },
    "memory_metrics": {
        "dram_active_cycles_pct": f"dram__cycles_active.{_ELAPSED}",
        "l1_writeback_active_pct": f"l1tex__data_pipe_lsu_wavefronts.{_ELAPSED}",
        "l1_read_sectors_pct": f"l1tex__data_bank_reads.{_ELAPSED}",
        "l2_throughput_pct": f"lts__t_sectors.{_ELAPSED}",
    },
    "compute_metrics": {
        **{
            f"{name}_pipe_utilization_pct": f"sm__inst_executed_pipe_{pipe}.{_ACTIVE}"
            for name, pipe in (
                ("fma", "fma"), ("fp64", "fp64"), ("alu", "alu"), ("xu", "xu"),
                ("tensor", "tensor_op_hmma"),
            )
        },
        "instructions_per_cycle": "sm__inst_executed.avg.per_cycle_active",
        **_OCCUPANCY,
        "registers_per_thread": "launch__registers_per_thread",
    },
    "pipeline_metrics": {
        **{
            f"{pipe}_pipe_active_pct": f"sm__pipe_{pipe}_cycles_active.{_ELAPSED}"
            for pipe in ("fma", "alu", "tensor", "shared", "fp64")
        },
        "sm_issue_active_pct": f"sm__issue_active.{_ELAPSED}",
    },
    "occupancy_metrics": {
        **_OCCUPANCY,
        "waves_per_sm": "launch__waves_per_multiprocessor",
        "block_size": "launch__block_size",
        "grid_size": "launch__grid_size",
        "shared_mem_per_block": "launch__shared_mem_per_block",
    },
    "stall_metrics": {
        f"stall_{why}_pct": f"smsp__warp_issue_stalled_{why}_per_warp_active.pct"
        for why in ("long_scoreboard", "short_scoreboard", "barrier", "not_selected")
    },
    "scheduler_metrics": {
        "warps_eligible_per_cycle": "smsp__warps_eligible.avg.per_cycle_active",
        "inst_issued_per_cycle": "smsp__inst_issued.avg.per_cycle_active",
        "issue_active_pct": f"smsp__issue_active.{_ACTIVE}",
    },
    "access_pattern_metrics": {
        "l1_load_sectors_per_req": f"{_SECTORS}_op_ld.ratio",
        "l1_store_sectors_per_req": f"{_SECTORS}_op_st.ratio",
        "l2_theoretical_sectors_global": "memory_l2_theoretical_sectors_global",
        "l2_theoretical_sectors_global_ideal": "memory_l2_theoretical_sectors_global_ideal",
        "shared_bank_conflicts_load_sum": f"{_CONFLICTS}_op_ld.sum",
        "shared_bank_conflicts_store_sum": f"{_CONFLICTS}_op_st.sum",
    },
    "roofline_metrics": {},
    "timing_metrics": {
        "gpu_time_duration_sum": _DURATION,
        "gpc_cycles_elapsed_max": "gpc__cycles_elapsed.max",
    },
}  # fmt: skip
"""Group -> field -> counter."""


def device_metrics_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return the groups of both kernels, by their keys; empty without counters.

    A kernel without a reference is under the reference's key. If a call launches several kernels,
    the groups are those of the longest one, and `kernels` has those of each.
    """
    found = {side: _counted(evaluation, name) for side, name in COUNTERS.items()}
    custom, original = found[Side.CUSTOM], found[Side.REFERENCE]
    alone = not original and not _is_compared(evaluation)
    pairs = (
        ("original_device_metrics", custom if alone else original),
        ("custom_device_metrics", {} if alone else custom),
    )
    return {key: groups for key, groups in pairs if groups}


def _is_compared(evaluation: Evaluation) -> bool:
    return any(Side.REFERENCE.value in case.spec for case in evaluation.cases)


def _counted(evaluation: Evaluation, name: str) -> dict[str, Any]:
    file = next((each for each in evaluation.files if each.name == name), None)
    if file is None:
        return {}
    try:
        rows = _rows(file.content().decode(errors="replace"))
    except (ValueError, csv.Error):
        return {}
    if not rows:
        return {}
    longest = max(rows, key=lambda row: _number(row, _DURATION) or 0.0)
    kernels = [{"name": _name(row), **_groups(row)} for row in rows]
    groups = _groups(longest)
    return {**groups, "kernels": kernels} if groups else {}


def _rows(text: str) -> list[Row]:
    """Return one row per kernel, without the file's first row, which has the units."""
    rows = (row for row in csv.DictReader(io.StringIO(text)) if row.get("ID"))
    return list(islice(rows, KERNELS_MOST))


def _name(row: Row) -> str:
    return (row.get("Kernel Name") or "")[:NAME_MOST]


def _groups(row: Row) -> dict[str, Group]:
    groups: dict[str, Group] = {}
    for name, fields in _GROUPS.items():
        values = {field: _number(row, counter) for field, counter in fields.items()}
        group: Group = {field: value for field, value in values.items() if value is not None}
        group |= _derived(name, row)
        if group:
            groups[name] = group
    return groups


def _derived(name: str, row: Row) -> Group:
    of: dict[str, Callable[[Row], Group]] = {
        "memory_metrics": _bandwidth,
        "access_pattern_metrics": _excess,
        "roofline_metrics": _roofline,
        "timing_metrics": _timing,
    }
    return of[name](row) if name in of else {}


def _bandwidth(row: Row) -> Group:
    """Memory throughput in 10^9 bytes per second."""
    total = _per_second(row, "dram__bytes.sum.per_second")
    each = _per_second(row, "dram__bytes.avg.per_second")
    pairs = (("dram_total_bandwidth_gb_s", total), ("dram_avg_bandwidth_gb_s", each))
    return {key: value for key, value in pairs if value is not None}


def _per_second(row: Row, counter: str) -> float | None:
    value = _number(row, counter)
    return None if value is None else value / _GIGA


def _excess(row: Row) -> Group:
    whole = _number(row, "memory_l2_theoretical_sectors_global")
    ideal = _number(row, "memory_l2_theoretical_sectors_global_ideal")
    if whole is None or ideal is None:
        return {}
    excess = whole - ideal
    part = excess / whole if whole else 0.0
    return {"l2_theoretical_sectors_global_excessive": excess, "l2_excess_frac": part}


def _roofline(row: Row) -> Group:
    """Operations and bytes of a whole kernel, from the rates in the section.

    Source: Nsight Compute's section file `SpeedOfLight_RooflineChart`, "Achieved Work" and
    "Achieved Traffic".
    """
    seconds = _seconds(row)
    moved = _product(_number(row, "dram__bytes.sum.per_second"), seconds)
    clock = _number(row, "smsp__cycles_elapsed.avg.per_second")
    counts = {name: _product(_work(row, key), clock, seconds) for name, key in _PRECISIONS.items()}
    known = [count for count in counts.values() if count is not None]
    total = sum(known) if known else None
    metrics = {
        "flop_count_total": total,
        **{f"flop_count_{name}": count for name, count in counts.items()},
        "dram_bytes_sum": moved,
        "arithmetic_intensity": None if total is None or not moved else total / moved,
        "gflops": None if total is None or not seconds else total / seconds / _GIGA,
    }
    return {key: value for key, value in metrics.items() if value is not None}


def _work(row: Row, key: str) -> float | None:
    """Operations per cycle: additions, multiplications, and twice the fused multiply-adds."""
    names = (_SASS.format(f"{key}add"), _SASS.format(f"{key}mul"), _FUSED.format(f"{key}fma"))
    found = [_number(row, name) for name in names]
    known = [each for each in found if each is not None]
    return sum(known) if len(known) == len(names) else None


def _product(*factors: float | None) -> float | None:
    known = [each for each in factors if each is not None]
    return math.prod(known) if len(known) == len(factors) else None


def _seconds(row: Row) -> float | None:
    ns = _number(row, _DURATION)
    return None if ns is None else ns / _NS_PER_S


def _timing(row: Row) -> Group:
    """Its duration in seconds, and the units of the other fields."""
    counters = _GROUPS["timing_metrics"]
    known = [name for name in counters if _number(row, counters[name]) is not None]
    units: Group = {f"{name.removesuffix('_sum')}_unit": _UNITS[name] for name in known}
    seconds = _seconds(row)
    return units if seconds is None else {**units, "gpu_time_duration_seconds": seconds}


def _number(row: Row, counter: str) -> float | None:
    try:
        value = float((row.get(counter) or "").replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None

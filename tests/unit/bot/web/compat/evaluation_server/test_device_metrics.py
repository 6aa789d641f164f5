import pytest

from bot.web.compat.evaluation_server.device_metrics import device_metrics_of
from bot.web.compat.evaluation_server.results import result_of
from runners.contract.evaluation import Evaluation
from runners.contract.files import EvaluationFile
from tests.doubles.ioing import compare
from tests.unit.bot.web.compat.evaluation_server.test_results import OWN, REF, TEST, evaluation

TABLE = """\
"ID","Kernel Name","gpu__time_duration.sum","dram__bytes.sum.per_second","launch__block_size",\
"memory_l2_theoretical_sectors_global","memory_l2_theoretical_sectors_global_ideal","odd"
"","","ns","byte/second","","sector","sector",""
"0","short","1,000","2000000000","128","100","75","x"
"1","long","3,000","4000000000","256","8","8","n/a"
"2","none","nan","inf","","","",""
"""


def counted(*names: str, table: str = TABLE, compared: bool = True) -> Evaluation:
    files = tuple(EvaluationFile.of(name, table.encode()) for name in names)
    return evaluation(*(TEST, REF, OWN) if compared else (TEST, OWN), files=files)


def test_counters_stand_in_their_groups() -> None:
    found = device_metrics_of(counted("custom.csv", "reference.csv"))
    assert list(found) == ["original_device_metrics", "custom_device_metrics"]
    groups = found["custom_device_metrics"]
    assert groups["occupancy_metrics"] == {"block_size": 256}
    assert groups["memory_metrics"] == {"dram_total_bandwidth_gb_s": 4.0}
    assert groups["timing_metrics"]["gpu_time_duration_seconds"] == pytest.approx(3e-6)
    assert "stall_metrics" not in groups


def test_each_kernel_of_a_call_is_told_and_not_the_last_alone() -> None:
    kernels = device_metrics_of(counted("custom.csv"))["custom_device_metrics"]["kernels"]
    assert [each["name"] for each in kernels] == ["short", "long", "none"]
    access = kernels[0]["access_pattern_metrics"]
    assert access["l2_theoretical_sectors_global_excessive"] == 25
    assert access["l2_excess_frac"] == 0.25


def test_operations_and_bytes_are_those_of_the_whole_kernel() -> None:
    """One addition, two products and three fused ones a cycle, for 2 µs at 1 GHz."""
    rates = {"fadd": "1", "fmul": "2", "dadd": "0", "dmul": "0"}
    names = [
        f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed" for op in rates
    ]
    fused = [f"derived__smsp__sass_thread_inst_executed_op_{op}fma_pred_on_x2" for op in "fd"]
    columns = {
        **dict(zip(names, rates.values(), strict=True)),
        **dict(zip(fused, ("6", "0"), strict=True)),
        "smsp__cycles_elapsed.avg.per_second": "1,000,000,000",
        "dram__bytes.sum.per_second": "4500000000",
        "gpu__time_duration.sum": "2,000",
        "gpc__cycles_elapsed.max": "1900",
    }
    heads, values = (
        ",".join(f'"{each}"' for each in row) for row in zip(*columns.items(), strict=True)
    )
    table = f'"ID",{heads}\n"",\n"0",{values}\n'
    found = device_metrics_of(counted("custom.csv", table=table))["custom_device_metrics"]
    assert found["roofline_metrics"] == pytest.approx(
        {
            "flop_count_total": 18_000,
            "flop_count_sp": 18_000,
            "flop_count_dp": 0,
            "dram_bytes_sum": 9_000,
            "arithmetic_intensity": 2,
            "gflops": 9,
        }
    )
    assert found["timing_metrics"] == {
        "gpu_time_duration_sum": 2000,
        "gpu_time_duration_unit": "ns",
        "gpu_time_duration_seconds": pytest.approx(2e-6),
        "gpc_cycles_elapsed_max": 1900,
        "gpc_cycles_elapsed_max_unit": "cycle",
    }


def test_a_kernel_by_itself_stands_where_clients_look_for_it() -> None:
    found = device_metrics_of(counted("custom.csv", compared=False))
    assert list(found) == ["original_device_metrics"]


@pytest.mark.parametrize("table", ["", "no table", '"ID","a"\n', '"ID"\n"\0'])
def test_what_cannot_be_read_is_not_there(table: str) -> None:
    assert device_metrics_of(counted("custom.csv", table=table)) == {}


def test_who_asked_in_vain_is_told_why() -> None:
    log = "a print\nno kernel was counted by ncu: there is no GPU here\n"
    asked = compare().model_copy(update={"device_metrics": True})
    found = evaluation(TEST, REF, OWN, log=log)
    told = result_of(asked, found)["kernel_exec_result"]["metadata"]
    assert told["device_metrics_error"] == "there is no GPU here"
    assert (
        "device_metrics_error" not in result_of(compare(), found)["kernel_exec_result"]["metadata"]
    )
    silent = result_of(asked, evaluation(TEST, REF, OWN))["kernel_exec_result"]["metadata"]
    assert "device_metrics_error" not in silent


def test_metrics_are_a_part_of_the_answer_where_there_are_any() -> None:
    asked, plain = counted("custom.csv"), counted()
    found = [result_of(compare(), each)["kernel_exec_result"] for each in (asked, plain)]
    assert ["device_metrics" in each["metadata"] for each in found] == [True, False]

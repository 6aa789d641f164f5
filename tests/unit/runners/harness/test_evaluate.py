import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from bot.domain.confirmation import Reading, read
from runners import languages
from runners.contract.evaluation import (
    CaseStatus,
    Evaluation,
    Limits,
    Progress,
    RoundPolicy,
    StopReason,
)
from runners.contract.task import Device, Grader, Launch, Mode, RankingBy, TaskDefinition, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.evaluate import choose_device, evaluate, nonce_of, require_toolchain
from runners.harness.judge.session import PUBLIC_NONCE
from runners.harness.relay import CheckWatch
from runners.harness.supervision import handle
from runners.harness.supervision.template import TemplateProcess
from runners.harness.timing.pairs import PairedTimer
from runners.harness.verdicts import RivalBrokeContextError, VerdictError
from tests.doubles.judging import SORT, SORTED, make_judging, make_sort_task
from tests.doubles.kernelbot import make_plain_task
from tests.doubles.program import make_program_task
from tests.unit.runners.harness.conftest import OPEN, Judge
from tests.unit.runners.harness.judged import ACCEPTED, REFUSED

LAUNCH = Launch(kernel="k", params=("out0",), grid=(1,), block=(1,))
SMALL = Limits(memory=512 << 20, disk=8 << 20)
LARGE = """
import torch
def generate_input(**_): return torch.empty(1 << 30, dtype=torch.uint8)
def check_implementation(*_): return True
"""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handle, "EXIT_S", 0.5)  # it is long for the sake of GPUs


@pytest.mark.parametrize("name", REFUSED)
def test_each_failure_gets_its_verdict_stage_and_words(judge: Judge, name: str) -> None:
    source, verdict, stage, words = REFUSED[name]
    seconds = 2 if name == "hanging" else 20

    found = judge(make_judging(source, task=make_sort_task(test_timeout=seconds), limits=SMALL))

    assert (found.verdict, found.stage) == (verdict, stage), found.message
    assert words in found.message


@pytest.mark.parametrize("name", ACCEPTED)
def test_each_right_kernel_passes(judge: Judge, name: str) -> None:
    source, task = ACCEPTED[name]

    found = judge(make_judging(source, task=task))

    assert found.verdict is Verdict.PASSED, found.message
    assert found.stage is None
    assert [case.status for case in found.cases] == [CaseStatus.PASSED]


def test_a_ranked_run_has_tests_and_a_measurement(judge: Judge, progress: list[Progress]) -> None:
    found = judge(make_judging(SORTED, Mode.RANKED))

    assert found.verdict is Verdict.PASSED, found.message
    measured = found.cases[-1].measurement
    assert measured is not None
    assert measured.rounds == len(measured.samples) == 2
    assert {len(samples) for samples in measured.samples} == {5}
    assert measured.stop_reason in (StopReason.ROUND_CAP, StopReason.PRECISE)
    assert {told.stage for told in progress} == {
        Stage.PREPARE, Stage.BUILD, Stage.TEST, Stage.TIMING,
    }  # fmt: skip
    assert {"start", "build", "run", "check", "inputs", "kill"} <= found.durations_s.keys()
    assert found.wall_s > 0


def test_a_benchmark_run_times_every_benchmark_and_no_test(judge: Judge) -> None:
    sizes = (100, 200)
    task = make_sort_task(
        benchmarks=tuple(Workload(args={"size": size, "seed": 1}) for size in sizes)
    )

    found = judge(make_judging(SORTED, Mode.BENCHMARK, task=task))

    assert [case.spec for case in found.cases] == [f"size: {size}; seed: 1" for size in sizes]
    assert all(case.measurement for case in found.cases)


@pytest.mark.parametrize(("ranking", "timed"), [(RankingBy.LAST, 1), (RankingBy.GEOM, 2)])
def test_a_ranked_run_times_what_scores(judge: Judge, ranking: RankingBy, timed: int) -> None:
    benchmarks = tuple(Workload(args={"size": size, "seed": 1}) for size in (100, 200))
    task = make_sort_task(tests=(), benchmarks=benchmarks, ranking_by=ranking)

    found = judge(make_judging(SORTED, Mode.RANKED, task=task))

    assert len(found.cases) == timed
    assert found.cases[-1].spec == benchmarks[-1].spec


def test_what_fails_first_ends_the_rest(judge: Judge) -> None:
    tests = tuple(Workload(args={"size": size, "seed": 1}) for size in (4, 8, 16))
    source = SORTED.replace("    return", "    assert len(data[0]) != 8\n    return")

    found = judge(make_judging(source, Mode.RANKED, task=make_sort_task(tests=tests)))

    assert found.verdict is Verdict.CRASHED
    assert [case.status.value for case in found.cases] == ["passed", "failed", "skipped", "skipped"]
    assert "AssertionError" in found.log


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("import torch", "import torch, os\nraise OSError('no file')"), "OSError: no file"),
        (("def generate_input(", "def other("), "has no function `generate_input`"),
        (("generator = ", "raise KeyError(1)\n    generator = "), "generate_input failed"),
        (("return torch.sort", "raise ValueError(1)\n    return torch.sort"), "ref_kernel failed"),
        (("right = torch.equal", "raise SystemError\n    right = torch.equal"), "SystemError"),
        (("return right,", "return 1 or"), "returned a int"),
        (("generator = ", "raise SystemExit(0)\n    generator = "), "SystemExit: 0"),
    ],
)
def test_the_tasks_own_failures_are_never_the_submissions(
    judge: Judge, change: tuple[str, str], words: str
) -> None:
    found = judge(make_judging(task=make_sort_task(SORT.replace(*change))))

    assert found.verdict is Verdict.TASK_ERROR
    assert words in found.message


def test_what_was_printed_before_a_failure_in_timing_is_kept(judge: Judge) -> None:
    source = SORTED.replace("    return", "    print('last words'); raise ValueError\n    return")

    found = judge(make_judging(source, Mode.BENCHMARK))

    assert (found.verdict, found.stage) == (Verdict.CRASHED, Stage.TIMING)
    assert found.log.startswith("last words")


def test_a_secret_run_has_other_inputs_each_time_and_a_test_has_its_own(judge: Judge) -> None:
    source = SORTED.replace("return", "print(len(data[0]), round(data[0][0].item(), 5)); return")
    logs = [judge(make_judging(source, Mode.RANKED)).log.splitlines() for _ in range(2)]
    tests, timed = zip(*(([x for x in log if x.startswith("100 ")],
                          {x for x in log if not x.startswith("100 ")}) for log in logs),
                       strict=True)  # fmt: skip

    assert tests[0] == tests[1]
    assert len(timed[0]) == len(timed[1]) == 1 + 16  # three warm-ups and five samples, twice
    assert len(timed[0] & timed[1]) == 1  # the rehearsal, of a public input


def test_the_same_nonce_gives_the_same_inputs(judge: Judge) -> None:
    source = SORTED.replace("return", "print(data[0][0].item()); return")
    first, again = (judge(make_judging(source, Mode.RANKED, nonce="ab" * 16)).log for _ in range(2))

    assert first == again


def test_timing_stops_in_time_when_the_limit_is_near(judge: Judge) -> None:
    source = SORTED.replace("    return", "    import time; time.sleep(0.1)\n    return")
    task, many = make_sort_task(tests=(), ranked_timeout=8), RoundPolicy(looks=(30,))
    found = judge(make_judging(source, Mode.RANKED, task=task, rounds=many))

    assert found.verdict is Verdict.PASSED, found.message
    measured = found.cases[-1].measurement
    assert measured is not None
    assert measured.stop_reason is StopReason.TIME_CAP
    assert measured.time_ns > 100e6
    assert found.wall_s < 8.5


def test_a_process_left_behind_by_a_timed_call_is_refused(judge: Judge) -> None:
    source = (
        "import os, time, torch\ncalls = []\ndef custom_kernel(data):\n    calls.append(1)\n"
        "    if len(calls) == 5 and os.fork() == 0: time.sleep(60)\n"
        "    return torch.sort(data[0]).values\n"
    )

    found = judge(make_judging(source, Mode.RANKED))

    assert (found.verdict, found.stage) == (Verdict.DISALLOWED, Stage.TIMING)
    assert "left a process running" in found.message


def test_an_input_larger_than_the_memory_limit_is_the_tasks_fault(judge: Judge) -> None:
    big = make_sort_task(LARGE, tests=())

    found = judge(make_judging(SORTED, Mode.BENCHMARK, task=big, limits=SMALL))

    assert found.verdict is Verdict.TASK_ERROR
    assert "exceeds the memory limit" in found.message


def test_an_input_of_a_test_that_is_too_large_is_the_tasks_fault(judge: Judge) -> None:
    found = judge(make_judging(SORTED, task=make_sort_task(LARGE), limits=SMALL))

    assert found.verdict is Verdict.TASK_ERROR
    assert "exceeds the memory limit" in found.message


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (make_sort_task(grader=Grader.POPCORN), "the task has no 'eval.py'"),
        (make_sort_task(multi_gpu=True), "grader 'native' judges on one GPU"),
        (make_sort_task(lang="cu"), "needs a 'launch' to judge 'cu'"),
        (make_sort_task(lang="cu", launch=LAUNCH), "no toolchain here builds 'cu'"),
    ],
)
def test_a_task_that_this_harness_cannot_judge_is_no_ones_wrong_answer(
    judge: Judge, task: TaskDefinition, words: str
) -> None:
    found = judge(make_judging(task=task))

    assert (found.verdict, found.stage) == (Verdict.TASK_ERROR, Stage.PREPARE)
    assert words in found.message


def test_a_check_that_fills_its_input_does_not_make_the_kernel_change_it(judge: Judge) -> None:
    filling = SORT.replace("return torch.sort(data[0]).values", "return FILL(data)").replace(
        "import torch\n",
        "import torch\ndef FILL(data):\n"
        "    data[1].copy_(torch.sort(data[0]).values)\n    return data[1]\n",
    )

    found = judge(make_judging(SORTED, task=make_sort_task(filling)))

    assert found.verdict is Verdict.PASSED, found.message


def test_the_isolation_names_what_the_candidate_is_confined_by(judge: Judge) -> None:
    isolation = judge(make_judging()).isolation

    assert isolation.outer == "none"
    assert "seccomp" in (*isolation.layers, *isolation.missing)


def test_a_task_for_cuda_is_refused_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(VerdictError, match="needs a GPU"):
        choose_device(make_judging(task=make_sort_task(device=Device.CUDA)))


def visible_devices() -> bytes | None:
    """What the C library sees, and so CUDA: `os.environ` does not notice `os.putenv`."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    found: bytes | None = getenv(b"CUDA_VISIBLE_DEVICES")
    return found


@pytest.mark.parametrize(
    ("gpu", "device", "on_gpu"),
    [("CPU", Device.ANY, False), ("H100", Device.CPU, False), ("H100", Device.ANY, True)],
)
def test_a_task_runs_where_it_belongs(*, gpu: str, device: Device, on_gpu: bool) -> None:
    os.unsetenv("CUDA_VISIBLE_DEVICES")
    assert choose_device(make_judging(gpu=gpu, task=make_sort_task(device=device))) is on_gpu
    assert visible_devices() == (None if on_gpu else b"")


def test_only_a_ranked_run_is_secret() -> None:
    assert nonce_of(make_judging(mode=Mode.TEST, nonce="ab" * 16)) == PUBLIC_NONCE
    assert nonce_of(make_judging(mode=Mode.BENCHMARK)) == PUBLIC_NONCE
    assert nonce_of(make_judging(mode=Mode.RANKED, nonce="ab" * 16)) == b"\xab" * 16
    assert len({nonce_of(make_judging(mode=Mode.RANKED)) for _ in range(5)}) == 5


def test_only_a_task_with_a_program_of_its_own_needs_no_language_of_the_runner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(name: str) -> None:
        raise LookupError(f"no language {name}")

    monkeypatch.setattr(languages, "language", unknown)
    require_toolchain(make_program_task())
    with pytest.raises(VerdictError, match="cannot judge the task: no language py") as ruling:
        require_toolchain(make_plain_task())
    assert ruling.value.verdict is Verdict.TASK_ERROR


def test_progress_does_not_count_what_a_failure_left_out(
    judge: Judge, progress: list[Progress]
) -> None:
    source = "def custom_kernel(data):\n    raise ValueError\n"
    assert judge(make_judging(source, Mode.TEST)).verdict is Verdict.CRASHED
    assert [each for each in progress if each.stage is Stage.TEST and each.done] == []


@pytest.mark.parametrize(("mode", "stage"), [(Mode.TEST, Stage.TEST), (Mode.RANKED, Stage.TIMING)])
def test_the_evaluation_for_a_check_that_does_not_end_is_prepared(
    template: TemplateProcess, mode: Mode, stage: Stage
) -> None:
    watch = CheckWatch()
    watch.begin(60)
    request = make_judging(SORTED, mode)
    assert evaluate(request, template, OPEN, lambda _: None, watch=watch).verdict is Verdict.PASSED

    found = Evaluation.model_validate_json(watch.evaluation())
    assert (found.verdict, found.stage, found.mode) == (Verdict.TIMED_OUT, stage, mode)
    assert "checked the output" in found.message
    assert found.wall_s == pytest.approx(60, abs=1)
    with watch.checking():
        watch.ended(-signal.SIGSEGV)
    crashed = Evaluation.model_validate_json(watch.evaluation())
    assert (crashed.verdict, crashed.stage) == (Verdict.WRONG_ANSWER, stage)
    assert "crashed" in crashed.message


def test_a_rivals_answer_whose_check_does_not_end_only_fails_the_rival(
    template: TemplateProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival's check had no end: nobody could take a place from one who made it endless."""
    watch = CheckWatch()
    watch.begin(60)
    rivals = list[Evaluation]()
    checking = watch.checking

    @contextmanager
    def seen(*, rival: bool = False) -> Iterator[None]:
        with checking(rival=rival):
            if rival:
                rivals.append(Evaluation.model_validate_json(watch.evaluation()))
            yield

    monkeypatch.setattr(watch, "checking", seen)
    request = make_judging(SORTED, Mode.RANKED, rival=SORTED)
    assert evaluate(request, template, OPEN, lambda _: None, watch=watch).verdict is Verdict.PASSED

    assert {each.verdict for each in rivals} == {Verdict.PASSED}
    compared = [each.comparison for each in rivals if each.comparison]
    assert len(compared) == len(rivals) > 2
    assert {each.rival_verdict for each in compared} == {Verdict.TIMED_OUT}
    assert read(request.task, rivals[-1]) is Reading.RIVAL_FAILED


def test_a_rival_that_breaks_the_judges_context_ends_the_evaluation_at_its_own_cost(
    template: TemplateProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> NoReturn:
        raise RivalBrokeContextError(VerdictError(Verdict.WRONG_ANSWER, "an index"))

    monkeypatch.setattr(PairedTimer, "measure", broken)
    request = make_judging(SORTED, Mode.RANKED, rival=SORTED)

    found = evaluate(request, template, OPEN, lambda _: None)

    assert (found.verdict, found.cases) == (Verdict.PASSED, ())
    assert found.comparison is not None
    assert found.comparison.rival_verdict is Verdict.WRONG_ANSWER
    assert read(request.task, found) is Reading.RIVAL_FAILED


def test_after_failed_attempts_such_a_check_is_not_the_submissions_fault(
    template: TemplateProcess,
) -> None:
    watch = CheckWatch()
    evaluate(make_judging(SORTED, used_s=1), template, OPEN, lambda _: None, watch=watch)

    assert watch.evaluation() == b""

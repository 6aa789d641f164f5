from types import SimpleNamespace

import pytest
import torch

from runners.contract.evaluation import Isolation, Limits, Progress
from runners.contract.verdict import Stage, Verdict
from runners.harness.judge import session as session_module
from runners.harness.verdicts import OutOfTimeError, VerdictError, as_task_error
from tests.doubles.judging import make_judging
from tests.unit.runners.harness.conftest import Sit


def test_durations_add_up_by_step(sit: Sit) -> None:
    session = sit(make_judging())
    for _ in range(2):
        with session.record_duration("run"):
            sum(range(1000))
    once = session.durations_s["run"]
    with session.record_duration("run"):
        sum(range(1000))

    assert session.durations_s["run"] > once > 0


def test_what_is_logged_stops_at_the_limit(sit: Sit) -> None:
    session = sit(make_judging(limits=Limits(output=1024)))

    for _ in range(3):
        session.add_to_log(b"x" * 700)

    assert bytes(session.log) == b"x" * 1024


def test_a_welcome_adds_the_candidates_layers_once(sit: Sit) -> None:
    session = sit(make_judging())
    session.isolation = Isolation(outer="unshare", layers=("network",), missing={"cgroup": "no"})

    for _ in range(2):
        session.record_sandbox(("network", "seccomp"), {"landlock": "old"})

    assert session.isolation == Isolation(
        outer="unshare",
        layers=("network", "seccomp"),
        missing={"cgroup": "no", "landlock": "old"},
    )


def test_a_layer_that_one_candidate_lacked_is_not_said_to_be_active(sit: Sit) -> None:
    session = sit(make_judging())
    session.isolation = Isolation(outer="unshare", layers=("network", "namespaces"))

    session.record_sandbox(("network",), {"namespaces": "refused"})
    session.record_sandbox(("network", "namespaces"), {})

    assert session.isolation.layers == ("network",)
    assert session.isolation.missing == {"namespaces": "refused"}


def test_progress_is_reported_as_it_is_told(sit: Sit, progress: list[Progress]) -> None:
    sit(make_judging()).report_progress(Stage.TEST, 1, 2)

    assert progress == [Progress(stage=Stage.TEST, done=1, total=2)]


def test_a_grader_that_loads_no_code_has_none(sit: Sit) -> None:
    session = sit(make_judging())
    assert session.code is session.task_code
    session.task_code = None
    with pytest.raises(LookupError, match="none of the task's code"):
        _ = session.code


@pytest.mark.parametrize(
    ("on_gpu", "cause", "free", "own", "verdict"),
    [
        (True, torch.OutOfMemoryError(), 9, 15, Verdict.MEMORY_EXCEEDED),
        (True, torch.OutOfMemoryError(), 10, 15, Verdict.TASK_ERROR),
        (True, ValueError(), 9, 15, Verdict.TASK_ERROR),
        (False, torch.OutOfMemoryError(), 9, 15, Verdict.TASK_ERROR),
    ],
    ids=["held by others", "used by the task", "another error", "on the CPU"],
)
def test_task_code_without_memory_is_the_fault_of_who_holds_it(
    sit: Sit,
    monkeypatch: pytest.MonkeyPatch,
    *,
    on_gpu: bool,
    cause: Exception,
    free: int,
    own: int,
    verdict: Verdict,
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: own)
    session = sit(make_judging())
    session.on_gpu = on_gpu

    def fails() -> None:
        raise cause

    with pytest.raises(VerdictError) as found:
        as_task_error("ref_kernel", fails)

    assert session.attributed(found.value).verdict is verdict


@pytest.mark.parametrize(
    ("usual_s", "spent_s", "counted_s"),
    [(1.0, 9.0, 8.0), (1.0, 1.4, 0.0), (float("inf"), 9.0, 0.0)],
    ids=["slow because of the output", "about as usual", "unknown"],
)
def test_a_check_that_the_output_makes_slow_is_the_submissions_time(
    sit: Sit, monkeypatch: pytest.MonkeyPatch, usual_s: float, spent_s: float, counted_s: float
) -> None:
    session = sit(make_judging())
    clock = iter((0.0, spent_s))
    monkeypatch.setattr(session_module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(session.code, "usual_check_s", lambda _: usual_s)

    with session.timing_check(object()):
        pass

    assert session.durations_s.get("slow checks", 0.0) == counted_s
    session.durations_s["run"] = session.request.left_s / 4
    error = session.attributed(OutOfTimeError(Verdict.TASK_ERROR, "too long"))
    assert error.verdict is (Verdict.TIMED_OUT if counted_s else Verdict.TASK_ERROR)


@pytest.mark.parametrize(("run_s", "told"), [(0.1, True), (30.0, False)])
def test_a_time_limit_that_the_tasks_own_code_used_up_is_told_so(
    sit: Sit, *, run_s: float, told: bool
) -> None:
    session = sit(make_judging())
    task_s = session.request.left_s / 2
    session.durations_s |= {"run": run_s, "inputs": 1.0, "check": task_s - 3, "reference": 2.0}

    error = session.attributed(VerdictError(Verdict.TIMED_OUT, "the time limit passed"))

    shares = f" (the kernel took 0.1 s, inputs, reference and checks {task_s:.1f} s)"
    assert error.verdict is Verdict.TIMED_OUT
    assert error.message == "the time limit passed" + shares * told

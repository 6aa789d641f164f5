import re

import pytest

from bot.domain.errors import UserError
from bot.domain.requirements import (
    absent_module,
    in_service,
    least_missing,
    missing,
    missing_for,
    require_known_gpus,
)
from bot.domain.tasks.bundle import Solution
from runners.contract.evaluation import CPU, Isolation
from runners.contract.task import Device, Grader, IsolationLayer, TaskFormat, Workload
from runners.contract.verdict import Verdict
from tests.doubles.factories import make_capabilities, make_evaluation, make_task

TWO_RANKS = (Workload(args={"size": 16, "world_size": 2}),)


def test_a_plain_task_runs_on_a_plain_runner() -> None:
    assert missing(make_capabilities(), make_task(), CPU) == ()


@pytest.mark.parametrize(
    ("task", "lack"),
    [
        ({"lang": "cu"}, "language cu"),
        ({"grader": Grader.POPCORN}, "grader popcorn"),
        ({"format": TaskFormat.KERNELBENCH}, "task format kernelbench"),
        ({"libraries": ("cutlass",)}, "library cutlass"),
        ({"isolation": (IsolationLayer.SECCOMP,)}, "isolation layer seccomp"),
        ({"multi_gpu": True, "tests": TWO_RANKS}, "2 GPUs at the same time"),
        ({"device": Device.CUDA}, "the device cuda"),
    ],
)
def test_each_thing_that_a_runner_lacks_is_named(task: dict[str, object], lack: str) -> None:
    assert missing(make_capabilities(), make_task(**task), CPU) == (lack,)


def test_a_runner_that_offers_everything_lacks_nothing() -> None:
    rich = make_capabilities(
        gpus={"H100": 8},
        languages=("py", "cu"),
        graders=tuple(Grader),
        formats=tuple(TaskFormat),
        libraries=("cutlass",),
        at_once={"H100": 2},
        isolation=Isolation(outer="none", layers=("seccomp",)),
    )
    task = make_task(
        lang="cu",
        grader=Grader.POPCORN,
        libraries=("cutlass",),
        isolation=(IsolationLayer.SECCOMP,),
        multi_gpu=True,
        tests=TWO_RANKS,
        device=Device.CUDA,
    )
    assert missing(rich, task, "H100") == ()


def test_a_task_of_the_cpu_is_not_ranked_as_a_gpus() -> None:
    both = make_capabilities(gpus={CPU: 1, "H100": 1})
    task = make_task(device=Device.CPU)
    assert missing(both, task, CPU) == ()
    assert missing(both, task, "H100") == ("the device cpu",)


def test_what_needs_a_gpu_does_not_run_on_a_cpu() -> None:
    offer = make_capabilities(gpus={CPU: 1, "H200": 1})
    assert missing_for(offer, _solution("triton"), CPU) == ("triton",)
    assert missing_for(offer, _solution("triton"), "H200") == ()
    assert missing_for(offer, _solution(), CPU) == ()


def test_what_needs_an_absent_library_does_not_run() -> None:
    assert missing_for(make_capabilities(), _solution("cupy", "cuda"), CPU) == ("cupy", "cuda")
    assert missing_for(make_capabilities(libraries=("cupy",)), _solution("cupy"), CPU) == ()


def _solution(*needs: str) -> Solution:
    return Solution("solutions/correct/x.py", "source", Verdict.PASSED, needs)


def test_the_nearest_runner_says_what_is_missing() -> None:
    poor = make_capabilities(gpus={"L4": 1})
    near = make_capabilities(gpus={"H100": 1})
    task = make_task(libraries=("cutlass",))
    assert least_missing([poor, near], task, "H100") == ("library cutlass",)
    assert least_missing([], task, "H100") == ("GPU type H100",)


def test_a_type_without_a_card_in_service_is_not_there() -> None:
    offers = [make_capabilities(gpus={"T4": 0, "L4": 1}), make_capabilities(gpus={"H200": 2})]
    assert in_service(offers) == ("H200", "L4")


def test_a_gpu_type_of_a_board_is_in_the_table_or_served() -> None:
    require_known_gpus(("CPU", "H100", "A100-80GB", "MI300X", "RTX5090"), {"RTX5090"})
    for name, served, words in (
        ("H1000", {"CPU"}, "called 'H1000'; did you mean H100? Known: CPU, T4, L4,"),
        ("RTX5091", {"RTX5090"}, "did you mean RTX5090? Known: CPU,"),
        ("RTX5091", {"RTX5090"}, "Served by connected workers: RTX5090. For a type of your own"),
        ("abacus", set(), "called 'abacus'; Known: CPU,"),
        ("abacus", set(), "Served by connected workers: none."),
    ):
        with pytest.raises(UserError, match=re.escape(words)) as refusal:
            require_known_gpus(("CPU", name), served)
        assert refusal.value.code == "bad-gpu"


@pytest.mark.parametrize(
    ("files", "grader", "absent"),
    [
        ({"eval.py": "from cutlass.cute import x"}, Grader.POPCORN, "cutlass"),
        ({"eval.py": "import cutlass"}, Grader.NATIVE, ""),
        ({"utils.py": "def f():\n    import cutlass"}, Grader.NATIVE, "cutlass"),
        ({"utils.py": "import cutlassic"}, Grader.NATIVE, ""),
        ({"template.py": "import cutlass"}, Grader.NATIVE, ""),
    ],
)
def test_only_what_the_tasks_own_code_imports_is_absent_from_the_runner(
    files: dict[str, str], grader: Grader, absent: str
) -> None:
    templates = {"Python": "template.py"} if "template.py" in files else {}
    task = make_task(files=files, grader=grader, templates=templates)
    message = "status 1: ModuleNotFoundError: No module named 'cutlass.cute'"
    crashed = make_evaluation(verdict=Verdict.CRASHED, message=message)
    assert absent_module(task, crashed) == absent
    assert absent_module(task, make_evaluation(verdict=Verdict.CRASHED, message="boom")) == ""

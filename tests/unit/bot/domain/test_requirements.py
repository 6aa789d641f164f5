import pytest

from bot.domain.requirements import least_missing, missing
from runners.contract.evaluation import CPU, Isolation
from runners.contract.task import Device, Grader, IsolationLayer, Language, TaskFormat
from tests.doubles.factories import make_capabilities, make_task


def test_a_plain_task_runs_on_a_plain_runner() -> None:
    assert missing(make_capabilities(), make_task(), CPU) == ()


@pytest.mark.parametrize(
    ("task", "lack"),
    [
        ({"lang": Language.CUDA}, "language cu"),
        ({"grader": Grader.POPCORN}, "grader popcorn"),
        ({"format": TaskFormat.KERNELBENCH}, "task format kernelbench"),
        ({"libraries": ("cutlass",)}, "library cutlass"),
        ({"isolation": (IsolationLayer.SECCOMP,)}, "isolation layer seccomp"),
        ({"multi_gpu": True}, "several GPUs at once"),
        ({"device": Device.CUDA}, "a CUDA device"),
    ],
)
def test_each_thing_that_a_runner_lacks_is_named(task: dict[str, object], lack: str) -> None:
    assert missing(make_capabilities(), make_task(**task), CPU) == (lack,)


def test_a_runner_that_offers_everything_lacks_nothing() -> None:
    rich = make_capabilities(
        gpus={"H100": 8},
        languages=tuple(Language),
        graders=tuple(Grader),
        formats=tuple(TaskFormat),
        libraries=("cutlass",),
        multi_gpu=True,
        isolation=Isolation(outer="none", layers=("seccomp",)),
    )
    task = make_task(
        lang=Language.CUDA,
        grader=Grader.POPCORN,
        libraries=("cutlass",),
        isolation=(IsolationLayer.SECCOMP,),
        multi_gpu=True,
        device=Device.CUDA,
    )
    assert missing(rich, task, "H100") == ()


def test_the_nearest_runner_says_what_is_missing() -> None:
    poor = make_capabilities(gpus={"L4": 1})
    near = make_capabilities(gpus={"H100": 1})
    task = make_task(libraries=("cutlass",))
    assert least_missing([poor, near], task, "H100") == ("library cutlass",)
    assert least_missing([], task, "H100") == ("GPU type H100",)

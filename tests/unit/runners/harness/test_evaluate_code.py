"""Device code up to its launch, which needs a GPU: built by a real candidate in its sandbox."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from runners.contract.evaluation import Evaluation, Limits
from runners.contract.launch import LaunchNumbers
from runners.contract.task import Launch, Mode, TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.harness.build import kit
from runners.harness.judge.host_candidate import HostCandidate
from runners.harness.protocol.channel import Exchange, Operation
from tests.doubles import candidates
from tests.doubles.judging import make_judging, make_sort_task
from tests.unit.runners.harness.conftest import Judge

LAUNCH = Launch(kernel="add", params=("in0", "out0", "size"), grid=("size",), block=(64,))
RIGHT = "__global__ void add(const float* a, float* out, int size) { out[0] = a[0]; }\n"
BOMB = (
    "template <int N, int M> struct F { static constexpr int v = F<N - 1, 2 * M>::v + "
    "F<N - 1, 2 * M + 1>::v; };\ntemplate <int M> struct F<0, M> { static constexpr int v = M; };\n"
)
Build = Callable[..., Evaluation]


@pytest.fixture(autouse=True)
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a GPU were here, up to the moment at which one is needed."""
    monkeypatch.setattr(kit, "GPU_DEVICE", Path("/dev/null"))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(kit, "DeviceCode", lambda *_: lambda data: data[0])


@pytest.fixture
def fork_template(gpu: None) -> candidates.Fork:
    """Candidates are built as if a GPU were here."""
    return candidates.fork_own_template


def code_task(launch: Launch = LAUNCH, limit_s: int = 20) -> TaskDefinition:
    return make_sort_task(
        lang="cu", submission_file="submission.cu", launch=launch, test_timeout=limit_s
    )


@pytest.fixture
def build(gpu: None, judge: Judge) -> Build:
    def judged(source: str, limit_s: int = 20) -> Evaluation:
        limits = Limits(memory=1 << 30)
        return judge(make_judging(source, task=code_task(limit_s=limit_s), limits=limits))

    return judged


def test_every_call_has_the_launch_of_its_case_and_calibrations_have_none(
    gpu: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(kit, "DeviceCode", lambda *_: lambda data: torch.sort(data[0]).values)
    grids: dict[Operation, list[int]] = {operation: [] for operation in Operation}
    plain = HostCandidate.call

    def call(
        candidate: HostCandidate,
        operation: Operation,
        *args: Any,  # noqa: ANN401 - handed on
        launch: LaunchNumbers | None = None,
        **options: Any,  # noqa: ANN401 - handed on
    ) -> Exchange:
        grids[operation].append(launch.grid[0] if launch else 0)
        return plain(candidate, operation, *args, launch=launch, **options)

    monkeypatch.setattr(HostCandidate, "call", call)
    judge: Judge = request.getfixturevalue("judge")  # its template is forked by now as it is here

    ranked = judge(make_judging(RIGHT, Mode.RANKED, task=code_task()))
    profiled = judge(make_judging(RIGHT, Mode.PROFILE, task=code_task()))

    assert (ranked.verdict, profiled.verdict) == (Verdict.PASSED, Verdict.PASSED), ranked.message
    assert ranked.compiled is not None
    assert grids[Operation.RUN][0] == 100  # the test
    assert set(grids[Operation.RUN][1:]) == {20_000}
    assert grids[Operation.PROFILE] == [20_000]
    assert set(grids[Operation.TOUCH]) == {0}


def test_what_the_compiler_tells_of_a_right_kernel_is_in_the_evaluation(build: Build) -> None:
    found = build("//!PODIUM block 32\n" + RIGHT)

    assert found.verdict is Verdict.WRONG_ANSWER  # nothing launches it here
    assert found.compiled is not None
    assert found.compiled.registers > 0


def test_a_compile_error_is_told_with_its_line_and_caret_and_is_in_the_log(build: Build) -> None:
    found = build("\n" + RIGHT.replace("a[0]", "wrong[0]"))

    assert (found.verdict, found.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    first, _, caret = found.message.splitlines()
    assert first == 'submission.cu(2): error: identifier "wrong" is undefined'
    assert caret.strip() == "^"
    assert found.message in found.log
    assert found.compiled is None


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("__global__ void sub(float* out) {}\n", "there is no kernel `add`; define `__global__"),
        ("__global__ void add(float* out) {}\n", "`add` takes 1 parameter of 8 bytes; the task"),
        ("//!PODIUM block 99*size\n" + RIGHT, "line 1 of the header: block: '99*size' is"),
    ],
)
def test_another_kernel_than_the_task_calls_is_invalid(
    build: Build, source: str, words: str
) -> None:
    found = build(source)

    assert (found.verdict, found.stage) == (Verdict.INVALID_SUBMISSION, Stage.BUILD)
    assert words in found.message


@pytest.mark.parametrize("file", ["/etc/shadow", "/proc/self/environ", "reference.py", "/root/.x"])
def test_a_file_of_the_host_is_not_told_by_an_include(build: Build, file: str) -> None:
    found = build(f'#include "{file}"\n' + RIGHT)

    assert found.verdict is Verdict.BUILD_FAILED, found.message
    for secret in ("$y$", "$6$", "generate_input", "SECRET", "TOKEN"):
        assert secret not in found.log


@pytest.mark.slow
def test_a_compiler_that_does_not_end_is_stopped(build: Build) -> None:
    found = build(BOMB + RIGHT.replace("a[0]", "F<28, 0>::v"), 2)

    stopped = found.verdict in {Verdict.TIMED_OUT, Verdict.MEMORY_EXCEEDED}
    assert stopped or "out of memory" in found.message  # the compiler may notice it first
    assert found.stage is Stage.BUILD
    assert found.wall_s < 10


def test_a_wrong_launch_blames_the_task(judge: Judge) -> None:
    launch = LAUNCH.model_copy(update={"grid": ("rows",)})

    found = judge(make_judging(RIGHT, task=code_task(launch=launch)))

    assert (found.verdict, found.stage) == (Verdict.TASK_ERROR, Stage.PREPARE)
    assert "the task's launch.grid: 'rows' is no argument of this case" in found.message

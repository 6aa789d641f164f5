"""A task's own evaluation as a grader: what its line and its end become."""

from collections.abc import Mapping

import pytest

from bot.domain.status import disclosed
from runners.contract.evaluation import (
    CaseKind,
    CaseStatus,
    Evaluation,
    Limits,
    Progress,
    StopReason,
    Timing,
)
from runners.contract.task import Mode, RankingBy, Workload
from runners.contract.verdict import Stage, Verdict
from runners.harness.graders import popcorn
from runners.harness.graders.popcorn import CASES_FILE, secret_seed
from runners.harness.timing.intervals import t_quantile
from runners.harness.verdicts import VerdictError
from tests.doubles.judging import make_judging
from tests.doubles.kernelbot import DOUBLES, PLAIN_EVAL, make_affine_task, make_plain_task
from tests.unit.runners.harness.conftest import Judge, Sit, judge, progress, sit, template

__all__ = ["judge", "progress", "sit", "template"]
TWO = tuple(Workload(args={"size": size, "seed": 1}) for size in (10, 20))
SILENT = "def custom_kernel(data): return []\n"
LINE = "import os\nline = int(os.environ['POPCORN_FD'])\n"


def judged(
    judge: Judge, source: str = DOUBLES, mode: Mode = Mode.TEST, **changes: object
) -> Evaluation:
    evaluation = str(changes.pop("evaluation", PLAIN_EVAL))
    more = {key: changes.pop(key) for key in ("nonce", "limits") if key in changes}
    return judge(make_judging(source, mode, task=make_plain_task(evaluation, **changes), **more))


def test_a_test_run_is_one_phase_of_the_tests(judge: Judge, progress: list[Progress]) -> None:
    found = judged(judge)

    assert found.verdict is Verdict.PASSED, found.message
    assert [(case.kind, case.status) for case in found.cases] == [
        (CaseKind.TEST, CaseStatus.PASSED)
    ] * 2
    assert found.environment.timing is Timing.IN_PROCESS
    assert [(told.stage, told.done) for told in progress] == [
        (Stage.PREPARE, 0), (Stage.TEST, 0), (Stage.TEST, 2),
    ]  # fmt: skip


def test_a_ranked_run_has_tests_and_what_was_said_of_the_benchmarks(judge: Judge) -> None:
    found = judged(judge, mode=Mode.RANKED)

    assert found.verdict is Verdict.PASSED, found.message
    measured = found.cases[-1].measurement
    assert measured is not None
    assert (measured.time_ns, measured.resolution_ns, measured.claimed_ns) == (5e3, 5e3, 5e3)
    assert measured.half_width_ns == pytest.approx(t_quantile(3) * 10)
    assert (measured.bound_ns, measured.samples) == (0, ())
    assert measured.stop_reason is StopReason.TASK
    assert {"test", "leaderboard"} <= found.durations_s.keys()


@pytest.mark.parametrize(("ranking", "timed"), [(RankingBy.LAST, 1), (RankingBy.GEOM, 2)])
def test_a_ranked_run_times_what_scores(judge: Judge, ranking: RankingBy, timed: int) -> None:
    found = judged(judge, mode=Mode.RANKED, tests=(), benchmarks=TWO, ranking_by=ranking)

    assert [case.spec for case in found.cases] == [case.spec for case in TWO[-timed:]]


def test_a_profile_run_has_a_phase_for_each_benchmark(judge: Judge) -> None:
    found = judged(judge, mode=Mode.PROFILE, benchmarks=TWO)

    assert [case.kind for case in found.cases] == [CaseKind.PROFILE] * 2
    assert found.log == "a table" * 2


SAYS_SEED = "import os\nprint('seed', os.environ.get('POPCORN_SEED'))\n" + DOUBLES


@pytest.mark.parametrize(("seed", "said"), [(None, "seed None"), (5, "seed 5")])
def test_public_runs_have_the_seed_of_the_task(judge: Judge, seed: int | None, said: str) -> None:
    assert judged(judge, SAYS_SEED, seed=seed).log.splitlines()[0] == said
    assert judged(judge, SAYS_SEED, Mode.BENCHMARK, seed=seed).log.splitlines()[0] == said


def test_a_ranked_run_has_another_secret_seed_each_time(judge: Judge) -> None:
    logs = [judged(judge, SAYS_SEED, Mode.RANKED, seed=5).log.splitlines() for _ in range(2)]
    again = [judged(judge, SAYS_SEED, Mode.RANKED, nonce="ab" * 16).log for _ in range(2)]

    assert [log[0] for log in logs] == ["seed 5"] * 2
    assert logs[0][1] != logs[1][1]
    assert again[0] == again[1]
    assert 0 <= secret_seed(b"nonce") < 1 << 31


CRASHES: Mapping[str, tuple[str, Verdict, Stage, str]] = {
    "a wrong output": (
        "def custom_kernel(data): return data", Verdict.WRONG_ANSWER, Stage.TEST, "output is wrong"
    ),
    "no such module": ("import no_such", Verdict.BUILD_FAILED, Stage.BUILD, "named 'no_such'"),
    "no syntax": ("def custom_kernel(:", Verdict.BUILD_FAILED, Stage.BUILD, "SyntaxError"),
    "an exception": (
        "def custom_kernel(data): raise ValueError('boom')", Verdict.CRASHED, Stage.TEST,
        "status 1: ValueError: boom",
    ),
    "a segfault": (
        "import ctypes; ctypes.string_at(0)", Verdict.CRASHED, Stage.TEST, "SIGSEGV"
    ),
    "an early end": ("import os; os._exit(0)", Verdict.CRASHED, Stage.TEST, "does not end with"),
    "an early end with 112": ("import os; os._exit(112)", Verdict.CRASHED, Stage.TEST, "112"),
    "silence": ("import os; os._exit(7)", Verdict.CRASHED, Stage.TEST, "7: it printed nothing"),
    "arguments refused": ("import os; os._exit(2)", Verdict.CRASHED, Stage.TEST, "status 2:"),
    "no pipe": ("import os; os._exit(111)", Verdict.CRASHED, Stage.TEST, "status 111:"),
    "no cases": ("import os; os._exit(113)", Verdict.CRASHED, Stage.TEST, "status 113:"),
    "an endless loop": ("while True: pass", Verdict.TIMED_OUT, Stage.TEST, "time limit"),
    "a flood": ("while True: print('x' * 999)", Verdict.OUTPUT_EXCEEDED, Stage.TEST, "64 KiB"),
    "a flooded line": (
        LINE + "while True: os.write(line, b'x' * 999)", Verdict.DISALLOWED, Stage.TEST, "1024 KiB"
    ),
    "a forged verdict": (
        LINE + "os.write(line, b'check: pass\\n')\n" + DOUBLES, Verdict.DISALLOWED, Stage.TEST,
        "says `check: pass` without a passing line for every case before it",
    ),
    "a forged status": (
        LINE + "os.write(line, b'test.0.status: pass\\n')\n" + SILENT, Verdict.DISALLOWED,
        Stage.TEST, "'test.0.status' twice",
    ),
    "a forged key": (
        LINE + "os.write(line, b'score: 1\\n')\n" + SILENT, Verdict.WRONG_ANSWER, Stage.TEST,
        "output is wrong",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CRASHES)
def test_each_way_to_fail_has_its_verdict(judge: Judge, name: str) -> None:
    source, verdict, stage, words = CRASHES[name]

    found = judged(judge, source, test_timeout=2 if name == "an endless loop" else 30)

    assert (found.verdict, found.stage) == (verdict, stage), found.message
    assert words in found.message
    assert found.cases[-1].status is not CaseStatus.PASSED


NO_MODULE = """
import os, sys

line = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
try:
    import submission
except Exception as error:
    print(f"check: fail\\nerror: {error}", file=line, flush=True)
    sys.exit(112)
"""
LAST_ONLY = """
import os, sys

from submission import custom_kernel

line = os.fdopen(int(os.environ["POPCORN_FD"]), "w")
if custom_kernel([1]) == [2]:
    print("benchmark-count: 1\\nbenchmark.0.spec: size: 20\\nbenchmark.0.runs: 4\\n"
          "benchmark.0.mean: 5e3\\nbenchmark.0.std: 20\\nbenchmark.0.err: 10\\n"
          "check: pass", file=line)
else:
    print("test-count: 1\\ntest.0.status: fail\\ntest.0.error: off by\\n  row 3: 7", file=line)
"""
"""Evaluations in the layout of public tasks: of what is left out here nothing is ever said."""


def test_an_import_that_the_evaluation_catches_is_told_with_its_reason(judge: Judge) -> None:
    found = judged(judge, "import no_such", evaluation=NO_MODULE)

    assert (found.verdict, found.message) == (Verdict.WRONG_ANSWER, "No module named 'no_such'")
    crashing = NO_MODULE.replace("{error}", "{error}\\nmore").replace("112", "1")
    found = judged(judge, "import no_such", evaluation=crashing)
    assert found.message == "the evaluation exited with status 1: No module named 'no_such'"


@pytest.mark.parametrize(
    ("source", "verdict", "message"),
    [
        (DOUBLES, Verdict.PASSED, ""),
        (SILENT, Verdict.WRONG_ANSWER, "off by\n  row 3: 7"),
    ],
)
def test_a_ranked_run_may_tell_its_last_benchmark_as_some_do(
    judge: Judge, source: str, verdict: Verdict, message: str
) -> None:
    found = judged(judge, source, Mode.RANKED, evaluation=LAST_ONLY, tests=(), benchmarks=TWO)

    assert (found.verdict, found.message) == (verdict, message)
    assert [case.spec for case in found.cases] == [TWO[-1].spec]


INLINE = """
raise RuntimeError("Error building extension 'a': [1/2] c++ -c x\\nFAILED: a.o\\n"
                   "main.cpp:4:9: error: expected ';'\\nninja: build stopped")
"""
TELLS_THE_SEED = """
import sys
if "leaderboard" in sys.argv:
    raise ImportError(repr(open("cases.txt").read()))
"""


def test_a_failed_build_tells_the_compiler_s_first_error(judge: Judge) -> None:
    found = judged(judge, INLINE)

    assert (found.verdict, found.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert found.message == "main.cpp:4: error: expected ';'"


def test_a_build_that_fails_beside_secret_cases_tells_nobody_of_them(judge: Judge) -> None:
    source = TELLS_THE_SEED.replace("cases.txt", CASES_FILE) + DOUBLES
    found = judged(judge, source, Mode.RANKED)

    assert found.verdict is Verdict.BUILD_FAILED
    seen = disclosed(found)
    assert seen.message == "build_failed at benchmark 1 of the ranked run"
    assert not seen.log


def test_a_case_that_was_complete_stays_passed_when_the_next_one_falls(judge: Judge) -> None:
    source = "def custom_kernel(data):\n    assert data != [1], 'here'\n    return [0]\n"
    found = judged(judge, source, tests=(*TWO, *TWO), mode=Mode.RANKED)

    assert found.verdict is Verdict.CRASHED
    assert [case.status.value for case in found.cases] == [
        "passed", "failed", "skipped", "skipped", "skipped",
    ]  # fmt: skip
    assert "AssertionError: here" in found.cases[1].message
    assert "AssertionError: here" in found.log


@pytest.mark.parametrize("number", ["nan", "inf", "-1", "0", "-1e-9", "fast"])
def test_a_number_that_is_no_time_is_disallowed(judge: Judge, number: str) -> None:
    forged = PLAIN_EVAL.replace('"mean": 5e3', f'"mean": "{number}"')
    found = judged(judge, mode=Mode.BENCHMARK, evaluation=forged)

    assert (found.verdict, found.stage) == (Verdict.DISALLOWED, Stage.TIMING)
    assert found.cases[0].measurement is None


def test_a_single_run_has_no_interval(judge: Judge) -> None:
    once = PLAIN_EVAL.replace('"runs": 4', '"runs": 1')
    (case,) = judged(judge, mode=Mode.BENCHMARK, evaluation=once).cases
    assert case.measurement is not None
    assert case.measurement.half_width_ns == case.measurement.time_ns


def test_the_message_of_a_check_has_its_lines_back(judge: Judge) -> None:
    explaining = PLAIN_EVAL.replace(
        "line.flush()",
        "right or print(f'{kind}.{number}.error: a\\\\nb', file=line)\n    line.flush()",
    )
    found = judged(judge, "def custom_kernel(d): return d[:0]", evaluation=explaining)
    assert (found.verdict, found.message) == (Verdict.WRONG_ANSWER, "a\nb")


def test_a_submission_that_builds_inline_runs_once_without_the_task(judge: Judge) -> None:
    source = (
        "import os  # load_inline\n"
        "print(sorted(os.listdir('.')), os.environ['POPCORN_FD'].isdigit())\n" + DOUBLES
    )
    found = judged(judge, source)

    assert found.verdict is Verdict.PASSED, found.message
    assert found.log.splitlines() == [
        "['submission.py'] True",
        "['eval.py', 'popcorn-cases.txt', 'submission.py'] True",
    ]


@pytest.mark.parametrize(
    ("status", "words"),
    [(2, "accept its arguments"), (111, "open its result pipe"), (113, "read its cases")],
)
def test_a_status_that_the_evaluation_also_has_without_the_submission_is_the_tasks_fault(
    judge: Judge, status: int, words: str
) -> None:
    found = judged(judge, evaluation=f"import sys\nprint('no such mode')\nsys.exit({status})\n")

    assert (found.verdict, found.stage) == (Verdict.TASK_ERROR, Stage.TEST)
    assert words in found.message
    assert found.message.endswith("the last line printed was: no such mode")
    assert found.log == "no such mode\n"


def test_a_task_without_its_evaluation_is_the_tasks_fault(judge: Judge) -> None:
    task = make_plain_task(files={"reference.py": ""})
    found = judge(make_judging(DOUBLES, task=task))
    assert (found.verdict, found.stage) == (Verdict.TASK_ERROR, Stage.PREPARE)


SAYS_GPUS = (
    "import os\nprint([os.environ.get(name) for name in "
    "('POPCORN_GPUS', 'NCCL_NVLS_ENABLE', 'NCCL_SOCKET_IFNAME', 'CUDA_VISIBLE_DEVICES')])\n"
)


def test_several_workers_are_told_how_many_they_are(judge: Judge) -> None:
    cases = (Workload(args={"size": 3, "world_size": 3}),)
    one = judged(judge, SAYS_GPUS + DOUBLES).log
    three = judged(judge, SAYS_GPUS + DOUBLES, tests=cases, benchmarks=cases, multi_gpu=True).log

    assert one == "[None, '0', None, '']\n"
    assert three == "['3', '0', 'lo', '']\n"


def test_fewer_gpus_than_ranks_are_the_runners_lack(
    sit: Sit, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = (Workload(args={"size": 3, "world_size": 2}),)
    task = make_affine_task(tests=cases, benchmarks=cases, multi_gpu=True)
    session = sit(make_judging(DOUBLES, task=task))
    session.on_gpu = True
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    with pytest.raises(VerdictError, match="needs 2 GPUs, and this runner has 1"):
        popcorn.grade(session)


def test_several_ranks_have_the_memory_the_processes_and_the_scratch_of_several() -> None:
    several, one = popcorn._limits(Limits(), 4), popcorn._limits(Limits(), 1)
    assert (several.memory, several.disk) == (4 * Limits().memory, 5 * Limits().disk)
    assert (one.memory, one.disk) == (Limits().memory, Limits().disk)
    assert several.processes > one.processes > Limits().processes
    assert several.open_files > one.open_files > Limits().open_files

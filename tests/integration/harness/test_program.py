"""The harness as the program that it is: requests in, one answer each, whatever happens between."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import psutil
import pytest

from runners.contract.evaluation import Evaluation
from runners.contract.task import Mode, Workload
from runners.contract.verdict import Stage, Verdict
from tests.doubles import footprints
from tests.doubles.judging import (
    FEW_ROUNDS,
    ROOT,
    SORT,
    SORTED,
    Harness,
    make_judging,
    make_sort_task,
    serving,
)

pytestmark = pytest.mark.slow

PAGES = """
import resource
import torch

WAVE = torch.zeros(500_000)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def custom_kernel(data):
    counts = []
    for _ in range(8):
        before = faults()
        WAVE.exp().sin()
        counts.append(faults() - before)
    print("new pages:", min(counts[-3:]))
    return torch.sort(data[0]).values
"""
"""Prints how many pages the Linux kernel gave it for two tensors of 488 pages each."""
FIRST_PAGES = """
import resource
import torch

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def custom_kernel(data):
    before = faults()
    data[0].double().exp_()
    print("new pages:", faults() - before)
    return torch.sort(data[0]).values
"""
"""Prints how many pages the Linux kernel gave it for a copy in double precision."""


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with serving() as served:
        yield served


def test_asked_once_it_prints_the_evaluation_alone() -> None:
    request = make_judging(SORTED.replace("return", "print('noise'); return"))

    answered = subprocess.run(
        footprints.harness(),
        cwd=ROOT,
        input=request.model_dump_json().encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )

    found = Evaluation.model_validate_json(answered.stdout)
    assert (found.verdict, found.log) == (Verdict.PASSED, "noise\n")


def test_a_kernel_uses_the_memory_that_it_has_freed(harness: Harness) -> None:
    log = harness.evaluate(make_judging(PAGES)).log

    assert int(log.split()[-1]) < 100


def test_a_timed_candidate_has_memory_that_is_ready(harness: Harness) -> None:
    task = make_sort_task(benchmarks=(Workload(args={"size": 300_000, "seed": 1}),))

    log = harness.evaluate(make_judging(FIRST_PAGES, Mode.BENCHMARK, task=task)).log

    _, *timed = (int(line.split()[-1]) for line in log.splitlines())  # the first is of a test
    assert len(timed) >= FEW_ROUNDS.looks[-1] * FEW_ROUNDS.samples
    assert max(timed) < 300  # of 586; the code of torch is among them


def test_progress_is_told_before_the_answer(harness: Harness) -> None:
    harness.evaluate(make_judging())

    assert [told.stage for told in harness.progress][:2] == [Stage.PREPARE, Stage.BUILD]


def test_what_is_no_request_is_an_error_and_the_next_one_is_judged(harness: Harness) -> None:
    assert harness.ask(b"not json").keys() == {"error"}
    assert harness.ask(b'{"request_id": "r"}').keys() == {"error"}
    assert harness.evaluate(make_judging()).verdict is Verdict.PASSED


def test_a_task_that_ends_the_judge_is_an_error_and_the_next_one_is_judged(
    harness: Harness,
) -> None:
    ending = SORT.replace("    generator =", "    import os; os._exit(9)\n    generator =")

    answer = harness.ask(make_judging(task=make_sort_task(ending)).model_dump_json().encode())

    assert answer == {"error": "the judge ended with status 9"}
    assert harness.evaluate(make_judging()).verdict is Verdict.PASSED


def test_a_task_that_prints_does_not_spoil_the_answer(harness: Harness) -> None:
    printing = SORT.replace("    generator =", "    print('{\"evaluation\": 1}')\n    generator =")

    assert harness.evaluate(make_judging(task=make_sort_task(printing))).verdict is Verdict.PASSED


def test_a_task_that_exits_is_the_tasks_fault(harness: Harness) -> None:
    exiting = SORT.replace("    generator =", "    raise SystemExit(0)\n    generator =")

    answer = harness.ask(make_judging(task=make_sort_task(exiting)).model_dump_json().encode())

    assert answer.get("evaluation", {}).get("verdict") == "task_error"


def test_a_judge_that_is_killed_is_an_error_and_leaves_no_candidate(harness: Harness) -> None:
    hanging = make_judging("def custom_kernel(data):\n    while True: pass\n")
    harness.send(hanging.model_dump_json().encode())
    program = psutil.Process(harness.process.pid)
    while not any("R" in each.status()[:1].upper() and each.cpu_times().user > 0.2
                  for each in program.children(recursive=True)[4:]):  # fmt: skip
        time.sleep(0.01)
    judge = program.children(recursive=True)[2]

    os.kill(judge.pid, signal.SIGKILL)

    while (answer := harness.line()).keys() == {"progress"}:
        continue
    assert "ended with status -9" in answer["error"]
    assert harness.evaluate(make_judging()).verdict is Verdict.PASSED


def test_the_end_of_input_ends_the_program() -> None:
    with serving() as served:
        served.stdin.close()
        assert served.process.wait(10) == 0

"""Do tasks of CUDA C++ sources get their verdicts on this GPU, and which times? Prints a table.

Run from the repository root on a machine with a GPU:  python tests/gpu/programs.py [TASK ...]
It needs PyTorch, pydantic, PyYAML, nvcc and a C++ compiler. Nothing is fetched.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from bot.domain.tasks.bundle import solutions  # noqa: E402 - found by the line above
from bot.domain.tasks.task_file import parse_task  # noqa: E402 - found by the line above
from bot.store.task_folders import read_folder, task_folders  # noqa: E402 - found by the line above
from runners.contract.evaluation import Evaluation, EvaluationRequest  # noqa: E402 - likewise
from runners.contract.task import Mode, TaskDefinition  # noqa: E402 - found by the line above
from runners.contract.verdict import Verdict  # noqa: E402 - found by the line above
from tests.gpu.asking import HarnessError, Server, serving  # noqa: E402 - found by the line above

KERNELBOT = ROOT / "tests" / "doubles" / "kernelbot_cuda"
OTHER_STREAM = """
#include "task.h"

__global__ void add(const float* a, const float* b, float* output, int size) {
    const int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < size) output[at] = a[at] + b[at];
}

static cudaStream_t other() {
    static cudaStream_t stream = [] {
        cudaStream_t made;
        cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
        return made;
    }();
    return stream;
}

output_t custom_kernel(input_t data) {
    add<<<(data.size + 255) / 256, 256, 0, other()>>>(data.a, data.b, data.output, data.size);
    return data.output;
}
"""
"""Leaves its work on a stream that no event of the evaluation's waits for."""
FORGED_EARLY = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <unistd.h>
#include "task.h"

__attribute__((constructor)) static void before_main(int, char** arguments) {
    const int line = std::atoi(std::getenv("POPCORN_FD"));
    const std::string kind = std::strcmp(arguments[1], "test") ? "benchmark" : "test";
    std::ifstream file(arguments[2]);
    std::string text, spec;
    for (int i = 0; std::getline(file, spec); ++i) {
        const std::string name = kind + "." + std::to_string(i);
        text += name + ".spec: " + spec + "\\n" + name + ".status: pass\\n";
        if (kind == "test") continue;
        for (const char* field : {"runs", "mean", "std", "err", "best", "worst"})
            text += name + "." + field + ": 1\\n";
    }
    text += "check: pass\\n";
    if (write(line, text.data(), text.size()) > 0) _exit(0);
}

output_t custom_kernel(input_t data) { return data.output; }
"""
FORGED_LATE = """
#include <cstdlib>
#include <unistd.h>
#include "task.h"

output_t custom_kernel(input_t data) {
    if (write(std::atoi(std::getenv("POPCORN_FD")), "check: pass\\n", 12) < 0) abort();
    return data.output;
}
"""
HANGS = """
#include "task.h"

__global__ void wait(volatile float* output) { while (output[0] != 1) {} }

output_t custom_kernel(input_t data) {
    wait<<<1, 1>>>(data.output);
    return data.output;
}
"""
COLUMNS = "{:3s} {:17s} {:34s} {:9s} {:12s} {:12s} {:>6s} {:>7s} {}"


SHARE = 0.9
RANKED_NS: dict[tuple[str, str], list[float]] = {}
"""The times of every ranked run so far, by task and submission."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One submission in one mode, with the verdicts that it may get."""

    task: TaskDefinition
    name: str
    source: str
    mode: Mode
    wanted: tuple[str, ...]
    beside: str = ""
    """A submission judged earlier; this one may not be faster than `SHARE` of its last time."""

    @property
    def request(self) -> EvaluationRequest:
        """The request to the harness."""
        name = f"{self.task.name}/{self.name}"
        return EvaluationRequest(
            request_id=name, task=self.task, source=self.source, mode=self.mode, gpu="GPU"
        )


def trials(names: list[str]) -> Iterator[Trial]:
    """Every shipped solution ranked, the first right one in the other modes, then the attacks."""
    for folder in task_folders(ROOT / "tasks" / "cuda_programs"):
        if names and folder.name not in names:
            continue
        bundle = read_folder(folder)
        task, shipped = parse_task(bundle), solutions(bundle)
        for each in shipped:
            yield Trial(task, Path(each.name).stem, each.source, Mode.RANKED, (each.expect,))
        right = next(each for each in shipped if each.expect is Verdict.PASSED)
        for mode in (Mode.TEST, Mode.BENCHMARK, Mode.PROFILE):
            yield Trial(task, Path(right.name).stem, right.source, mode, ("passed",))
        if folder.name == "vectoradd_program":
            yield from attacks(task)
    if not names or KERNELBOT.name in names:
        task = parse_task(read_folder(KERNELBOT))
        source = task.files[task.templates["CUDA"]]
        yield Trial(task, "KernelBot's form, as it is", source, Mode.RANKED, ("passed",))


def attacks(task: TaskDefinition) -> Iterator[Trial]:
    """Attacks that are stopped, and attacks that in-process evaluation cannot stop."""
    short = task.model_copy(update={"test_timeout": 20})
    name, beside = "another stream (timed in full)", "one_thread_each"
    yield Trial(task, name, OTHER_STREAM, Mode.RANKED, ("passed",), beside)
    yield Trial(task, "forged in the call", FORGED_LATE, Mode.TEST, ("disallowed",))
    yield Trial(task, "forged before main (unstoppable)", FORGED_EARLY, Mode.RANKED, ("passed",))
    yield Trial(short, "a kernel without end", HANGS, Mode.TEST, ("timed_out",))
    right = task.files[task.templates["CUDA"]]
    yield Trial(task, "after all of them", right, Mode.TEST, ("passed",))


def judge(server: Server, trial: Trial) -> tuple[bool, str]:
    """Whether the verdict is an expected one, and its row of the table."""
    try:
        found, seconds = server.ask(trial.request)
    except HarnessError as error:
        print(f"--- {trial.task.name} {trial.name}: {error}", flush=True)
        return False, COLUMNS.format(
            "BAD",
            trial.task.name,
            trial.name,
            trial.mode.value,
            trial.wanted[0],
            "error",
            "",
            "",
            "",
        )
    right = found.verdict.value in trial.wanted and not gained(trial, found)
    if not right or trial.mode is Mode.PROFILE:
        print(f"--- {trial.task.name} {trial.name}: {found.stage} {found.message}\n{found.log}")
        print(found.isolation, flush=True)
    return right, row(trial, found, seconds, "ok" if right else "BAD")


def gained(trial: Trial, found: Evaluation) -> bool:
    """Whether a time is shorter than an honest one by more than noise; records ranked times."""
    timed = [case.measurement.time_ns for case in found.cases if case.measurement is not None]
    if not timed or trial.mode is not Mode.RANKED:
        return False
    honest = RANKED_NS.get((trial.task.name, trial.beside))
    RANKED_NS[trial.task.name, trial.name] = timed
    if honest is None:
        return False
    return any(time < SHARE * least for time, least in zip(timed, honest, strict=True))


def row(trial: Trial, found: Evaluation, seconds: float, mark: str) -> str:
    """A line of the table."""
    compiling = f"{found.durations_s.get('compile', 0.0):.2f}"
    return COLUMNS.format(
        mark,
        trial.task.name,
        trial.name,
        trial.mode.value,
        trial.wanted[0],
        found.verdict.value,
        f"{seconds:.2f}",
        compiling,
        times(found),
    )


def times(found: Evaluation) -> str:
    """Every time in microseconds, and whose clock it is from."""
    timed = [case.measurement for case in found.cases if case.measurement is not None]
    shown = ", ".join(f"{m.time_ns / 1e3:.2f} +- {m.half_width_ns / 1e3:.2f} us" for m in timed)
    return f"{shown} ({found.environment.timing.value})" if shown else ""


def main() -> int:
    """Judge everything; return the number of wrong verdicts, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of tasks; all when none is given")
    chosen = parser.parse_args()
    rows = []
    with serving() as server:
        print(server.ready[:1500], flush=True)
        for trial in trials(chosen.tasks):
            rows.append(judge(server, trial))
            print(rows[-1][1], flush=True)
    head = ("", "task", "submission", "mode", "wanted", "got", "s", "compile", "measured")
    print(COLUMNS.format(*head))
    for _, text in rows:
        print(text)
    good = sum(right for right, _ in rows)
    print(f"{good} of {len(rows)} as wanted")
    return min(len(rows) - good, 100)


if __name__ == "__main__":
    raise SystemExit(main())

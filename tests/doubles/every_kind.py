"""A small task of every grader, format and language, with a right and a wrong submission.

Device code is missing, because it needs a GPU.
"""

from dataclasses import dataclass

from typing_extensions import override

from runners.contract.task import BuildConfig, TaskDefinition, TaskFormat, Workload
from tests.doubles.evaluating import RIGHT, WRONG, make_identity
from tests.doubles.kernelbot import DOUBLES, make_plain_task

FAILS = "fake: verdict=wrong_answer\n"
"""What the fake runner reads, after the mark of a comment."""

MODEL = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + x

def get_inputs():
    return [torch.randn(64)]

def get_init_inputs():
    return []
"""
NEW_MODEL = """
import torch

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return 2 * x
"""

PROGRAM = """
#include <cstdio>
#include <cstdlib>

#include "submission.cu"

int main() {
    FILE *report = fdopen(atoi(getenv("POPCORN_FD")), "w");
    bool right = doubled(21) == 42;
    fprintf(report, "test-count: 1\\ntest.0.spec: size: 1\\n");
    fprintf(report, "test.0.status: %s\\n", right ? "pass" : "fail");
    fprintf(report, "check: %s\\n", right ? "pass" : "fail");
    fclose(report);
    return right ? 0 : 112;
}
"""
DOUBLED = "int doubled(int number) { return 2 * number; }\n"


@dataclass(frozen=True, slots=True)
class Kind:
    """A small task, and submissions to it."""

    task: TaskDefinition
    right: str
    wrong: str | None
    """None if the build of a submission takes seconds."""

    @override
    def __str__(self) -> str:
        return f"{self.task.grader}-{self.task.format}-{self.task.lang}"


def _kernelbench() -> TaskDefinition:
    changes = {
        "format": TaskFormat.KERNELBENCH,
        "files": {"reference.py": MODEL},
        "tests": (Workload(args={"precision": "fp32", "seed": 5}),),
        "benchmarks": (),
    }
    return make_identity(60).model_copy(update=changes)


def _program() -> TaskDefinition:
    return make_plain_task(
        name="program",
        lang="cu",
        files={"eval.cu": PROGRAM},
        submission_file="submission.cu",
        config=BuildConfig(sources=("eval.cu",)),
        tests=(Workload(args={"size": 1}),),
        benchmarks=(),
    )


KINDS = (
    Kind(make_identity(60), RIGHT, WRONG),
    Kind(_kernelbench(), NEW_MODEL, f"# {FAILS}{NEW_MODEL.replace('2 * x', '3 * x')}"),
    Kind(make_plain_task(), DOUBLES, f"# {FAILS}{DOUBLES.replace('2 *', '3 *')}"),
    Kind(_program(), DOUBLED, None),
)

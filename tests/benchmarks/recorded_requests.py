"""Judges 40 fixed requests on the CPU, to show that a change of the harness changes no verdict.

python -m tests.benchmarks.recorded_requests record FILE    before the change
python -m tests.benchmarks.recorded_requests compare FILE   after it; exit 1 when an answer differs

Times, the state of the machine and addresses are not compared. Without a command
it prints the verdict of each request.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bot.domain.tasks.task_file import parse_task
from bot.store.task_folders import read_folder
from bot.web.compat.evaluation_server.requests import Request
from bot.web.compat.evaluation_server.translate import order_of as translated
from runners.contract.evaluation import Evaluation, EvaluationRequest, RoundPolicy
from runners.contract.task import Mode, TaskDefinition, TaskFormat, Workload
from tests.doubles import ioing
from tests.doubles.judging import ROOT, SORT, make_judging, make_sort_task, serving
from tests.doubles.kernelbot import KERNEL, make_affine_task
from tests.doubles.kernels import LINEAR, RIGHT
from tests.exploits import corpus
from tests.exploits.tasks import order_of

ROUNDS = RoundPolicy(looks=(2,), samples=3)
EXAMPLES = {
    "grayscale": ("correct/torch_weighted_sum", "wrong/blue_first"),
    "histogram": ("correct/torch_bincount", "wrong/wrong_dtype"),
    "identity": ("correct/torch_copy", "wrong/syntax_error"),
    "matmul": ("correct/torch_matmul", "wrong/exits"),
    "prefixsum": ("correct/torch_cumsum", "wrong/missing_argument"),
    "softmax": ("correct/torch_softmax", "wrong/raises"),
    "sort": ("correct/torch_in_place", "wrong/import_fails"),
    "vectoradd": ("correct/torch_add", "wrong/wrong_dtype"),
}
HOSTILE = ("changed_input", "exit_at_import", "stride_zero", "wrong_dtype", "zeros")
HONEST = ("in_place", "new_tensor", "two_outputs")
ADDS_ONE = "def go(x, y, out):\n    out.copy_(x + y + 1)\n"
RAISES = "def add(x, y):\n    raise ValueError('no answer')\n"
CONSTANT = (
    "import torch\nclass ModelNew(torch.nn.Module):\n"
    "    def __init__(self, *_):\n        super().__init__()\n"
    "    def forward(self, x):\n        return torch.zeros(x.shape[0], 5)\n"
)
_STATE = ("wall_s", "used_s", "environment")
_ADDRESS, _DECIMAL = re.compile(r"0x[0-9a-f]+"), re.compile(r"\d+\.\d+")


def requests() -> Iterator[EvaluationRequest]:
    """The requests, each with a unique name as its id and a fixed nonce."""
    for request_id, request in (
        *_examples(), *_modes(), *_problems(), *_contracts(), *_of_the_corpus()
    ):  # fmt: skip
        yield request.model_copy(
            update={"request_id": request_id, "nonce": "17" * 32, "rounds": ROUNDS}
        )


def _examples() -> Iterator[tuple[str, EvaluationRequest]]:
    for name, solutions in EXAMPLES.items():
        folder = ROOT / "tasks" / "examples" / name
        task = parse_task(read_folder(folder))
        for solution in solutions:
            source = (folder / "solutions" / f"{solution}.py").read_text(encoding="utf-8")
            yield f"{name}/{solution}", make_judging(source, Mode.RANKED, task=task)


def _modes() -> Iterator[tuple[str, EvaluationRequest]]:
    """The modes and what a runner refuses; the task's own evaluation last."""
    broken = make_sort_task("def generate_input(size: int, seed: int): return 1\n")
    raising = make_sort_task(SORT.replace("generator = ", "raise KeyError(size)\n    generator = "))
    for mode in (Mode.TEST, Mode.BENCHMARK, Mode.PROFILE):
        yield f"modes/{mode}", make_judging(mode=mode)
    yield "modes/no-check", make_judging(task=broken)
    yield "modes/no-input", make_judging(mode=Mode.RANKED, task=raising)
    yield "modes/no-launch", make_judging(task=_of_language("cu"))
    for mode in (Mode.TEST, Mode.RANKED):
        yield f"popcorn/{mode}", make_judging(KERNEL, mode, task=make_affine_task())


def _of_language(name: str) -> TaskDefinition:
    values = make_sort_task().model_dump(mode="json") | {"lang": name}
    return TaskDefinition.model_validate_json(json.dumps(values))


def _problems() -> Iterator[tuple[str, EvaluationRequest]]:
    case = Workload(args={"precision": "fp32"})
    task = make_sort_task(LINEAR, format=TaskFormat.KERNELBENCH, tests=(case,), benchmarks=(case,))
    yield "problem/right", make_judging(RIGHT, Mode.RANKED, task=task)
    yield "problem/constant", make_judging(CONSTANT, Mode.RANKED, task=task)


def _contracts() -> Iterator[tuple[str, EvaluationRequest]]:
    wrong = ioing.kernel(ADDS_ONE, "multi_kernel", ioing.TRIPLE, entry_point="go")
    raising = ioing.kernel(RAISES, "torch", ioing.PAIR, function_name="add")
    wanted: dict[str, Request] = {
        "alone": ioing.evaluate(),
        "right": ioing.compare(),
        "wrong": ioing.compare(wrong),
        "reference-raises": ioing.compare(ref=raising),
        "drawn": ioing.evaluate(ioing.kernel(ioing.MODEL)),
    }
    for name, asked in wanted.items():
        yield f"contract/{name}", translated(asked).request(name)
    profiled = translated(ioing.compare()).request("profile")
    yield "contract/profile", profiled.model_copy(update={"mode": Mode.PROFILE})


def _of_the_corpus() -> Iterator[tuple[str, EvaluationRequest]]:
    for folder, names in (("hostile", HOSTILE), ("honest", HONEST)):
        for name in names:
            kernel = corpus.read(corpus.FOLDER / folder / f"{name}.py")
            yield f"{folder}/{name}", order_of(kernel, ROUNDS)


def comparable(evaluation: Evaluation) -> dict[str, Any]:
    """What must be the same each time that a request is judged."""
    found: dict[str, Any] = evaluation.model_dump(mode="json")
    for name in _STATE:
        del found[name]
    found["durations_s"] = sorted(evaluation.durations_s)
    found["transport"] = evaluation.environment.transport
    for case in found["cases"]:  # how many rounds were timed depends on the machine's load
        case["measurement"] = sorted(case["measurement"] or ())
    found["files"] = [each.name for each in evaluation.files]
    if evaluation.mode is Mode.PROFILE:  # a table of times, sorted by them
        found["log"] = bool(evaluation.log)
    else:
        found["log"] = _DECIMAL.sub("#", evaluation.log)
    masked: dict[str, Any] = _masked(found)
    return masked


def _masked(value: Any) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case float():
            return "a number"
        case str():
            return _ADDRESS.sub("0x", value)
        case list():
            return [_masked(each) for each in value]
        case dict():
            return {key: _masked(each) for key, each in value.items()}
        case _:
            return value


def judged() -> dict[str, dict[str, Any]]:
    """Every request by its id, with what is comparable of its evaluation."""
    found = {}
    with serving() as harness:
        for request in requests():
            found[request.request_id] = comparable(harness.evaluate(request))
            print(f"{request.request_id}: {found[request.request_id]['verdict']}", file=sys.stderr)
    return found


def differences(
    before: dict[str, Any], after: dict[str, Any]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Request, field, and the two values, for every difference."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name, {}), after.get(name, {})
        for field in sorted(old.keys() | new.keys()):
            if old.get(field) != new.get(field):
                yield name, field, old.get(field), new.get(field)


def main() -> int:
    """The exit status: 1 when a comparison found a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("command", nargs="?", choices=("record", "compare"))
    parser.add_argument("file", nargs="?", type=Path)
    asked = parser.parse_args()
    if asked.command and asked.file is None:
        parser.error(f"{asked.command} needs a file")
    found = judged()
    if asked.command == "record":
        asked.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if asked.command != "compare":
        print("| request | verdict | stage | message |\n|---|---|---|---|")
        for name, each in found.items():
            print(f"| {name} | {each['verdict']} | {each['stage']} | {each['message'][:80]!r} |")
        return 0
    other = list(differences(json.loads(asked.file.read_text(encoding="utf-8")), found))
    print("| request | field | recorded | now |\n|---|---|---|---|")
    for row in other:
        print(f"| {' | '.join(map(str, row))} |")
    print(f"\n{len(found)} requests, {len(other)} differences")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())

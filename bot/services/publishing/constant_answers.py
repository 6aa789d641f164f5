"""Submissions that compute nothing: no task may accept a constant answer, few may their input."""

from collections.abc import Iterator

from runners.contract.task import Grader, Mode, TaskDefinition, TaskFormat, Workload
from runners.contract.verdict import Verdict

NO_ELEMENTS = "no elements"
FILLED = {
    "zeros": "0",
    "ones": "1",
    "a constant": "7",
    "NaN": 'float("nan")',
    NO_ELEMENTS: "None",
}
"""The values that fill an answer, in Python syntax; integers use -1 instead of NaN.

With None it has no elements, in a shape that expands to that of any other answer without elements:
a check that expands shapes then compares nothing.
"""
REPLAY = "its first input"
"""The answer of a model that computes once and then returns a copy of its first result."""
INPUT = "the input itself"
"""For each tensor of a right answer, one of the input with its shape and type, an equal one if any.

A judge that accepts views of an input accepts the input too, which a kernel gives without work.
"""

_WRAPPER = """

def _overwrite(value):
    import torch

    if isinstance(value, torch.Tensor):
        number = {number}
        if number is None:
            return value.new_empty((0, *[1] * value.dim())) if value.numel() else value
        if number != number and not (value.is_floating_point() or value.is_complex()):
            return torch.full_like(value, True if value.dtype == torch.bool else -1)
        return torch.full_like(value, number)
    if isinstance(value, (list, tuple)):
        return type(value)(_overwrite(item) for item in value)
    if isinstance(value, dict):
        return {{key: _overwrite(item) for key, item in value.items()}}
    return value

"""

_KERNELS = {
    TaskFormat.KERNEL: """
_computed = custom_kernel


def custom_kernel(data):
    return _overwrite(_computed(data))
""",
    TaskFormat.KERNELBENCH: """
_computed = ModelNew.forward


def _forward(self, *inputs):
    return _overwrite(_computed(self, *inputs))


ModelNew.forward = _forward
""",
}


_RETURN_INPUT = """

def _overwrite(value, given):
    import torch

    if isinstance(value, torch.Tensor):
        kind = value.shape, value.dtype, value.device
        fitting = [each for each in given if (each.shape, each.dtype, each.device) == kind]
        equal = [each for each in fitting if torch.equal(each, value)]
        return (equal + fitting + [None])[0]
    if isinstance(value, (list, tuple)):
        return type(value)(_overwrite(item, given) for item in value)
    if isinstance(value, dict):
        return {key: _overwrite(item, given) for key, item in value.items()}
    return None


def _tensors(value):
    import torch

    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [each for item in value for each in _tensors(item)]
    return [value] if isinstance(value, torch.Tensor) else []

"""

_INPUTS = {
    TaskFormat.KERNEL: """
_computed = custom_kernel


def custom_kernel(data):
    import copy

    return _overwrite(_computed(copy.deepcopy(data)), _tensors(data))
""",
    TaskFormat.KERNELBENCH: """
_computed = ModelNew.forward


def _forward(self, *inputs):
    import copy

    return _overwrite(_computed(self, *copy.deepcopy(inputs)), _tensors(inputs))


ModelNew.forward = _forward
""",
}


_REPLAY = """

_computed, _answers = ModelNew.forward, []


def _forward(self, *inputs):
    import copy

    if not _answers:
        _answers.append(_computed(self, *inputs))
    return copy.deepcopy(_answers[0])


ModelNew.forward = _forward
"""


def answers_for(task_format: TaskFormat) -> tuple[str, ...]:
    """Return the answers that a check of a task of the format tries.

    `REPLAY` is only for KernelBench problems. Their inputs differ only in values, so a result such
    as the mean of millions of them may hardly change. Other tasks may have a single test, which a
    replayed result passes.
    """
    replay = (REPLAY,) if task_format is TaskFormat.KERNELBENCH else ()
    return (*FILLED, INPUT, *replay)


def refusals_of(answer: str) -> frozenset[Verdict]:
    """Return the verdicts that reject an answer.

    A task's own evaluation may also raise an exception at a shape that it does not expect. Where no
    tensor of the input has the answer's shape and type, `INPUT` is refused in other ways.
    """
    if answer == INPUT:
        return frozenset(Verdict) - {Verdict.PASSED}
    own = frozenset((Verdict.CRASHED,)) if answer == NO_ELEMENTS else frozenset[Verdict]()
    return own | {Verdict.WRONG_ANSWER}


def source_answering(source: str, answer: str, task_format: TaskFormat) -> str:
    """Return a submission that runs `source`'s kernel and then replaces its result."""
    if answer == REPLAY:
        return source + _REPLAY
    if answer == INPUT:
        return source + _RETURN_INPUT + _INPUTS[task_format]
    return source + _WRAPPER.format(number=FILLED[answer]) + _KERNELS[task_format]


def tasks_to_try(task: TaskDefinition) -> Iterator[tuple[str, TaskDefinition]]:
    """Yield the task with its tests, then with each ranked benchmark as the only test, by name.

    A submission knows the shape of its input, so it can give the constant answer for a benchmark
    alone. A benchmark is left out if every test has its shape.
    """
    yield "every test", task
    shapes = [_shape(test) for test in task.tests]
    for benchmark in task.timed(Mode.RANKED):
        if any(shape != _shape(benchmark) for shape in shapes):
            seconds = max(task.test_timeout, task.ranked_timeout)
            changes = {"tests": (benchmark,), "test_timeout": seconds}
            yield f"the benchmark `{benchmark.spec}`", task.model_copy(update=changes)


def _shape(workload: Workload) -> dict[str, object]:
    return {name: value for name, value in workload.args.items() if name != "seed"}


_ADVICE = {
    TaskFormat.KERNEL: (
        "tighten the tolerance of check_implementation, or add a test whose correct answer is "
        "not constant"
    ),
    TaskFormat.KERNELBENCH: (
        "the Model's answer is nearly constant, so it cannot be used for a ranking"
    ),
}
_OWN_ADVICE = "make the task's own evaluation reject it"
_INPUT_ADVICE = (
    "a kernel that returns its input does no work; unless that is right, ask for an answer whose "
    "numbers have another type or order"
)


def advice_for(task: TaskDefinition, answer: str) -> str:
    """Return what to change in a task that accepts an answer."""
    if answer == INPUT:
        return _INPUT_ADVICE
    return _OWN_ADVICE if task.grader is Grader.POPCORN else _ADVICE[task.format]

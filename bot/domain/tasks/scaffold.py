"""The files of new tasks: a working example to start from, or tasks from KernelBench problems."""

import ast
import re
from collections.abc import Iterator, Mapping

from bot.domain.errors import UserError
from bot.domain.tasks.lint import defined_names, parse_python

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")

_TASK = """\
files:
  - {name: submission.py, source: "@SUBMISSION@"}
  - {name: task.py, source: task.py}
  - {name: reference.py, source: reference.py}
lang: py
description: |
  # NAME

  Double every element of a vector of `size` single-precision numbers.

  `data` is a tensor; return a new one.
templates:
  Python: template.py
tests:
  - {size: 1, seed: 1}
  - {size: 127, seed: 2}
  - {size: 1000, seed: 3}
benchmarks:
  - {size: 1000003, seed: 4}
test_timeout: 30
benchmark_timeout: 60
ranked_timeout: 60
ranking_by: last
bytes: 8*size
"""

_TYPES = '''\
"""The types of this task's input and output."""

import torch

input_t = torch.Tensor
"""A float32 vector of `size` elements."""
output_t = torch.Tensor
"""A new float32 vector of the same size."""
'''

_REFERENCE = '''\
"""Inputs, a correct answer and the check; only the judge sees this file."""

import torch
from task import input_t, output_t


def generate_input(size: int, seed: int) -> input_t:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(size, generator=random, device=device)


def ref_kernel(data: input_t) -> output_t:
    return 2 * data


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    # The judge has compared type, shape, dtype and device with ref_kernel's answer; an eval.py of
    # your own has not, and an answer without elements has no wrong one.
    expected = ref_kernel(data)
    if output.shape != expected.shape:
        return False, f"the shape is {tuple(output.shape)}, expected {tuple(expected.shape)}"
    wrong = ~((output - expected).abs() <= 1e-6 * data.abs())
    if not wrong.any():
        return True, ""
    first = int(wrong.nonzero()[0])
    got, want = output[first].item(), expected[first].item()
    count = f"{int(wrong.sum())} of {data.numel()} elements differ"
    return False, f"{count}; the first at [{first}]: got {got}, expected {want}"
'''

_TEMPLATE = """\
#!PODIUM leaderboard NAME
import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return data + data
"""

_WRONG = """\
#!PODIUM expect wrong_answer
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    return data * 1.9999
"""


def scaffold(name: str) -> dict[str, str]:
    """Return a new task's files by path in its folder; UserError for an invalid name."""
    if _NAME.fullmatch(name) is None:
        raise UserError(
            "bad-name",
            f"{name!r} is not a valid task name; use at most 64 lowercase letters, digits, '-' "
            "and '_', as in 'vector-add'",
        )
    template = _TEMPLATE.replace("NAME", name)
    return {
        "task.yml": _TASK.replace("NAME", name),
        "task.py": _TYPES,
        "reference.py": _REFERENCE,
        "template.py": template,
        "solutions/correct/torch_add.py": template,
        "solutions/wrong/almost_two.py": _WRONG,
    }


PRECISIONS = ("fp32", "fp16", "bf16")
TESTS = 5
"""The number of trials in KernelBench's own scripts."""

_LEVEL = re.compile(r"level(\d+)")
_FILE = re.compile(r"(\d+)_(\w.*)\.py")
_NEEDED = frozenset({"Model", "get_inputs", "get_init_inputs"})
_LIBRARIES = ("einops", "numpy", "torchvision", "transformers")
"""Libraries other than torch that a problem may import; a runner may not have them."""

_PROBLEM_TASK = """\
files:
  - {{name: submission.py, source: "@SUBMISSION@"}}
  - {{name: reference.py, source: reference.py}}
lang: py
format: kernelbench
description: |
  # {title}

  Level {level}, problem {number} of KernelBench, in {precision}. Define `ModelNew` with the same
  constructor and the same `forward` as the template's, and make it faster. It is created
  before timing starts, with the reference's seed, and gets the reference's weights.
templates:
  Python: template.py
tests:
{tests}
benchmarks:
  - {{precision: {precision}, seed: {benchmark}}}
test_timeout: 180
benchmark_timeout: 180
ranked_timeout: 180
ranking_by: last
"""

_ORIGIN = (
    "# From KernelBench (MIT licence, (c) 2023 Anne Ouyang, Simon Guo, Azalia Mirhoseini): {file}\n"
)

_OFF_BY_ONE = """

def _spoiled(value):
    if isinstance(value, torch.Tensor):
        return ~value if value.dtype == torch.bool else value + 1
    if isinstance(value, dict):
        return {key: _spoiled(each) for key, each in value.items()}
    return type(value)(_spoiled(each) for each in value)


class ModelNew(Right):
    def forward(self, *inputs):
        return _spoiled(super().forward(*inputs))
"""


def problem_tasks(sources: Mapping[str, str], precision: str) -> dict[str, str]:
    """Return the files of a set of tasks, from problems by path such as `level1/1_Name.py`.

    UserError names the first file that is not a problem.
    """
    tasks: dict[str, str] = {}
    for path, source in sources.items():
        level, number, words = _parts(path)
        _require_problem(source, path)
        name = _problem_name(level, number, words)
        if f"{name}/task.yml" in tasks:
            raise _refusal(path, f"level {level} has two problems with number {number}")
        files = _problem_files(source, path, name, precision)
        tasks |= {f"{name}/{file}": text for file, text in files.items()}
    return tasks


def is_problem(path: str) -> bool:
    """Return whether a path ends like that of a problem: `level1/1_Name.py`."""
    folder, _, file = path.rpartition("/")
    level = _LEVEL.fullmatch(folder.rpartition("/")[2])
    return level is not None and _FILE.fullmatch(file) is not None


def _parts(path: str) -> tuple[int, int, str]:
    folder, _, file = path.rpartition("/")
    level, named = _LEVEL.fullmatch(folder.rpartition("/")[2]), _FILE.fullmatch(file)
    if level is None or named is None:
        raise _refusal(path, "name problem files like level1/1_Name.py")
    return int(level[1]), int(named[1]), named[2]


def _problem_name(level: int, number: int, words: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")
    return f"kb{level}-{number:03d}-{slug}"[:64].rstrip("-")


def _require_problem(source: str, path: str) -> None:
    missing = sorted(_NEEDED - defined_names(parse_python(source, path)))
    if missing:
        raise _refusal(path, f"{' and '.join(missing)} must be defined")


def _refusal(path: str, why: str) -> UserError:
    return UserError("bad-problem", f"{path}: {why}")


def _problem_files(source: str, path: str, name: str, precision: str) -> dict[str, str]:
    level, number, words = _parts(path)
    tests = (f"  - {{precision: {precision}, seed: {seed}}}" for seed in range(1, TESTS + 1))
    task = _PROBLEM_TASK.format(
        title=re.sub(r"[^A-Za-z0-9]+", " ", words).strip(),
        level=level,
        number=number,
        precision=precision,
        tests="\n".join(tests),
        benchmark=TESTS + 1,
    )
    libraries = ", ".join(_libraries(source, path))
    task += f"libraries: [{libraries}]\n" if libraries else ""
    origin = _ORIGIN.format(file=path)
    template = f"#!PODIUM leaderboard {name}\n{origin}{_renamed(source, 'ModelNew')}"
    right = _renamed(source, "Right")
    wrong = f"#!PODIUM expect wrong_answer\n{origin}import torch\n{right}{_OFF_BY_ONE}"
    return {
        "task.yml": task,
        "reference.py": origin + source,
        "template.py": template,
        "solutions/correct/as_the_reference.py": template,
        "solutions/wrong/off_by_one.py": wrong,
    }


def _renamed(source: str, name: str) -> str:
    """Return the whole problem with its model renamed; the model may need the other code."""
    return re.sub(r"\bModel\b", name, source)


def _libraries(source: str, path: str) -> Iterator[str]:
    imported: set[str] = set()
    for node in ast.walk(parse_python(source, path)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    return (name for name in _LIBRARIES if name in imported)

"""The files of a new task, which run unchanged and are meant to be edited."""

import re

from bot.domain.errors import UserError

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
"""Inputs, a right answer and the check; the judge alone sees this file."""

import torch
from task import input_t, output_t


def generate_input(size: int, seed: int) -> input_t:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(size, generator=random, device=device)


def ref_kernel(data: input_t) -> output_t:
    return 2 * data


def check_implementation(data: input_t, output: output_t) -> tuple[bool, str]:
    # The judge has compared type, shape, dtype and device with ref_kernel's answer.
    wrong = ~((output - ref_kernel(data)).abs() <= 1e-6 * data.abs())
    count = int(wrong.sum())
    return count == 0, f"{count} of {data.numel()} elements differ" if count else ""
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

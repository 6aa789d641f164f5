"""Kernels that the judge must refuse: each with the verdict, its reason, and exit code 1."""

import json

import pytest

from tests.e2e.command import Podium

KERNEL = "def custom_kernel(data):\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        ("raise ValueError('boom \\x1b[2J')\n", "build_failed", "ValueError: boom"),
        ("x = 1\n", "invalid_submission", "define `def custom_kernel(data): ...`"),
        ("custom_kernel = 3\n", "invalid_submission", "`custom_kernel` is not a function"),
        (
            "def custom_kernel(a, b, c): ...\n",
            "invalid_submission",
            "`custom_kernel(a, b, c)` cannot be called with one argument, the input data",
        ),
        (f"{KERNEL}    pass\n", "invalid_submission", "`custom_kernel` returned nothing"),
        (f"{KERNEL}    return data[0].repeat(2)\n", "wrong_answer", "shape [2], [1] is expected"),
        (f"{KERNEL}    return data[0].clone()\n", "wrong_answer", "float16, float32 is expected"),
        (f"{KERNEL}    return data[1].to('meta')\n", "wrong_answer", "device meta, cpu is exp"),
        (f"{KERNEL}    return [data[0]]\n", "wrong_answer", "a list, a tensor is expected"),
    ],
)
def test_a_kernel_that_cannot_pass(hall: Podium, source: str, verdict: str, words: str) -> None:
    kernel = hall.file("bad.py", source)
    answer = hall(
        "submit", kernel, "--leaderboard", "identity", "--mode", "test", "--json", "--as", "ada"
    )
    assert answer.returncode == 1, answer.stderr
    [job] = json.loads(answer.stdout)["jobs"]
    assert job["verdict"] == verdict
    assert words in job["message"]
    assert "\x1b" not in answer.stdout + answer.stderr


@pytest.mark.slow
def test_a_syntax_error_is_refused_at_once_with_its_line(hall: Podium) -> None:
    kernel = hall.file("bad.py", f"import torch\n\n{KERNEL}    return (\n")
    answer = hall("submit", kernel, "--leaderboard", "identity", "--mode", "test")
    assert answer.returncode == 2
    assert "not valid Python: '(' was never closed (line 4)" in answer.stderr

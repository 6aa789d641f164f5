"""Deterministic algorithms are as torch has them, and cost no import."""

import subprocess
import sys

import pytest

PRELUDE = """
import os, sys
import torch
from runners.harness.supervision.template import skip_compiler
skip_compiler()
def states():
    return (torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled())
found = []
"""


def _run(code: str) -> None:
    """In a process of its own: in this one the compiler may be there already, or must not be."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_without_the_compiler_torch_alone_is_told() -> None:
    _run("""
for mode, kept in ((True, {}), (True, {"warn_only": True}), (False, {})):
    torch.use_deterministic_algorithms(mode, **kept)
    found.append(states())
assert found == [(True, False), (True, True), (False, False)], found
assert "torch._inductor.config" not in sys.modules
assert "TORCHINDUCTOR_DETERMINISTIC" not in os.environ
""")


@pytest.mark.slow
def test_a_compiler_that_comes_later_finds_what_was_asked_for() -> None:
    _run("""
torch.use_deterministic_algorithms(True)
import torch._inductor.config as config
found.append(config.deterministic)
torch.use_deterministic_algorithms(False)
found += [config.deterministic, states()[0]]
torch.use_deterministic_algorithms(True, warn_only=True)
found += [config.deterministic, states()[1]]
assert found == [True, False, False, True, True], found
""")

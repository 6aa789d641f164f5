"""Reads the version of an NVIDIA program."""

import functools
import re
import subprocess
from pathlib import Path

ANSWER_S = 10.0


@functools.cache
def version_of(program: Path, told: re.Pattern[str]) -> str | None:
    """The first group of `told` in the output of `program --version`; None if it does not run."""
    try:
        asked = subprocess.run(
            [program, "--version"], capture_output=True, timeout=ANSWER_S, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = told.search(asked.stdout)
    return found[1] if found else None

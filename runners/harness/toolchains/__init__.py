"""The compilers and tools of this machine: how they are found, called and parsed."""

import functools
import re
import subprocess
from pathlib import Path

TOOLKIT = Path("/usr/local/cuda")
"""The default folder of a CUDA toolkit."""
_TIMEOUT_S = 10.0


@functools.cache
def version_of(program: Path, pattern: re.Pattern[str]) -> str | None:
    """The first group of `pattern` in `program --version`'s output; None if it does not run."""
    try:
        process = subprocess.run(
            [program, "--version"], capture_output=True, timeout=_TIMEOUT_S, check=True, text=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = pattern.search(process.stdout)
    return match[1] if match else None

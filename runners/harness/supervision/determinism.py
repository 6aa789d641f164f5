"""Deterministic algorithms without torch's compiler, which is imported for one flag of its own.

Public tasks ask for them round each reference, so every process that compares anything would
import the compiler: seconds, of which nothing is used. To import it once for all of them would take
from submissions the settings that it reads at its import.
"""

import functools
import os
import sys

import torch

_COMPILER = "torch._inductor.config"
_FLAG = "TORCHINDUCTOR_DETERMINISTIC"
"""What the compiler reads at its import, in place of being told."""


def spare_compiler() -> None:
    """Have `torch.use_deterministic_algorithms` import nothing, here and in whatever is forked.

    A compiler that is there already is told as ever; one that comes later finds the flag.
    """
    whole = torch.use_deterministic_algorithms

    @functools.wraps(whole)
    def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 - as torch has it
        if _COMPILER in sys.modules:
            whole(mode, warn_only=warn_only)
            return
        strictness = "warn" if warn_only else "error"
        torch.set_deterministic_debug_mode(strictness if mode else "default")
        os.environ.pop(_FLAG, None)
        if mode:
            os.environ[_FLAG] = "1"

    torch.use_deterministic_algorithms = use_deterministic_algorithms

"""`torch.use_deterministic_algorithms` without importing torch's compiler.

Torch's own function imports torch's compiler, which takes seconds, only to set one flag there.
Public tasks call the function around each reference, so every process that compares outputs would
pay for that. An import in the template is no solution, because the compiler would then ignore
settings that submissions make before they import it.
"""

import functools
import os
import sys

import torch

_COMPILER = "torch._inductor.config"
_FLAG = "TORCHINDUCTOR_DETERMINISTIC"
"""The environment variable from which the compiler reads the flag at its import."""


def spare_compiler() -> None:
    """Make `torch.use_deterministic_algorithms` import nothing, here and in forks of this process.

    If the compiler is already imported, its flag is set as usual. If it is imported later, it reads
    the flag from the environment.
    """
    original = torch.use_deterministic_algorithms

    @functools.wraps(original)
    def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:  # noqa: FBT001 - as torch has it
        if _COMPILER in sys.modules:
            original(mode, warn_only=warn_only)
            return
        strictness = "warn" if warn_only else "error"
        torch.set_deterministic_debug_mode(strictness if mode else "default")
        os.environ.pop(_FLAG, None)
        if mode:
            os.environ[_FLAG] = "1"

    torch.use_deterministic_algorithms = use_deterministic_algorithms

"""The evaluation scripts of the replacements for KernelBot's public tasks, written for this suite.

Each begins with constants, in which the scripts of its kind differ: the clock, the cleared cache,
what a case's line may contain, where it runs. One of the texts in `public_scripts` follows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

_SCRIPTS = Path(__file__).parent / "public_scripts"
_NUMBERS = r"[a-zA-Z]+|[+-]?\d+"
_WORDS = r"[a-zA-Z_]\w*|[+-]?\d+"
_LISTS = rf"{_NUMBERS}|\[[\d, ]+\]|\([\d, ]+\)"
_OP = "from cutlass.cute.nvgpu.common import OpError"
_MLIR = "from cutlass._mlir.ir import MLIRError"
_DEFAULTS: dict[str, object] = {
    "START": "spawn", "DEVICE": "cuda", "BACKEND": "nccl", "KEY": "[a-zA-Z_]+", "VALUE": _NUMBERS,
    "CLOCK": "events", "FLUSHED": 1 << 20, "RUNS": 4, "ERROR": 0.001, "LONGEST_S": 2,
    "CLONES": True, "WORKER": True, "ROW": 3, "ALWAYS_RECHECKS": False, "FIRST_ONLY": False,
    "RANKED_FAILS": False, "WARM": 1, "PAUSE_S": 0.01,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A script; `libraries` are its imports that a machine may lack."""

    script: str
    constants: Mapping[str, object] = field(default_factory=dict)
    libraries: tuple[str, ...] = ()

    def text(self, *, libraries: bool) -> str:
        """The whole script, which catches the exceptions that it imports."""
        imports = self.libraries if libraries else ()
        caught = "".join(f"{line.rpartition(' ')[2]}, " for line in imports)
        constants = {**_DEFAULTS, **self.constants}
        lines = [f"{name} = {value!r}" for name, value in constants.items()]
        parts = [(_SCRIPTS / f"{name}.txt").read_text() for name in ("common", self.script)]
        return "\n".join([*imports, *lines, f"FAILURES = ({caught})", "", *parts])

    def but(self, **constants: object) -> "Evaluation":
        """The same script with other constants."""
        return replace(self, constants={**self.constants, **constants})


_ONE_CALL = Evaluation("one_call")
_LAST = Evaluation("last_case", {"CLOCK": "wall", "FLUSHED": 0, "ERROR": 0.01})
_ROWS = Evaluation("rows", libraries=(_OP,))
_LINALG = Evaluation("rows", {"ALWAYS_RECHECKS": True, "FIRST_ONLY": True, "RANKED_FAILS": True})
EVALUATIONS = {
    "pmpp": _LAST,
    "amd": _ONE_CALL.but(CLOCK="wall", FLUSHED=0),
    "amd/mla-decode": _LAST.but(RUNS=5),
    "pmpp_v2": _ONE_CALL,
    "bioml/trimul": _ONE_CALL.but(FLUSHED=0),
    "amd_202602": _ONE_CALL.but(VALUE=_WORDS),
    "amd_202602/moe-mxfp4": _ONE_CALL.but(VALUE=_WORDS, CLONES=False),
    "amd_distributed": Evaluation("ranks", {"RUNS": 3}),
    "nvidia": replace(_ONE_CALL, libraries=(_OP,)),
    "nvidia/better_bench": _ROWS,
    "nvidia/grouped": replace(_ROWS.but(ROW=2, VALUE=_LISTS), libraries=(_OP, _MLIR)),
    "helion": Evaluation("graph", {"VALUE": _WORDS}),
    "linalg/qr": _LINALG,
    "linalg/eigh": _LINALG.but(VALUE=_WORDS),
    "linalg/cholesky": _LINALG.but(VALUE=_WORDS, WORKER=False),
    "princeton": Evaluation("two_functions", {"FLUSHED": 0, "RUNS": 5}),
}
"""The scripts that a task.yml of the public set names."""

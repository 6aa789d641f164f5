"""The ten sets of KernelBot's public tasks: folders, boards, GPU types, limits, templates.

Only these facts are as in the public set; the replacements' formulas and scripts are our own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tests.doubles import public_low_precision as low
from tests.doubles import public_problems as basic
from tests.doubles.public_problems import Problem


@dataclass(frozen=True, slots=True)
class PublicTask:
    """One task: its folder in `problems`, its line in the competition, and the keys of task.yml."""

    folder: str
    board: str
    gpus: tuple[str, ...]
    problem: Problem
    evaluation: str
    program: str = "../eval.py"
    utils: str = "../utils.py"
    templates: Mapping[str, str] = field(default_factory=lambda: {"Python": "submission.py"})
    timeouts: tuple[int, int, int] | None = (180, 180, 180)
    ranking: str | None = "geom"
    deadline: str | None = None
    own_gpus: tuple[str, ...] = ()
    multi_gpu: bool = False
    solutions: bool = False
    deterministic: bool = False
    text_check: bool = False

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.folder.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class PublicSet:
    """A competition's YAML in `problems`, and its tasks."""

    file: str
    deadline: str
    tasks: tuple[PublicTask, ...]


_STUB = {"Python": "../template.py"}


def _pmpp(folder: str, suffix: str, problems: Mapping[str, Problem]) -> tuple[PublicTask, ...]:
    second = folder == "pmpp_v2"
    return tuple(
        PublicTask(
            f"{folder}/{name}_py",
            f"{name}{suffix}",
            ("B200", "H100", "A100", "L4") if second else ("H100", "A100", "T4", "L4"),
            problem,
            folder,
            templates=_STUB,
            timeouts=(180, 180, 420) if second else None,
            ranking="last" if second else None,
            deadline="2100-12-31" if second else "2025-09-30",
            solutions=name == "vectoradd",
            deterministic=second,
            text_check=not second,
        )
        for name, problem in problems.items()
    )


def _amd() -> Iterator[PublicTask]:
    own = {
        "fp8-mm": {"Python": "template.py", "HIP": "template-hip.py"},
        "identity": {"Python": "template.py"},
    }
    times = {"moe": (540, 540, 840), "mla-decode": (900, 900, 1200)}
    for name, problem in basic.AMD.items():
        alone = name == "mla-decode"
        yield PublicTask(
            f"amd/{name}",
            f"amd-{name}",
            ("MI300",),
            problem,
            "amd/mla-decode" if alone else "amd",
            program="eval.py" if alone else "../eval.py",
            templates=own.get(name, {"Python": "submission.py"}),
            timeouts=times.get(name, (180, 180, 180)),
            deadline="2025-06-02" if name != "identity" else None,
            text_check=alone,
        )


def _amd_distributed() -> Iterator[PublicTask]:
    for name, problem in basic.AMD_DISTRIBUTED.items():
        yield PublicTask(
            f"amd_distributed/{name}",
            f"amd-{name}",
            ("MI300x8",),
            problem,
            "amd_distributed",
            templates={} if name == "all2all" else {"Python": "submission.py"},
            timeouts=(640, 640, 640),
            deadline="2025-10-13 6:59",
            own_gpus=("MI300x8",),
            multi_gpu=True,
        )


def _amd_202602() -> Iterator[PublicTask]:
    for name, problem in low.AMD_202602.items():
        alone = name == "moe-mxfp4"
        yield PublicTask(
            f"amd_202602/{name}",
            f"amd-{name}",
            ("MI355X",),
            problem,
            "amd_202602/moe-mxfp4" if alone else "amd_202602",
            program="eval.py" if alone else "../eval.py",
            timeouts=(900, 900, 1200) if alone else (420, 420, 600),
            deadline="2026-04-07 6:59",
        )


def _nvidia() -> Iterator[PublicTask]:
    for name, problem in low.NVIDIA.items():
        group, vector = name == "nvfp4_group_gemm", name == "nvfp4_gemv"
        kind = "nvidia/grouped" if group else "nvidia" if vector else "nvidia/better_bench"
        program = {
            "nvidia": "../eval.py",
            "nvidia/better_bench": "../eval_better_bench.py",
            "nvidia/grouped": "../eval_better_bench_grouped_gemm.py",
        }
        more = {"CuteDSL": "template_cute.py"} if vector else {}
        yield PublicTask(
            f"nvidia/{name}",
            name,
            ("B200",) if name.startswith("modal") else ("B200", "NVIDIA") if group else ("NVIDIA",),
            problem,
            kind,
            program=program[kind],
            templates={"Python": "submission.py"} | more,
            timeouts=(180, 180, 300) if group else (180, 180, 180),
            deadline="2026-02-20" if group else "2025-12-29",
            own_gpus=("B200",) if name.startswith("modal") or group else (),
        )


def _helion() -> Iterator[PublicTask]:
    for name, problem in low.HELION.items():
        yield PublicTask(
            f"helion/{name}_py",
            name,
            ("B200_Nebius",),
            problem,
            "helion",
            templates=_STUB,
            timeouts=(180, 180, 420),
            deadline="2026-03-15",
            deterministic=name == "causal_conv1d",
        )


def _linalg() -> Iterator[PublicTask]:
    for name, problem in low.LINALG.items():
        yield PublicTask(
            f"linalg/{name}_py",
            name,
            ("B200",),
            problem,
            f"linalg/{name.removesuffix('_v2')}",
            program="eval.py",
            utils="../../pmpp_v2/utils.py",
            timeouts=(240, 480, 900) if name == "qr" else (480, 900, 1200),
            deadline="2026-08-31",
        )


_TRIMUL = PublicTask(
    "bioml/trimul", "trimul", ("B200", "H100", "A100", "MI300"), low.TRIMUL, "bioml/trimul",
    program="eval.py", utils="utils.py", timeouts=(1200, 1200, 1200), deadline="2025-11-30",
)  # fmt: skip
_ENTROPY = PublicTask(
    "princeton/cross_entropy_py", "princeton_cross_entropy", ("A100",), low.ENTROPY, "princeton",
    program="eval.py", templates={}, timeouts=(300, 900, 1200), deadline="2026-05-31 23:59",
)  # fmt: skip
SETS = {
    "pmpp": PublicSet("beta.yaml", "", _pmpp("pmpp", "", basic.PMPP)),
    "pmpp_v2": PublicSet("pmpp_v2.yaml", "2100-12-31", _pmpp("pmpp_v2", "_v2", basic.PMPP_V2)),
    "amd": PublicSet("amd.yaml", "2025-06-02", tuple(_amd())),
    "amd_distributed": PublicSet(
        "amd_distributed.yaml", "2025-10-13 6:59", tuple(_amd_distributed())
    ),
    "amd_202602": PublicSet("amd_202602.yaml", "2026-04-07 6:59", tuple(_amd_202602())),
    "bioml": PublicSet("bioml.yaml", "2025-11-30", (_TRIMUL,)),
    "nvidia": PublicSet("nvidia.yaml", "2026-02-20", tuple(_nvidia())),
    "helion": PublicSet("helion.yaml", "2026-03-15", tuple(_helion())),
    "linalg": PublicSet("linalg.yaml", "2026-08-31", tuple(_linalg())),
    "princeton": PublicSet("princeton2026.yaml", "2026-05-31 23:59", (_ENTROPY,)),
}
"""Folder of each set -> the set; two of the YAML files have other names than their folder."""

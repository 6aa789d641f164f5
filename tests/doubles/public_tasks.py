"""Replacements for KernelBot's public tasks: ten competitions with 42 tasks in the same layouts.

All of it was written for this suite. Only the facts that a reader of task folders has to handle are
as in the public set: where the files are, the keys of the YAML files, what an evaluation does with
a submission and reports about it, and the kinds of the values.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.doubles.public_evaluations import EVALUATIONS
from tests.doubles.public_sets import SETS, PublicSet, PublicTask

_UTILS = '''\
import torch


def seeded(seed, device):
    return torch.Generator(device=device).manual_seed(seed)


def of_rank(name, rank):
    return torch.device(name, rank if torch.cuda.is_available() else None)


class Deterministic:
    """The flags of torch for the same result in each run, while it is entered."""

    def __enter__(self):
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.deterministic = True
        torch.use_deterministic_algorithms(True)

    def __exit__(self, *error):
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.deterministic = False
        torch.use_deterministic_algorithms(False)


def difference(wanted, found, rtol, atol):
    if isinstance(wanted, (tuple, list)):
        pairs = zip(wanted, found)
        return next(filter(None, (difference(a, b, rtol, atol) for a, b in pairs)), "")
    if isinstance(wanted, dict):
        return difference(list(wanted.values()), [found[key] for key in wanted], rtol, atol)
    if wanted.shape != found.shape:
        return f"the shape is {tuple(found.shape)}, not {tuple(wanted.shape)}"
    if not torch.allclose(wanted.double(), found.double(), rtol=rtol, atol=atol):
        furthest = (wanted.double() - found.double()).abs().max()
        return f"mismatch found\\nthe largest difference is {furthest:g}"
    return ""


def matching(reference, rtol, atol):
    def check(data, output):
        words = difference(reference(data), output, rtol, atol)
        return not words, words

    return check
'''
_TEXT_CHECK = """
in_pairs = check_implementation


def check_implementation(data, output):
    return in_pairs(data, output)[1]
"""
_EACH = "import dataclasses\n\nimport torch\nimport torch.distributed as dist\nfrom task import *\n"


def _indented(text: str, depth: int = 4) -> str:
    return "\n".join(" " * depth + line if line else "" for line in text.split("\n"))


def _function(name: str, task: PublicTask) -> str:
    answer = _indented(task.problem.answer)
    if name == "ref_kernel" and task.deterministic:
        answer = f"    with Deterministic():\n{_indented(answer)}"
    return f"\n\ndef {name}(data: input_t) -> output_t:\n{answer}\n"


def _reference(task: PublicTask) -> str:
    if task.evaluation == "princeton":
        return f"import torch\n\n{task.problem.inputs}\n"
    return (
        f"{task.problem.library}\n{_EACH}from utils import *\n\n\n"
        f"def generate_input({task.problem.arguments}, seed: int) -> input_t:\n"
        f'    random = seeded(seed, "cuda")\n{_indented(task.problem.inputs)}\n'
        f"{_function('ref_kernel', task)}\n\n{task.problem.check.strip()}\n"
        f"{_TEXT_CHECK if task.text_check else ''}"
    )


def right(task: PublicTask) -> str:
    """A right submission; it is also the template if the task's folder has one."""
    head = f"#!POPCORN leaderboard {task.board}\n"
    if task.evaluation == "princeton":
        return f"{head}import torch\n\n{task.problem.answer}\n"
    return f"{head}{_EACH}{_function('custom_kernel', task)}"


def wrong(task: PublicTask) -> str:
    """The same with twice each value."""
    name = "cross_entropy_forward" if task.evaluation == "princeton" else "custom_kernel"
    return f"""{right(task)}

def doubled(found):
    if isinstance(found, (tuple, list)):
        return type(found)(map(doubled, found))
    return found if isinstance(found, dict) else found * 2


correct = {name}


def {name}(*data):
    return doubled(correct(*data))
"""


def late(task: PublicTask) -> str:
    """The same, but only after two right calls; the tests make no more."""
    return (
        wrong(task)
        .replace(
            "    return doubled(correct(*data))",
            "    calls.append(1)\n    found = correct(*data)\n"
            "    return found if len(calls) < 3 else doubled(found)",
        )
        .replace("\ncorrect = ", "\ncalls = []\ncorrect = ")
    )


_TYPES = """\
import dataclasses
from typing import TypeVar

import torch
{types}
input_t = TypeVar("input_t")
output_t = TypeVar("output_t")
"""
_TEMPLATE = """\
#!POPCORN leaderboard any
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    pass
"""
_HIP = """\
from torch.utils.cpp_extension import load_inline

module = load_inline("fp8", cpp_sources="void f(int);", cuda_sources="void f(int a) {}",
                     functions=["f"], with_cuda=True)
"""
_CUTE = "import cutlass\nimport cutlass.cute as cute\n"
_BESIDE = "# A file beside the task that nothing reads.\n"
_PACKED_GEMMS = ("nvfp4_gemm", "nvfp4_dual_gemm", "modal_nvfp4_dual_gemm")


def _yaml(task: PublicTask) -> str:
    sources = {"submission.py": "@SUBMISSION@", "task.py": "task.py", "utils.py": task.utils}
    sources |= {"reference.py": "reference.py", "eval.py": task.program}
    if task.evaluation == "princeton":
        sources = {name: sources[name] for name in ("submission.py", "reference.py", "eval.py")}
    lines = [f"# name: {task.board}", "", "files:"]
    lines += [f'  - {{"name": "{name}", "source": "{path}"}}' for name, path in sources.items()]
    lines += ["", 'lang: "py"', "", "description: |", f"  The formula {task.name}, on any device."]
    lines += ["", "config:", '  main: "eval.py"', ""]
    if task.templates:
        lines += ["templates:", *(f'  {name}: "{path}"' for name, path in task.templates.items())]
    found = task.problem.cases
    for kind, chosen in (("tests", found[:2]), ("benchmarks", found[2:])):
        lines += ["", f"{kind}:", *(f"  - {json.dumps(case)}" for case in chosen)]
    kinds = ("test", "benchmark", "ranked")
    lines += [f"{kind}_timeout: {s}" for kind, s in zip(kinds, task.timeouts or (), strict=False)]
    lines += [f'ranking_by: "{task.ranking}"'] if task.ranking else []
    lines += ["multi_gpu: true"] if task.multi_gpu else []
    lines += ["gpus:", *(f"  - {gpu}" for gpu in task.own_gpus)] if task.own_gpus else []
    return "\n".join(lines) + "\n"


def _competition(public: PublicSet) -> str:
    lines = [f"name: The stand-in of {public.file}", f'deadline: "{public.deadline}"']
    lines += ["description: Written for a test.", "problems:"]
    for task in public.tasks:
        lines += [f"  - directory: {task.folder}", f"    name: {task.board}"]
        lines += [f'    deadline: "{task.deadline}" # in UTC'] if task.deadline else []
        lines += ["    gpus:", *(f"      - {gpu}" for gpu in task.gpus)]
    return "\n".join(lines) + "\n"


def _files(task: PublicTask, *, libraries: bool) -> Iterator[tuple[str, str]]:
    """Each file of the task, by its path relative to the task's folder."""
    yield "task.yml", _yaml(task)
    yield task.program, EVALUATIONS[task.evaluation].text(libraries=libraries)
    yield "submission.py", right(task)
    reference = _reference(task)
    yield "reference.py", reference if libraries else reference.replace(task.problem.library, "")
    if task.evaluation != "princeton":
        yield "task.py", _TYPES.format(types=task.problem.types)
        yield task.utils, _UTILS
    for path in task.templates.values():
        yield path, _template(task, path)
    if task.solutions:
        yield "solutions/correct/submission.py", right(task)
        yield "solutions/wrong/submission.py", wrong(task)
    for path in _unread(task):
        yield path, _BESIDE


def _template(task: PublicTask, path: str) -> str:
    if path == "../template.py":
        return _TEMPLATE
    library = {"template-hip.py": _HIP, "template_cute.py": _CUTE}.get(path, "")
    head, rest = right(task).split("\n", 1)
    return f"{head}\n{library}{rest}"


def _unread(task: PublicTask) -> Iterator[str]:
    if task.name in _PACKED_GEMMS:
        yield "utils.py"
    if task.name == "nvfp4_group_gemm":
        yield "eval.py"
    if task.name == "all2all":
        yield "rocshmem_example.py"
    if task.folder.startswith("helion/"):
        yield "prompt.md"
    if task.folder.startswith("linalg/"):
        yield from ("README.md", "submissions/first.py")


def write_public_tasks(folder: Path, device: str = "cuda", *, libraries: bool = True) -> Path:
    """Write `problems` into the folder and return it.

    The sources choose the GPU by the word `device`, as the public ones do; on the CPU their workers
    are forked, and a collective has two ranks. Without `libraries` they import none but torch, so
    that the scripts can be run where the others are missing.
    """
    problems = folder / "problems"
    for public in SETS.values():
        _write(problems / public.file, _competition(public))
        for task in public.tasks:
            for path, text in _files(task, libraries=libraries):
                _write(problems / task.folder / path, _on(device, text))
    return problems


def _on(device: str, text: str) -> str:
    if device == "cuda":
        return text
    for quote in "\"'":
        text = text.replace(f"{quote}cuda{quote}", f"{quote}{device}{quote}")
        text = text.replace(f"{quote}nccl{quote}", f"{quote}gloo{quote}")
        text = text.replace(f"{quote}spawn{quote}", f"{quote}fork{quote}")
    return text.replace('"world_size": 8', '"world_size": 2')


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent.resolve() / path.name).write_text(text, encoding="utf-8")

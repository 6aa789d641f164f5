"""Problems become tasks that our own reader takes."""

import re

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.bundle import TaskBundle, solutions
from bot.domain.tasks.lint import lint
from bot.domain.tasks.scaffold import is_problem, problem_tasks
from bot.domain.tasks.task_file import parse_task
from runners.contract.task import Device, Grader, TaskFormat
from tests.doubles.kernels import LINEAR

PATH = "level1/7_Matmul_with_small_K_dimension_.py"
NAME = "kb1-007-matmul-with-small-k-dimension"


def bundle(source: str = LINEAR, precision: str = "fp32") -> TaskBundle:
    files = problem_tasks({PATH: source}, precision)
    return TaskBundle({path: text.encode() for path, text in files.items()}, NAME)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_problem_is_a_task_in_its_precision(precision: str) -> None:
    task = parse_task(bundle(precision=precision))
    assert (task.name, task.format, task.grader) == (
        NAME, TaskFormat.KERNELBENCH, Grader.NATIVE,
    )  # fmt: skip
    assert task.device is Device.ANY
    assert {case.args["precision"] for case in (*task.tests, *task.benchmarks)} == {precision}
    assert len({case.args["seed"] for case in (*task.tests, *task.benchmarks)}) == 6
    assert task.shared_files == ()
    assert task.description.startswith("# Matmul with small K dimension\n")


def test_no_remark_is_left_for_its_author() -> None:
    read = bundle()
    assert lint(parse_task(read), solutions(read)) == ()


def test_where_it_comes_from_is_said_in_every_source() -> None:
    files = problem_tasks({PATH: LINEAR}, "fp32")
    sources = [text for path, text in files.items() if path.endswith(".py")]
    assert len(sources) == 4
    assert all("KernelBench (MIT licence" in text and PATH in text for text in sources)


def test_the_template_is_the_problem_with_its_model_renamed() -> None:
    source = LINEAR.replace("super()", "super(Model, self)")
    template = problem_tasks({PATH: source}, "fp32")[f"{NAME}/template.py"]
    assert "class ModelNew(nn.Module)" in template
    assert "super(ModelNew, self)" in template
    assert not re.search(r"\bModel\b", template)


def test_what_a_problem_imports_must_be_installed() -> None:
    files = problem_tasks({PATH: f"from transformers import AutoModel\n{LINEAR}"}, "fp32")
    assert "libraries: [transformers]\n" in files[f"{NAME}/task.yml"]
    assert parse_task(bundle()).libraries == ()


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({PATH: "class Model: ...\n"}, "get_init_inputs and get_inputs must be defined"),
        ({PATH: "class Model(\n"}, "level1/7_Matmul_with_small_K_dimension_.py:1"),
        ({"level1/readme.py": LINEAR}, "name problem files like"),
        ({"level1/7_a.py": LINEAR, "level1/7_A.py": LINEAR}, "has two problems with number 7"),
    ],
)
def test_what_is_no_problem_is_refused_by_its_name(sources: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        problem_tasks(sources, "fp32")


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("KernelBench/level2/12_Gemm.py", True), ("level4/1_a-b.py", True),
        ("level1/utils.py", False), ("other/1_a.py", False), ("level1/1_a.txt", False),
    ],
)  # fmt: skip
def test_problems_are_known_by_their_path(path: str, *, is_one: bool) -> None:
    assert is_problem(path) is is_one

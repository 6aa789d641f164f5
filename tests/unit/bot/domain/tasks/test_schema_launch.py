"""What a task of device code must satisfy when it is published."""

import pytest

from bot.domain.errors import UserError
from bot.domain.tasks.schema import check_config, check_launch
from bot.domain.tasks.yaml_document import read_document
from runners.contract.task import BuildConfig, Launch, Workload

TEXT = """\
config:
  include_dirs: [include]
launch:
  kernel: add
  params: []
  grid: [1]
  block: [1]
"""
DOCUMENT = read_document(TEXT.encode(), "task.yml")
CASES = (Workload(args={"size": 7, "seed": 1}), Workload(args={"size": 5000, "seed": 2}))


def launch(**changes: object) -> Launch:
    values = {"kernel": "add", "params": ("in0", "out0"), "grid": (1,), "block": (1,)}
    return Launch.model_validate(values | changes)


def launch_refusal(**changes: object) -> str:
    with pytest.raises(UserError) as caught:
        check_launch(launch(**changes), CASES, DOCUMENT)
    return caught.value.message


def config_refusal(**values: object) -> str:
    with pytest.raises(UserError) as caught:
        check_config(BuildConfig.model_validate(values), DOCUMENT)
    return caught.value.message


def test_a_launch_that_has_numbers_for_every_case_is_taken() -> None:
    check_launch(launch(params=("in0", "out0", "size", "1/size")), CASES, DOCUMENT)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"grid": ("size/2",)}, "task.yml:6: launch.grid: 'size/2' is 3.5, not a whole number"),
        ({"block": ("size",)}, "task.yml:7: launch.block: 'size' is 5000"),
        ({"params": ("out0", "seed")}, "task.yml:5: launch.params: 'seed' is no argument"),
        ({"params": ("in0",)}, "task.yml:5: launch.params: list the output that the kernel writes"),
        ({"kernel": "a b"}, "task.yml:4: launch.kernel: 'a b' is not a kernel's name"),
    ],
)
def test_a_wrong_launch_is_refused_with_its_line(changes: dict[str, object], words: str) -> None:
    assert words in launch_refusal(**changes)


def test_what_nvrtc_knows_may_be_configured() -> None:
    config = BuildConfig(
        include_dirs=("/cutlass/include",),
        defines={"N": 4, "FAST": None},
        compile_flags=("--use_fast_math", "-std=c++17", "--maxrregcount=64"),
    )
    check_config(config, DOCUMENT)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sources": ("eval.cu",)}, "remove 'sources'"),
        ({"include_dirs": ("include",)}, "task.yml:2: 'include' is not a folder on the runner"),
        ({"defines": {"A": "x" * 20_000}}, "'config' is larger than 16,384 bytes"),
        ({"defines": {"a b": 1}}, "'a b' is not a macro name"),
        ({"compile_flags": ("-O3",)}, "'-O3' is not an accepted NVRTC option"),
        ({"compile_flags": ("-arch=sm_90",)}, "not an accepted NVRTC option"),
        ({"compile_flags": ("-I/secret",)}, "not an accepted NVRTC option"),
        ({"compile_flags": ("--use_fast_math -O3",)}, "not an accepted NVRTC option"),
    ],
)
def test_what_nvrtc_does_not_know_is_refused(values: dict[str, object], words: str) -> None:
    assert words in config_refusal(**values)

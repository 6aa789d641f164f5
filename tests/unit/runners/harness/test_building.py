"""What a language is told to build."""

from runners.contract.launch import Signature
from runners.contract.task import BuildConfig, Language, TaskFormat
from runners.harness.building import BuildFailedError, recipe_of
from tests.doubles.judging import make_sort_task


def test_a_recipe_says_what_a_language_needs_of_a_task() -> None:
    config = BuildConfig(defines={"N": 1})
    signature = Signature(kernel="k", parameters=("out0",), sizes=(8,))
    task = make_sort_task(lang=Language.CUDA, submission_file="k.cu", config=config)

    found = recipe_of(task, signature)

    assert (found.language, found.submission_file, found.format) == (
        "cuda", "k.cu", TaskFormat.KERNEL,
    )  # fmt: skip
    assert (found.config, found.signature) == (config, signature)
    assert recipe_of(make_sort_task()).signature is None


def test_a_failed_build_has_a_headline_and_a_log() -> None:
    error = BuildFailedError("line 3 is wrong", "line 3 is wrong\nline 4 as well")
    assert (str(error), error.log.count("\n")) == ("line 3 is wrong", 1)

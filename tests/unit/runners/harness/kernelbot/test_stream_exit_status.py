"""Exit statuses of evaluations, and whose fault each one is."""

import signal

import pytest

from runners.contract.verdict import Stage, Verdict
from runners.harness.kernelbot.stream import RAN, error_of_evaluation, own_evaluation
from tests.doubles.kernelbot import make_plain_task
from tests.doubles.program import make_program_task

SCRIPT, PROGRAM = make_plain_task(), make_program_task()


def test_an_evaluation_is_known_by_a_file_of_the_task() -> None:
    assert own_evaluation(SCRIPT) == "eval.py"
    assert own_evaluation(PROGRAM) == "eval.cu"
    included = PROGRAM.config.model_copy(update={"sources": ("main.cu",)})
    assert own_evaluation(PROGRAM.model_copy(update={"config": included})) == "main.cu"


@pytest.mark.parametrize(
    ("status", "log", "verdict", "words"),
    [
        (113, "", Verdict.CRASHED, "the task's eval.cu exits so if it could not read its cases"),
        (110, "an error\n\n", Verdict.CRASHED, "status 110: an error"),
        (7, "", Verdict.CRASHED, "status 7: it printed nothing"),
        (-signal.SIGSEGV, "what(): boom", Verdict.CRASHED, "killed by SIGSEGV: what(): boom"),
        (-signal.SIGKILL, "any words", Verdict.MEMORY_EXCEEDED, "for memory"),
        (1, "submission.cu\nImportError: x", Verdict.CRASHED, "status 1: ImportError: x"),
    ],
)
def test_a_programs_end_is_told_with_its_last_words(
    status: int, log: str, verdict: Verdict, words: str
) -> None:
    assert status not in RAN
    ruling = error_of_evaluation(status, log, PROGRAM)
    assert ruling.verdict is verdict
    assert words in ruling.message


@pytest.mark.parametrize(
    ("status", "log", "words"),
    [
        (2, "", "the task's eval.py did not accept its arguments"),
        (
            2,
            "first\nUnsupported mode",
            "its arguments; the last line printed was: Unsupported mode",
        ),
        (111, "", "could not open its result pipe"),
        (113, "", "could not read its cases"),
    ],
)
def test_an_evaluations_own_errors_are_the_tasks_fault_only_without_the_submission(
    status: int, log: str, words: str
) -> None:
    ruling = error_of_evaluation(status, log, SCRIPT, own_fault=True)
    assert ruling.verdict is Verdict.TASK_ERROR
    assert words in ruling.message
    assert error_of_evaluation(status, log, SCRIPT).verdict is Verdict.CRASHED


def test_a_script_that_could_not_import_the_submission_was_not_built() -> None:
    log = "in submission.py\nImportError: x"
    assert error_of_evaluation(1, log, SCRIPT).verdict is Verdict.BUILD_FAILED
    assert error_of_evaluation(1, "ImportError: x", SCRIPT).verdict is Verdict.CRASHED
    assert error_of_evaluation(-signal.SIGSEGV, log, SCRIPT).message.endswith("killed by SIGSEGV")


def test_inline_code_where_no_compiler_is_was_not_built() -> None:
    last = "OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install"
    ruling = error_of_evaluation(1, f"in submission.py\n{last}", SCRIPT)
    assert (ruling.verdict, ruling.message) == (Verdict.BUILD_FAILED, last)
    assert error_of_evaluation(1, last, SCRIPT).verdict is Verdict.CRASHED


COMPILED = """\
in submission.py
RuntimeError: Error building extension 'k': [1/2] nvcc -c main.cu
main.cu(3): error: expected a ";"
ninja: build stopped: subcommand failed.
"""


def test_inline_code_that_does_not_compile_was_not_built_and_its_first_error_is_told() -> None:
    ruling = error_of_evaluation(1, COMPILED, SCRIPT)
    assert (ruling.verdict, ruling.stage) == (Verdict.BUILD_FAILED, Stage.BUILD)
    assert ruling.message == 'main.cu:3: error: expected a ";"'


def test_what_a_running_script_prints_is_no_compilers_output() -> None:
    log = COMPILED.replace("Error building extension", "Error")
    assert error_of_evaluation(1, log, SCRIPT).verdict is Verdict.CRASHED

import signal
from pathlib import Path

import pytest

from runners.contract.verdict import Verdict
from runners.harness import verdicts
from runners.harness.verdicts import MESSAGE_MAX, VerdictError, error_of_exit


def test_a_ruling_carries_its_verdict_and_its_words() -> None:
    ruling = VerdictError(Verdict.CRASHED, "it fell")

    assert (ruling.verdict, ruling.message, str(ruling)) == (Verdict.CRASHED, "it fell", "it fell")


@pytest.mark.parametrize(
    ("status", "verdict", "words"),
    [
        (0, Verdict.CRASHED, "exited with status 0"),
        (70, Verdict.CRASHED, "exited with status 70"),
        (-signal.SIGKILL, Verdict.MEMORY_EXCEEDED, "killed the process for memory"),
        (-signal.SIGXFSZ, Verdict.OUTPUT_EXCEEDED, "a file grew"),
        (-signal.SIGSEGV, Verdict.CRASHED, "killed by SIGSEGV"),
        (-40, Verdict.CRASHED, "killed by signal 40"),
    ],
)
def test_the_end_of_a_process_has_its_meaning(status: int, verdict: Verdict, words: str) -> None:
    ruling = error_of_exit(status)

    assert ruling.verdict is verdict
    assert words in ruling.message


def test_a_message_can_be_sent_whatever_a_check_returns() -> None:
    assert VerdictError(Verdict.WRONG_ANSWER, "bad \ud800").message == "bad ?"
    long = VerdictError(Verdict.WRONG_ANSWER, "x" * (MESSAGE_MAX + 7)).message
    assert long == "x" * MESSAGE_MAX + " [... 7 characters omitted]"


def test_after_a_native_crash_the_log_has_the_frames_of_the_submission_alone() -> None:
    harness = Path(verdicts.__file__).parent
    log = (
        "mine\n\nFatal Python error: Segmentation fault\n\n"
        "Current thread 0x1 (most recent call first):\n"
        '  File "/home/job/submission.py", line 3 in custom_kernel\n'
        f'  File "{harness}/candidate/program.py", line 9 in call\n'
        f'  File "{harness.parent}/languages/python.py", line 9 in build\n'
        '  File "<frozen importlib._bootstrap_external>", line 940 in exec_module\n'
        '  File "<frozen runpy>", line 88 in _run_code\n\n'
        "Extension modules: torch._C (total: 1)\n"
    )
    assert verdicts.without_own_frames(log).rstrip().splitlines() == [
        "mine",
        "",
        "Fatal Python error: Segmentation fault",
        "",
        "Current thread 0x1 (most recent call first):",
        '  File "/home/job/submission.py", line 3 in custom_kernel',
    ]
    assert verdicts.without_own_frames("Extension modules: mine\n") == "Extension modules: mine\n"

"""The closed set of verdicts."""

from enum import StrEnum


class Verdict(StrEnum):
    """How an evaluation ended; every member except `TASK_ERROR` is caused by the submission."""

    PASSED = "passed"
    """Every output was right and every time was confirmed."""
    WRONG_ANSWER = "wrong_answer"
    """An output differs from the reference in value, shape, dtype or device."""
    INVALID_SUBMISSION = "invalid_submission"
    """No `custom_kernel`, a wrong signature, or a return value that is not a tensor structure."""
    BUILD_FAILED = "build_failed"
    """The source does not parse, import or compile."""
    CRASHED = "crashed"
    """The kernel raised an exception, or its process ended."""
    TIMED_OUT = "timed_out"
    """The task's time limit passed."""
    MEMORY_EXCEEDED = "memory_exceeded"
    """The candidate needed more memory than the limit."""
    OUTPUT_EXCEEDED = "output_exceeded"
    """The candidate wrote more to stdout, stderr or disk than the limit."""
    DISALLOWED = "disallowed"
    """A rule of the sandbox was broken, such as a process left behind after a call."""
    TIMING_REJECTED = "timing_rejected"
    """The claimed time is below what the judge's own clock allows."""
    AUDIT = "audit"
    """The time is below the card's least time, or is confirmed too coarsely; not ranked until it is
    reviewed."""
    TASK_ERROR = "task_error"
    """The task's own code failed; the submission is not at fault."""


VERDICT_WORDS = {
    Verdict.PASSED: "passed",
    Verdict.WRONG_ANSWER: "wrong answer",
    Verdict.INVALID_SUBMISSION: "invalid submission",
    Verdict.BUILD_FAILED: "build failed",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "timed out",
    Verdict.MEMORY_EXCEEDED: "memory exceeded",
    Verdict.OUTPUT_EXCEEDED: "output exceeded",
    Verdict.DISALLOWED: "disallowed",
    Verdict.TIMING_REJECTED: "timing rejected",
    Verdict.AUDIT: "held for audit",
    Verdict.TASK_ERROR: "task error",
}
"""Verdict -> its name in sentences."""


class Stage(StrEnum):
    """The part of an evaluation that caused a verdict."""

    PREPARE = "prepare"
    """Loading the task and starting the candidate."""
    BUILD = "build"
    """Importing or compiling the submission."""
    TEST = "test"
    """Checking the tests."""
    TIMING = "timing"
    """Timing the benchmarks."""

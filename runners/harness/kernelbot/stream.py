"""Parses the `key: value` lines of a task's own evaluation, and its exit status.

The process that writes the lines, or a child of it, also ran the submission. A pass is therefore
parsed strictly and a failure leniently: `check: fail` or one failed case is final. A pass is
`check: pass` after a passing line for every case. A line without a key of the protocol continues
the error or message above it, if there is one; otherwise it is ignored.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from runners.contract.task import TaskDefinition
from runners.contract.verdict import Stage, Verdict
from runners.harness.sandbox.diagnostics import failed_build
from runners.harness.verdicts import VerdictError, error_of_exit

_CASE = re.compile(r"(?P<kind>test|benchmark)\.(?P<number>0|[1-9][0-9]{0,5})\.(?P<field>[a-z_]+)")
_COUNTS = frozenset({"test-count", "benchmark-count"})
_TEXTS = frozenset({"error", "message"})
"""The keys, of a case or of the whole phase, whose values may have several lines."""
_TIMES = ("mean", "best", "worst")
_NUMBERS = (*_TIMES, "runs", "std", "err")
_NUMBER_MOST = 1e15
"""The most runs and the most nanoseconds; no evaluation can last so long."""
_TIME_LEAST = 1e-9
"""The least nanoseconds; the ratio of another time to a shorter one may be infinite."""
_PASS, _FAIL = "pass", "fail"

_Fields = Mapping[str, str]
_Cases = dict[tuple[str, int], dict[str, str]]


class Step(StrEnum):
    """A phase, by its name in the evaluation's first argument."""

    TEST = "test"
    """Every test once."""
    BENCHMARK = "benchmark"
    """The benchmarks, timed."""
    LEADERBOARD = "leaderboard"
    """The benchmarks, timed on inputs from the secret seed."""
    PROFILE = "profile"
    """One benchmark under a profiler."""

    @property
    def kind(self) -> str:
        """The name of its cases in keys."""
        return "test" if self is Step.TEST else "benchmark"


class BreachError(Exception):
    """The text of the result pipe is one that no honest evaluation writes."""


class UnfinishedError(BreachError):
    """The text ends before the final `check`."""


@dataclass(frozen=True, slots=True)
class Times:
    """The mean time of one benchmark over its runs and its standard error, in nanoseconds."""

    mean: float
    runs: int = 1
    err: float | None = None


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """The reported result of one case."""

    passed: bool
    message: str = ""
    times: Times | None = None
    report: str = ""


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The parsed text of the result pipe."""

    values: _Fields
    cases: _Cases
    confirmed: _Cases
    """The cases as they were before the line `check`."""

    @property
    def failures(self) -> Iterator[str]:
        """The reason of each failed case, of any phase."""
        return (_reason(fields) for fields in self.cases.values() if _failed(fields))


def read(written: bytes, step: Step, count: int) -> tuple[ReportedCase, ...]:
    """Return the cases of a phase that has ended: `count` cases, or fewer after a failed one.

    BreachError if the text is invalid, UnfinishedError if it ends before the final `check`.
    """
    parsed = _parse(written)
    check, failure = parsed.values.get("check"), next(parsed.failures, None)
    if check == _FAIL or failure is not None:
        cases = _cases(parsed.cases, step, count)
        if all(case.passed for case in cases):
            message = failure or _reason(parsed.values, "the check failed")
            cases = (*cases[: count - 1], ReportedCase(passed=False, message=message))
        return cases
    if check is None:
        raise UnfinishedError("does not end with `check: pass` or `check: fail`")
    reported_count = parsed.values.get(f"{step.kind}-count", str(count))
    if reported_count != str(count):
        raise BreachError(f"counts {reported_count[:20]} cases, not {count}")
    cases = _cases(parsed.confirmed, step, count)
    missing = count - len(cases)
    if step is Step.PROFILE:  # a report may be left out
        return (*cases, *[ReportedCase(passed=True)] * missing)
    if missing:
        raise BreachError(
            "says `check: pass` without a passing line for every case before it: there is no "
            f"`{step.kind}.{len(cases)}.{'status' if step is Step.TEST else 'mean'}` "
            "(cases count from 0)"
        )
    return cases


def finished_cases(written: bytes, step: Step, count: int) -> tuple[ReportedCase, ...]:
    """Return the cases that were complete when a phase was aborted; () if the text is invalid."""
    complete_lines, _, _ = written.rpartition(b"\n")
    try:
        return _cases(_parse(complete_lines).cases, step, count) if complete_lines else ()
    except BreachError:
        return ()


def error_text(written: bytes) -> str:
    """Return the first line of the whole phase's `error`; "" if there is none."""
    try:
        return _parse(written).values.get("error", "").partition("\n")[0]
    except BreachError:
        return ""


def _parse(written: bytes) -> _Parsed:
    try:
        text = written.decode()
    except UnicodeDecodeError as error:
        raise BreachError("is not UTF-8") from error
    values: dict[str, str] = {}
    cases: _Cases = {}
    confirmed: _Cases = {}
    for key, value in _pairs(text):
        if values.setdefault(key, value) != value and key not in _TEXTS:
            raise BreachError(f"has {key!r} twice, with different values")
        if match := _CASE.fullmatch(key):
            case, field = (match["kind"], int(match["number"])), match["field"]
            cases.setdefault(case, {})[field] = value
            if "check" not in values:
                confirmed.setdefault(case, {})[field] = value
    return _Parsed(values, cases, confirmed)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Every key with its value; an error or a message includes its continuation lines."""
    key, lines = "", [""]
    for line in filter(str.strip, text.split("\n")):
        name, colon, value = (part.strip() for part in line.partition(":"))
        continues = key.rpartition(".")[2] in _TEXTS
        if colon and _is_key(name, value) and not (continues and name in _TEXTS):
            if key:
                yield key, "\n".join(lines)
            key, lines = name, [value]
        elif continues:
            lines.append(line.rstrip())
    if key:
        yield key, "\n".join(lines)


def _is_key(name: str, value: str) -> bool:
    if name == "check":
        return value in {_PASS, _FAIL}
    return name in _COUNTS | _TEXTS or _CASE.fullmatch(name) is not None


def _failed(fields: _Fields) -> bool:
    return fields.get("status") == _FAIL or bool(fields.get("error"))


def _reason(fields: _Fields, default: str = "the output is wrong") -> str:
    r"""The reason of a failure; evaluations with one-line texts escape line breaks as `\n`."""
    return (fields.get("error") or fields.get("message") or default).replace("\\n", "\n")


def _cases(reported: _Cases, step: Step, count: int) -> tuple[ReportedCase, ...]:
    """The reported cases from the first one up to the first gap."""
    cases: list[ReportedCase] = []
    for number in range(count):
        case = _case(reported.get((step.kind, number), {}), f"{step.kind}.{number}.", step)
        if case is None:
            break
        cases.append(case)
    return tuple(cases)


def _case(fields: _Fields, prefix: str, step: Step) -> ReportedCase | None:
    """One case, or None if its result was not reported."""
    if _failed(fields):
        return ReportedCase(passed=False, message=_reason(fields))
    if fields.get("status", _PASS) != _PASS:
        return None
    match step:
        case Step.TEST:
            return ReportedCase(passed=True) if "status" in fields else None
        case Step.PROFILE:
            listed = "report" in fields
            return ReportedCase(passed=True, report=_report(fields["report"])) if listed else None
        case Step.BENCHMARK | Step.LEADERBOARD:
            timed = "mean" in fields
            return ReportedCase(passed=True, times=_times(fields, prefix)) if timed else None


def _report(text: str) -> str:
    """A profiler's table from base64; KernelBot's evaluations write `*` for base64's `/`."""
    try:
        return base64.b64decode(text.replace("*", "/"), validate=True).decode(errors="replace")
    except ValueError as error:  # binascii.Error, or for text that is not ASCII its base class
        raise BreachError("has a report that is not base64") from error


def _times(fields: _Fields, prefix: str) -> Times:
    """The reported numbers; only the mean is required."""
    numbers = {name: _number(fields[name], prefix + name) for name in _NUMBERS if name in fields}
    if any(numbers.get(name, 1) < _TIME_LEAST for name in _TIMES):
        least = f"less than {_TIME_LEAST:g} ns"
        raise BreachError(f"has a time in `{prefix}*` that is not positive, or {least}")
    runs = numbers.get("runs", 1)
    if runs < 1 or runs != int(runs):
        raise BreachError(f"has a `{prefix}runs` that is not a positive integer")
    return Times(numbers["mean"], int(runs), numbers.get("err"))


def _number(text: str, key: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise BreachError(f"has no number at `{key}`") from error
    if not 0 <= value <= _NUMBER_MOST:
        raise BreachError(f"has {text[:30]} at `{key}`")
    return value


RAN = frozenset({0, 112})
"""The exit statuses of a completed evaluation: everything passed, or some case failed."""
OWN_ERRORS = {
    2: "did not accept its arguments",
    111: "could not open its result pipe",
    113: "could not read its cases",
}
"""The exit statuses with which an evaluation reports errors of its own."""
_NOT_BUILT = (
    "SyntaxError", "IndentationError", "ImportError", "ModuleNotFoundError",
    "OSError: CUDA_HOME environment variable is not set",
)  # fmt: skip

_EXTENSION = "Error building extension"
"""Torch's message if a submission's inline C++ or CUDA does not compile."""


def own_evaluation(task: TaskDefinition) -> str:
    """The task's file that contains its evaluation, for messages."""
    own = (name for name in task.config.sources if name != task.submission_file)
    return next(own, "eval.cu") if task.is_program else task.config.main


def error_of_evaluation(
    status: int, log: str, task: TaskDefinition, *, own_fault: bool = False
) -> VerdictError:
    """Return the verdict for an evaluation that did not complete.

    If `own_fault`, the submission did not cause the status. The untrusted log only
    decides which kind of failure it is, and its last line is quoted.
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if own_fault:
        printed = (f"the last line printed was: {line[:1000]}" for line in lines[-1:])
        words = "; ".join((OWN_ERRORS[status], *printed))
        return VerdictError(Verdict.TASK_ERROR, f"the task's {own_evaluation(task)} {words}")
    build = failed_build(log) if _EXTENSION in log else None
    last = build.reason if build else lines[-1] if lines else "it printed nothing"
    last = last[:1000]
    if status < 0:
        return _error_of_signal(status, last) if task.is_program else error_of_exit(status)
    not_built = build is not None or last.startswith(_NOT_BUILT)
    if not_built and task.submission_file in log and not task.is_program:
        return VerdictError(Verdict.BUILD_FAILED, last, Stage.BUILD)
    message = f"the evaluation exited with status {status}: {last}"
    if task.is_program and status in OWN_ERRORS:
        message += f"; alone, the task's {own_evaluation(task)} exits so if it {OWN_ERRORS[status]}"
    return VerdictError(Verdict.CRASHED, message)


def _error_of_signal(status: int, last: str) -> VerdictError:
    """The verdict for a program killed by a signal; `last` shows an uncaught exception."""
    error = error_of_exit(status)
    if error.verdict is not Verdict.CRASHED:
        return error
    return VerdictError(error.verdict, f"{error.message}: {last}")

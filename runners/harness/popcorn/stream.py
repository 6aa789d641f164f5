"""The lines that a task's own evaluation writes: `key: value`, read strictly or not at all.

The process that writes them ran the submission too, or its parent did. So everything that an
honest evaluation never writes is a breach: unknown and repeated keys, anything after `check`,
numbers that are no times.
"""

import base64
import binascii
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

_CASE = re.compile(r"(?P<kind>test|benchmark)\.(?P<number>0|[1-9]\d{0,5})\.(?P<field>[a-z_]+)")
_COMMON = {"spec", "status", "message", "error"}
_TIMES = ("mean", "best", "worst")
_NUMBERS = ("runs", *_TIMES, "std", "err")
_EXTRA = {"fwd_bw", "bwd_bw", "combined_bw", "speedup"}
"""Beside the times, of public tasks; never used."""
_FIELDS = {"test": _COMMON, "benchmark": _COMMON | _EXTRA | {*_NUMBERS, "report"}}
_PASS, _FAIL = "pass", "fail"


class Step(StrEnum):
    """A phase as its first argument names it."""

    TEST = "test"
    """Every test once."""
    BENCHMARK = "benchmark"
    """The benchmarks, timed."""
    LEADERBOARD = "leaderboard"
    """The benchmarks, timed on inputs that the secret seed decides."""
    PROFILE = "profile"
    """One benchmark under a profiler."""

    @property
    def kind(self) -> str:
        """How its cases are called in keys."""
        return "test" if self is Step.TEST else "benchmark"


class BreachError(Exception):
    """The line holds what no honest evaluation writes."""


class UnfinishedError(BreachError):
    """The line stops before it says how everything ended."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times of one benchmark, in nanoseconds."""

    runs: int
    mean: float
    std: float
    err: float
    best: float
    worst: float


@dataclass(frozen=True, slots=True)
class Case:
    """What was said of one case."""

    passed: bool
    message: str = ""
    times: Times | None = None
    report: str = ""


def read(said: bytes, step: Step, count: int) -> tuple[Case, ...]:
    """The cases of a phase that has ended; as many as asked for unless one of them failed.

    Raises BreachError. Only the last one given can be followed by cases that never came.
    """
    values = _values(said, step)
    verdict = values.pop("check", None)
    if verdict not in {_PASS, _FAIL}:
        raise UnfinishedError("does not end with `check: pass` or `check: fail`")
    cases = _cases(values, step, count)
    if verdict == _PASS and (len(cases) < count or not all(case.passed for case in cases)):
        raise BreachError("says `check: pass`, but not that every case passed")
    if verdict == _FAIL and all(case.passed for case in cases):
        return (*cases[: count - 1], Case(passed=False, message="the check failed"))
    return cases


def glimpse(said: bytes, step: Step, count: int) -> tuple[Case, ...]:
    """The cases that were complete when a phase broke off; nothing where it cannot be read."""
    whole, _, _ = said.rpartition(b"\n")
    try:
        values = _values(whole, step)
        values.pop("check", None)
        return _cases(values, step, count)
    except BreachError:
        return ()


def _values(said: bytes, step: Step) -> dict[str, str]:
    try:
        text = said.decode()
    except UnicodeDecodeError as error:
        raise BreachError("is not UTF-8") from error
    values: dict[str, str] = {}
    for line in filter(str.strip, text.split("\n")):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if "check" in values:
            raise BreachError("goes on after `check`")
        if not colon or not _known(key, step):
            raise BreachError(f"has the unknown key {key[:60]!r}")
        if key in values:
            raise BreachError(f"has {key!r} twice")
        values[key] = value
    return values


def _known(key: str, step: Step) -> bool:
    if key in {"check", f"{step.kind}-count"}:
        return True
    found = _CASE.fullmatch(key)
    return bool(found and found["kind"] == step.kind and found["field"] in _FIELDS[step.kind])


def _cases(values: Mapping[str, str], step: Step, count: int) -> tuple[Case, ...]:
    """The cases from the first to the last that something is said of, none left out."""
    if values.get(f"{step.kind}-count", str(count)) != str(count):
        raise BreachError(f"counts {values[f'{step.kind}-count'][:20]} cases, not {count}")
    parts = [_CASE.fullmatch(key) for key in values]
    numbers = {int(found["number"]) for found in parts if found}
    if numbers != set(range(len(numbers))) or len(numbers) > count:
        raise BreachError("leaves a case out, or has one too many")
    cases = [_case(values, f"{step.kind}.{number}.", step) for number in range(len(numbers))]
    ended = [case for case in cases if case is not None]
    if None in cases[:-1]:
        raise BreachError("leaves a case unfinished and goes on")
    return tuple(ended)


def _case(values: Mapping[str, str], prefix: str, step: Step) -> Case | None:
    """One case, or None when it was begun and nothing said of how it ended."""
    fields = {
        key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
    }
    status = fields.get("status")
    if status not in {None, _PASS, _FAIL}:
        raise BreachError(f"has `{prefix}status` neither pass nor fail")
    if status == _FAIL or (status is None and "error" in fields):
        text = fields.get("error") or fields.get("message") or "the output is wrong"
        return Case(passed=False, message=text.replace("\\n", "\n"))
    match step:
        case Step.TEST:
            return Case(passed=True) if status else None
        case Step.PROFILE:
            return (
                Case(passed=True, report=_report(fields["report"])) if "report" in fields else None
            )
        case Step.BENCHMARK | Step.LEADERBOARD:
            timed = "mean" in fields
            return Case(passed=True, times=_times(fields, prefix)) if timed else None


def _report(text: str) -> str:
    """A profiler's table; evaluations write base64 with `+*`, tools with the usual `+/`."""
    try:
        return base64.b64decode(text.replace("*", "/"), validate=True).decode(errors="replace")
    except binascii.Error as error:
        raise BreachError("has a report that is no base64") from error


def _times(fields: Mapping[str, str], prefix: str) -> Times:
    missing = [name for name in _NUMBERS if name not in fields]
    if missing:
        raise BreachError(f"lacks `{prefix}{missing[0]}`")
    numbers = {name: _number(fields[name], prefix + name) for name in _NUMBERS}
    if any(numbers[name] <= 0 for name in _TIMES):
        raise BreachError(f"has a time in `{prefix}*` that is not positive")
    if numbers["runs"] < 1 or numbers["runs"] != int(numbers["runs"]):
        raise BreachError(f"has `{prefix}runs` that is no count")
    return Times(runs=int(numbers.pop("runs")), **numbers)


def _number(text: str, key: str) -> float:
    try:
        value = float(text)
    except ValueError as error:
        raise BreachError(f"has no number at `{key}`") from error
    if not math.isfinite(value) or value < 0:
        raise BreachError(f"has {text[:30]} at `{key}`")
    return value

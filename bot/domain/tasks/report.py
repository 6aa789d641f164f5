"""The findings of a task's check, ready for a front end to show."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How severe a finding is."""

    ERROR = "error"
    """The task must not be published with it."""
    WARNING = "warning"
    """The task works, but could be better."""
    INFO = "info"
    """Something that was done, or skipped with a reason."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark on one file of the task."""

    level: Level
    file: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskReport:
    """All findings on a task on one GPU type.

    `obstacle` says why its solutions could not be run; empty when they were.
    """

    task: str
    gpu: str
    findings: tuple[Finding, ...]
    obstacle: str = ""

    @property
    def dry_run(self) -> bool:
        """Return whether the task's solutions were run."""
        return not self.obstacle

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Return the findings that prevent publishing."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)

    @property
    def ok(self) -> bool:
        """Return whether the task was run and may be published."""
        return self.dry_run and not self.errors


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One run of a check: waiting, at a stage, or ended with its finding.

    `name` is the solution's path or what is tried; `done` of `total` counts the stage's cases.
    """

    gpu: str
    name: str
    stage: str | None = None
    done: int = 0
    total: int = 0
    finding: Finding | None = None

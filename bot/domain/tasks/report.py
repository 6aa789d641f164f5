"""What a check of a task found, ready for a door to draw."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    """The task must not be published like this."""
    WARNING = "warning"
    """The task works, and could be better."""
    INFO = "info"
    """Something that was done, or skipped and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One remark on one file of the task."""

    level: Level
    file: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Every finding on a task on one GPU type.

    `obstacle` says why its solutions could not be run; it is empty when they were.
    """

    task: str
    gpu: str
    findings: tuple[Finding, ...]
    obstacle: str = ""

    @property
    def dry_run(self) -> bool:
        """Whether the task's solutions were run."""
        return not self.obstacle

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What speaks against publishing the task."""
        return tuple(each for each in self.findings if each.level is Level.ERROR)

    @property
    def ok(self) -> bool:
        """Whether it was run, and nothing speaks against publishing it."""
        return self.dry_run and not self.errors


@dataclass(frozen=True, slots=True)
class CheckStep:
    """One run of a check as it stands: waiting, at a stage, or ended with its finding.

    `name` is the solution's path or what is tried; `done` of `total` counts the stage's cases.
    """

    gpu: str
    name: str
    stage: str | None = None
    done: int = 0
    total: int = 0
    finding: Finding | None = None

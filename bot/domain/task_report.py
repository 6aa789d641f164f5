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
    """Every finding on a task; `dry_run` tells whether its solutions were run at all."""

    task: str
    findings: tuple[Finding, ...]
    dry_run: bool = True

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against publishing the task."""
        return all(finding.level is not Level.ERROR for finding in self.findings)

"""What services need from outside, by role; `bot.store` offers each in Postgres and in memory."""

from typing import Protocol

from bot.ports.displays import Displays
from bot.ports.events import Clock, Events, Notice, Topic
from bot.ports.moderation import Moderation
from bot.ports.queue import Beat, Claim, Jobs, Worker, Workers
from bot.ports.records import (
    Audit,
    AuditRow,
    Boards,
    Outcome,
    People,
    Refusal,
    Results,
    StoredEvaluation,
    Submissions,
)
from bot.ports.tokens import Tokens

__all__ = [
    "Audit",
    "AuditRow",
    "Beat",
    "Boards",
    "Claim",
    "Clock",
    "Displays",
    "Events",
    "Jobs",
    "Moderation",
    "Notice",
    "Outcome",
    "People",
    "Refusal",
    "Results",
    "Store",
    "StoredEvaluation",
    "Submissions",
    "Tokens",
    "Topic",
    "Worker",
    "Workers",
]


class Store(Protocol):
    """Every role of the store at once."""

    @property
    def people(self) -> People: ...
    @property
    def boards(self) -> Boards: ...
    @property
    def submissions(self) -> Submissions: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def results(self) -> Results: ...
    @property
    def moderation(self) -> Moderation: ...
    @property
    def displays(self) -> Displays: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def events(self) -> Events: ...

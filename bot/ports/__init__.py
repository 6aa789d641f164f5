"""What services need from outside, by role; `bot.store` offers each in Postgres and in memory."""

from typing import Protocol

from bot.ports.displays import Displays
from bot.ports.events import Clock, Events, Notice, Topic
from bot.ports.moderation import Moderation
from bot.ports.news import Listeners, Outbox, Untold
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
from bot.ports.references import References
from bot.ports.releases import Releases
from bot.ports.statistics import DayCount, Statistics, Usage
from bot.ports.tokens import Tokens
from bot.ports.worker_queue import WorkerQueue

__all__ = [
    "Audit",
    "AuditRow",
    "Beat",
    "Boards",
    "Claim",
    "Clock",
    "DayCount",
    "Displays",
    "Events",
    "Jobs",
    "Listeners",
    "Moderation",
    "Notice",
    "Outbox",
    "Outcome",
    "People",
    "References",
    "Refusal",
    "Releases",
    "Results",
    "Statistics",
    "Store",
    "StoredEvaluation",
    "Submissions",
    "Tokens",
    "Topic",
    "Untold",
    "Usage",
    "Worker",
    "WorkerQueue",
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
    def references(self) -> References: ...
    @property
    def moderation(self) -> Moderation: ...
    @property
    def displays(self) -> Displays: ...
    @property
    def releases(self) -> Releases: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def events(self) -> Events: ...

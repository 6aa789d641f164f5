"""What services need from outside, by role; `bot.store` offers each in Postgres and in memory."""

from typing import Protocol

from bot.ports.displays import Displays
from bot.ports.events import Clock, Events, Notice, Topic
from bot.ports.identities import Identities, KnownPerson
from bot.ports.interactions import Interactions
from bot.ports.moderation import Moderation
from bot.ports.news import Listeners, Outbox, Untold
from bot.ports.operations import Operations, Schema
from bot.ports.queue import Beat, Claim, Jobs, Worker, Workers
from bot.ports.records import (
    Audit,
    AuditRow,
    Boards,
    Course,
    Outcome,
    People,
    Refusal,
    Results,
    StoredEvaluation,
    StoredFile,
    Submissions,
)
from bot.ports.references import References
from bot.ports.releases import Releases
from bot.ports.requests import Requests
from bot.ports.rights import PeoplesRights, Vouched
from bot.ports.statistics import DayCount, Statistics, Usage
from bot.ports.tokens import Tokens
from bot.ports.worker_queue import NO_RUNNERS, WorkerQueue

__all__ = [
    "NO_RUNNERS",
    "Audit",
    "AuditRow",
    "Beat",
    "Boards",
    "Claim",
    "Clock",
    "Course",
    "DayCount",
    "Displays",
    "Events",
    "Identities",
    "Interactions",
    "Jobs",
    "KnownPerson",
    "Listeners",
    "Moderation",
    "Notice",
    "Operations",
    "Outbox",
    "Outcome",
    "People",
    "PeoplesRights",
    "References",
    "Refusal",
    "Releases",
    "Requests",
    "Results",
    "Schema",
    "Statistics",
    "Store",
    "StoredEvaluation",
    "StoredFile",
    "Submissions",
    "Tokens",
    "Topic",
    "Untold",
    "Usage",
    "Vouched",
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
    def requests(self) -> Requests: ...
    @property
    def moderation(self) -> Moderation: ...
    @property
    def displays(self) -> Displays: ...
    @property
    def releases(self) -> Releases: ...
    @property
    def interactions(self) -> Interactions: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def rights(self) -> PeoplesRights: ...
    @property
    def statistics(self) -> Statistics: ...
    @property
    def operations(self) -> Operations: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def outbox(self) -> Outbox: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def events(self) -> Events: ...

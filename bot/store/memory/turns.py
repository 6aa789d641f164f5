"""Whose turn it is: highest priority first, and everyone's k-th job before anyone's (k+1)-th."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from bot.domain.job import Job, JobState


def in_turn(jobs: Iterable[Job], gpu: str, now: datetime) -> list[Job]:
    """The due jobs of a GPU type in the order in which they are to be claimed.

    A person's running jobs of that type count as turns that they have had.
    """
    pool = [job for job in jobs if job.gpu == gpu]
    turns = Counter(job.person for job in pool if job.state is JobState.RUNNING)
    due = [job for job in pool if job.state is JobState.QUEUED and job.run_at <= now]
    places: list[tuple[int, int, datetime, int, Job]] = []
    for job in sorted(due, key=lambda job: (-job.priority, job.run_at, job.id)):
        turns[job.person] += 1
        places.append((-job.priority, turns[job.person], job.run_at, job.id, job))
    return [job for *_, job in sorted(places, key=lambda place: place[:4])]


def before(job: Job, jobs: Iterable[Job]) -> int:
    """How many queued jobs of the pool come before this one, those not yet due included."""
    if job.state is not JobState.QUEUED:
        return 0
    order = in_turn(jobs, job.gpu, datetime.max.replace(tzinfo=job.run_at.tzinfo))
    return order.index(job)

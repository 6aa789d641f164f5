"""Converts rows of the database to domain types."""

import json
import re

from asyncpg import Record

from bot.domain.accounts import Person
from bot.domain.board import Access, Board, SourceVisibility, TaskVersion, Visibility
from bot.domain.ids import BoardId, EventId, JobId, PersonId, SubmissionId, TaskVersionId
from bot.domain.job import Job, JobEvent, JobState, submission_state
from bot.domain.submission import Display, Submission
from runners.contract.evaluation import ProfileOptions
from runners.contract.task import Mode, TaskDefinition

_NAMED_WORKER = re.compile(r"\Aworker \S+ vanished")


def person(row: Record) -> Person:
    """Convert a row of `people`."""
    return Person(PersonId(row["id"]), row["identity"], row["name"], row["created_at"])


def board(row: Record) -> Board:
    """Convert a row of `boards`."""
    return Board(
        id=BoardId(row["id"]),
        name=row["name"],
        gpus=tuple(row["gpus"]),
        deadline=row["deadline"],
        creator=PersonId(row["creator"]),
        task_version=TaskVersionId(row["task_version"]),
        created_at=row["created_at"],
        access=Access(
            visibility=Visibility(row["visibility"]),
            house=row["house"],
            source=SourceVisibility(row["source_visibility"]),
            guests=frozenset(row["guests"]),
        ),
        pins=tuple(sorted(json.loads(row["pools"]).items())),
    )


def display(row: Record) -> Display:
    """Convert a row of `displays` with its submission's person."""
    submission, person = SubmissionId(row["submission"]), PersonId(row["person"])
    return Display(submission, person, row["door"], row["place"], row["claims"])


def task_version(row: Record) -> TaskVersion:
    """Convert a row of `task_versions`."""
    return TaskVersion(
        id=TaskVersionId(row["id"]),
        board=BoardId(row["board"]),
        number=row["number"],
        digest=row["digest"],
        definition=TaskDefinition.model_validate_json(row["definition"]),
        created_at=row["created_at"],
    )


def submission(row: Record) -> Submission:
    """Convert a row of `submissions` with the states of its jobs."""
    return Submission(
        id=SubmissionId(row["id"]),
        person=PersonId(row["person"]),
        board=BoardId(row["board"]),
        task_version=TaskVersionId(row["task_version"]),
        file_name=row["file_name"],
        source_hash=row["source"],
        mode=Mode(row["mode"]),
        gpus=tuple(row["gpus"]),
        state=submission_state(tuple(JobState(state) for state in row["states"])),
        created_at=row["created_at"],
        profile=_profile(row["profile"]),
        warning=row["warning"],
    )


def _profile(text: str | None) -> ProfileOptions | None:
    return None if text is None else ProfileOptions.model_validate_json(text)


def job(row: Record) -> Job:
    """Convert a row of `jobs`."""
    return Job(
        id=JobId(row["id"]),
        submission=SubmissionId(row["submission"]),
        person=PersonId(row["person"]),
        gpu=row["gpu"],
        mode=Mode(row["mode"]),
        priority=row["priority"],
        turn=row["turn"],
        state=JobState(row["state"]),
        attempt=row["attempt"],
        max_attempts=row["max_attempts"],
        fence=row["fence"],
        worker=row["worker"],
        call=row["call"],
        cancel_requested=row["cancel_requested"],
        error=without_worker(row["error"]),
        run_at=row["run_at"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        pool=row["pool"],
    )


def event(row: Record) -> JobEvent:
    """Convert a row of `job_events`."""
    return JobEvent(
        id=EventId(row["id"]),
        job=JobId(row["job"]),
        submission=SubmissionId(row["submission"]),
        kind=row["kind"],
        body=json.loads(row["body"]),
        at=row["at"],
    )


def without_worker(error: str | None) -> str | None:
    """Return a job's stored error without the worker's name that older versions included."""
    return None if error is None else _NAMED_WORKER.sub("the worker vanished", error)

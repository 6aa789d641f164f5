"""What a person wants of a board, whatever its task is: kept with a task zip while it is proven."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from pydantic import Base64Bytes, TypeAdapter

from bot.domain.access import Access
from bot.domain.archive import read_zip
from bot.domain.ids import PersonId, TaskVersionId
from bot.domain.solutions import solutions
from bot.domain.task_bundle import TaskBundle
from bot.domain.task_file import ParsedTask, read_task
from bot.domain.task_lint import lint
from bot.services.apart import Apart
from bot.services.publish import PublishRequest
from runners.contract.task import TaskDefinition


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants of a board; `zip_name` is the zip's own."""

    person: PersonId
    name: str
    gpus: tuple[str, ...]
    deadline: datetime | None
    endless: bool = False
    as_admin: bool = False
    access: Access | None = None
    onto: TaskVersionId | None = None
    zip_name: str = ""
    strict: bool = True
    """False ignores unknown keys of task.yml, as the reading of a competition does."""

    def request(self, task: TaskDefinition) -> PublishRequest:
        """The wish with its task."""
        return PublishRequest(
            person=self.person,
            task=task,
            name=self.name,
            gpus=self.gpus,
            deadline=self.deadline,
            endless=self.endless,
            as_admin=self.as_admin,
            access=self.access,
            onto=self.onto,
        )


WISH = TypeAdapter(Wish)
"""A wish as text, which a release keeps."""


TASKS = Apart(10.0, patience_s=30.0)
"""Where the tasks of strangers are read."""


async def read(data: bytes, wish: Wish) -> tuple[TaskBundle, ParsedTask]:
    """The files of a zip, and the task which they make; UserError with file and line."""
    parsed = await TASKS.do(task_in, data, wish)
    return await asyncio.to_thread(read_zip, data, name=wish.zip_name), parsed


def task_in(data: Base64Bytes, wish: Wish) -> ParsedTask:
    """The task of a zip that comes with this wish; only ever called apart."""
    bundle = read_zip(data, name=wish.zip_name)
    parsed = read_task(bundle, strict=wish.strict)
    lint(parsed.task, solutions(bundle))
    return parsed

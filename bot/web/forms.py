"""Forms: read within a limit and a deadline, and only from who is signed in at a page of ours."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.datastructures import UploadFile as FastUploadFile
from starlette.datastructures import FormData, UploadFile

from bot.domain.accounts import Caller
from bot.domain.errors import UserError
from bot.web.bodies import form_of
from bot.web.sessions import STAMP, Browser, browser_of, require_same_origin, require_stamp

SMALL = 64 << 10
"""Bytes of a form without a file."""
ROOM = 64 << 10
"""Bytes that the other fields of a form with a file may have."""
_MOST_FIELDS = 200


def number_in(text: str, most: int) -> int | None:
    """The number from 1 to `most` that a person wrote, such as `#17`; None for anything else.

    Its length is looked at first: Python reads no number of thousands of digits.
    """
    digits = text.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
        return None
    return int(digits) if 1 <= int(digits) <= most else None


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded file; both are a stranger's words."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Fields:
    """What stands in a form."""

    data: FormData

    def text(self, name: str) -> str:
        """A field without the space around it; empty when there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """A field as it was written."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Every value of a field."""
        return tuple(each for each in self.data.getlist(name) if isinstance(each, str))

    async def file(self, name: str) -> File | None:
        """An uploaded file; None when nobody chose one."""
        value = self.data.get(name)
        if not isinstance(value, (UploadFile, FastUploadFile)) or not value.filename:
            return None
        return File(value.filename, await value.read())


@dataclass(frozen=True, slots=True)
class Posted:
    """A form that a person sent from a page of ours."""

    browser: Browser
    fields: Fields

    @property
    def caller(self) -> Caller:
        """Who acts, with the rights of this moment."""
        return self.browser.session.caller


@asynccontextmanager
async def read_form(request: Request, most: int = SMALL) -> AsyncIterator[Fields]:
    """The form of a request; UserError when it is longer than `most` bytes or breaks off."""
    async with form_of(request, most, files=1, fields=_MOST_FIELDS) as form:
        yield Fields(form)


def posted(most: int = SMALL) -> Callable[[Request], AsyncGenerator[Posted, None]]:
    """What a route that acts depends on; UserError for whatever no page of ours has sent."""

    async def found(request: Request) -> AsyncGenerator[Posted, None]:
        require_same_origin(request)
        browser = await browser_of(request)
        if browser is None:
            words = "you are not signed in, or not any more; sign in and repeat it"
            raise UserError("signed-out", words)
        async with read_form(request, most) as fields:
            require_stamp(browser, fields.raw(STAMP))
            yield Posted(browser, fields)

    return found


Act = Annotated[Posted, Depends(posted())]
"""A form without a file."""

"""Reads forms with limits on size and time, only from signed-in users of our own pages."""

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
"""The most bytes of a form without a file."""
ROOM = 64 << 10
"""The most bytes of the other fields in a form with a file."""
_MOST_FIELDS = 200


def number_in(text: str, most: int) -> int | None:
    """Return the number from 1 to `most` that a person typed, such as `#17`; else None.

    Its length is checked first: Python does not parse numbers of thousands of digits.
    """
    digits = text.strip().removeprefix("#")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))):
        return None
    return int(digits) if 1 <= int(digits) <= most else None


@dataclass(frozen=True, slots=True)
class File:
    """An uploaded file; both fields are untrusted."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a form."""

    data: FormData

    def text(self, name: str) -> str:
        """Return a field without surrounding white space; empty when there is none."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        """Return a field unchanged."""
        value = self.data.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return every value of a field."""
        return tuple(each for each in self.data.getlist(name) if isinstance(each, str))

    async def file(self, name: str) -> File | None:
        """Return an uploaded file; None when none was chosen."""
        value = self.data.get(name)
        if not isinstance(value, (UploadFile, FastUploadFile)) or not value.filename:
            return None
        return File(value.filename, await value.read())


@dataclass(frozen=True, slots=True)
class Posted:
    """A form sent from one of our pages."""

    browser: Browser
    fields: Fields

    @property
    def caller(self) -> Caller:
        """Return who acts, with their current rights."""
        return self.browser.session.caller


@asynccontextmanager
async def read_form(request: Request, most: int = SMALL) -> AsyncIterator[Fields]:
    """Yield a request's form; UserError when it is longer than `most` bytes or incomplete."""
    async with form_of(request, most, files=1, fields=_MOST_FIELDS) as form:
        yield Fields(form)


def posted(most: int = SMALL) -> Callable[[Request], AsyncGenerator[Posted, None]]:
    """Return the dependency of acting routes; UserError for forms not from our own pages."""

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

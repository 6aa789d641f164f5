"""A browser without a network or rendering: cookies, forms with their stamps, redirects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import httpx

from bot.domain.accounts import TokenScope
from bot.services.tokens import NewToken, create_local_token, create_token
from bot.web.context import WebContext
from tests.doubles.agents import way_to

HOME = "http://podium.test"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin", "Origin": HOME}
_STAMP = re.compile(r'name="stamp" value="([0-9a-f]{64})"')


@dataclass
class Browser:
    """One person's browser; it follows no redirect by itself."""

    door: WebContext
    home: str = HOME
    client: httpx.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.AsyncClient(
            transport=way_to(self.door), base_url=self.home, headers={"Accept": "text/html"}
        )

    async def get(self, path: str) -> httpx.Response:
        return await self.client.get(path)

    async def text(self, path: str) -> str:
        """The text of a page, which must exist."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def stamp(self) -> str:
        """The stamp of this browser's forms, from a page with a form."""
        found = _STAMP.search(await self.text("/me"))
        assert found is not None
        return found[1]

    async def post(
        self,
        path: str,
        fields: Mapping[str, str | list[str]] | None = None,
        *,
        file: tuple[str, str, bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a form as Podium's pages do; `file` is a field, a file name and bytes."""
        stamped = {"stamp": await self.stamp(), **(fields or {})}
        files = None if file is None else {file[0]: (file[1], file[2])}
        asked = SAME_ORIGIN if headers is None else headers
        return await self.client.post(path, data=stamped, files=files, headers=asked)

    async def sign_in(self, secret: str, there: str = "/") -> httpx.Response:
        form = {"token": secret, "next": there}
        return await self.client.post("/sign-in", data=form, headers=SAME_ORIGIN)


async def signed_in(door: WebContext, name: str = "ada") -> tuple[Browser, NewToken]:
    """The browser of a person who signed in with a token."""
    person = await door.store.people.ensure(f"local:{name}", name)
    made = await create_token(door.store, person.id, "laptop")
    browser = Browser(door)
    answer = await browser.sign_in(made.secret)
    assert answer.status_code == 303, answer.text
    return browser, made


async def admin_of(door: WebContext, name: str = "ada") -> Browser:
    """The browser of an admin, signed in with an admin token."""
    by = await door.store.people.ensure("local:root", "root")
    day = timedelta(days=1)
    made = await create_local_token(
        door.store, door.clock, by.id, name, scope=TokenScope.ADMIN, lifetime=day
    )
    browser = Browser(door)
    await browser.sign_in(made.secret)
    return browser

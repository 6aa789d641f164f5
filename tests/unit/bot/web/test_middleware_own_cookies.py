import http.cookies

import httpx
import pytest

from tests.doubles.agents import make_door, way_to
from tests.doubles.clock import ManualClock
from tests.doubles.memory_store import MemoryStore

SLOW = 'a="' + "\\a" * 30_000 + '"'
OURS = 'podium=podium_session_x-1; podium-sign-in="W10="'


@pytest.mark.parametrize("path", ["/", "/api/v1/leaderboards", "/sign-in", "/none"])
async def test_a_header_of_backslashes_is_never_unescaped(
    path: str, memory_store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def unescaped(text: str) -> str:
        read.append(text)
        return text.strip('"')

    monkeypatch.setattr(http.cookies, "_unquote", unescaped)
    way = way_to(make_door(memory_store, clock))
    async with httpx.AsyncClient(transport=way, base_url="http://podium.test") as client:
        for header in (f"{SLOW}; {OURS}", f"podium={SLOW}", f"{OURS}; podium={SLOW}"):
            await client.get(path, headers={"Cookie": header})
    assert set(read) <= {"podium_session_x-1", '"W10="'}
    assert read or path == "/none"

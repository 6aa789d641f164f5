"""How an owner waits for those who joined its server."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from typing_extensions import override

from bot.store.embedded.database import Folder, _JoinedProcesses


@dataclass(frozen=True, slots=True)
class UsedFolder(Folder):
    """A folder whose server others use, until it was looked at so often."""

    looks: Iterator[bool]

    @override
    @contextmanager
    def close_to_others(self) -> Iterator[bool]:
        yield next(self.looks)


@pytest.mark.slow
@pytest.mark.parametrize(("used", "reports"), [(0, 0), (3, 0), (15, 1)])
async def test_a_wait_of_more_than_a_second_is_reported_once(used: int, reports: int) -> None:
    folder = UsedFolder(Path("data"), iter([False] * used + [True]))
    reported: list[str] = []
    joined = _JoinedProcesses(folder, lambda: reported.append("waiting"), limit_s=60)
    async with joined.wait_until_left():
        assert len(reported) == reports

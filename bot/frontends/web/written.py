"""Long answers that are the same for many readers: written once for each change of what they tell.

Who comes while one reader has it written anew gets the answer there was, which is older by just
that moment; who comes alone gets the newest.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

MOST = 32
"""Answers that are kept: each may be some hundred kilobytes."""
OLDEST_S = 2.0
"""How long an answer may be given while the next one is written."""

Answer = TypeVar("Answer")


@dataclass(slots=True)
class _Entry(Generic[Answer]):
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: object = None
    answer: Answer | None = None
    since: float = 0.0


class Written(Generic[Answer]):
    """Answers by what was asked, each with the version of what it tells."""

    def __init__(self, most: int = MOST) -> None:
        self._entries: OrderedDict[object, _Entry[Answer]] = OrderedDict()
        self._most = most

    async def get(
        self, asked: object, version: object, write: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        """The answer of this version, or the one before it while somebody writes."""
        entry = self._entries.setdefault(asked, _Entry())
        self._entries.move_to_end(asked)
        while len(self._entries) > self._most:
            self._entries.popitem(last=False)
        if entry.answer is not None and self._will_do(entry, version):
            return entry.answer
        async with entry.lock:
            if entry.answer is None or entry.version != version:
                entry.since = _now()
                entry.answer = await write()
                entry.version = version
            return entry.answer

    def _will_do(self, entry: _Entry[Answer], version: object) -> bool:
        if entry.version == version:
            return True
        return entry.lock.locked() and _now() - entry.since < OLDEST_S


def _now() -> float:
    return asyncio.get_running_loop().time()

"""Finds near-identical sources of two people, whatever their comments, layout and names."""

import asyncio
import hashlib
import re
from collections.abc import Iterator

from bot.domain.alerts import Unprinted
from bot.ports import Store

NEAR = 0.9
"""Two sources with this share of common parts are near-identical."""
LEAST_PRINTS = 24
"""With fewer parts of its own, a source says nothing: short ones are alike by chance."""
MOST_PRINTS = 4000
_LENGTH = 12
"""How many tokens one part has."""
_SAMPLE = 4
"""One part of this many is kept, chosen by its hash, the same ones in every source."""
_COMMENT = re.compile(
    r'"""[\s\S]*?"""|/\*[\s\S]*?\*/|#(?!include\b|define\b|pragma\b)[^\n]*|//[^\n]*'
)
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")


def prints(source: str) -> frozenset[int]:
    """Return hashes of the source's parts; equal parts with other names have equal hashes."""
    tokens = _TOKEN.findall(_COMMENT.sub(" ", source))
    hashes = {_hash(part) for part in _parts(tokens)}
    return frozenset(sorted(each for each in hashes if each % _SAMPLE == 0)[:MOST_PRINTS])


def _parts(tokens: list[str]) -> Iterator[str]:
    """Yield each run of tokens, with every name replaced by the order in which it appears there."""
    for start in range(len(tokens) - _LENGTH + 1):
        names: dict[str, str] = {}
        part = tokens[start : start + _LENGTH]
        yield " ".join(
            names.setdefault(each, f"${len(names)}")
            if each[0].isalpha() or each[0] == "_"
            else each
            for each in part
        )


def _hash(part: str) -> int:
    digest = hashlib.blake2b(part.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def likeness(first: frozenset[int], second: frozenset[int]) -> float:
    """Return the share of parts that two sources have in common, of all that either has."""
    either = first | second
    return len(first & second) / len(either) if either else 0.0


async def compare_sources(store: Store) -> None:
    """Compare each new ranked source with the newest one of everyone else on its board."""
    for new in await store.alerts.unprinted():
        own = await asyncio.to_thread(prints, new.source)
        given = await _given(store, new)
        others = await store.alerts.prints_of_others(new.board, new.person, len(own))
        for other, theirs in others:
            if min(len(own - given), len(theirs - given)) < LEAST_PRINTS:
                continue
            if likeness(own - given, theirs - given) >= NEAR:
                await _report(store, new, other)
        await store.alerts.keep_prints(new, own)


async def _given(store: Store, new: Unprinted) -> frozenset[int]:
    """Return the parts of the task's own files, which everyone may start from."""
    version = await store.boards.version(new.task_version)
    files = {} if version is None else dict(version.definition.files)
    text = "\n".join(files.values())
    return await asyncio.to_thread(prints, text)


async def _report(store: Store, new: Unprinted, other: Unprinted) -> None:
    first, second = sorted((new, other), key=lambda each: each.submission)
    people = [await store.people.get(each.person) for each in (first, second)]
    names = [f"#{each.submission} by {'?' if who is None else who.name}"
             for each, who in zip((first, second), people, strict=True)]  # fmt: skip
    board = await store.boards.get(new.board)
    where = "" if board is None else f" on {board.name}"
    pair = " ".join(str(each) for each in sorted((new.person, other.person)))
    words = "have near-identical sources; this is no judgement"
    await store.alerts.report_once(
        f"similar {new.board} {pair}", f"{names[0]} and {names[1]}{where} {words}"
    )

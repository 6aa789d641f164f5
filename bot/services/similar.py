"""Finds near-identical sources of two people, even if comments, layout and names differ.

A part of a source is a few consecutive tokens. A fingerprint is the hashes of some of its parts.
"""

import asyncio
import hashlib
import re
from collections.abc import Iterator, Sequence

from bot.domain.alerts import RankedSource
from bot.ports import Store

NEAR = 0.9
"""Two sources whose fingerprints are this similar are near-identical."""
LEAST_PARTS = 24
"""A source with fewer parts, not counting the task's, is not reported: chance may make it alike."""
MOST_PARTS = 4000
_LENGTH = 12
"""How many tokens one part has."""
_SAMPLE = 4
"""About one part in this many is in a fingerprint. Its hash decides, so equal parts are treated
equally in all sources."""
_COMMENT = re.compile(
    r'"""[\s\S]*?(?:"""|\Z)|'
    r"""(?P<text>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)|"""
    r"/\*[\s\S]*?(?:\*/|\Z)|#(?!include\b|define\b|pragma\b)[^\n]*|//[^\n]*"
)
"""A comment, or a text, in which there is none. Without its end, the last one ends with the source:
otherwise the rest of it would be read once for each begin of a comment."""
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|[^\s\w]")
_WithFingerprint = tuple[RankedSource, frozenset[int]]


def fingerprint(source: str) -> frozenset[int]:
    """Return hashes of parts of the source; parts that differ only in names have equal hashes."""
    tokens = _TOKEN.findall(_COMMENT.sub(lambda found: found["text"] or " ", source))
    hashes = {_hash(part) for part in _parts(tokens)}
    return frozenset(sorted(each for each in hashes if each % _SAMPLE == 0)[:MOST_PARTS])


def _parts(tokens: list[str]) -> Iterator[str]:
    """Yield each part; its first name is replaced by `$0`, the next other one by `$1`, etc."""
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


def similarity(first: frozenset[int], second: frozenset[int]) -> float:
    """Return how many hashes two fingerprints have in common, as a share of all their hashes."""
    either = first | second
    return len(first & second) / len(either) if either else 0.0


async def compare_sources(store: Store) -> None:
    """Compare each new ranked source with everyone else's newest one on its board."""
    for new in await store.alerts.without_fingerprint():
        own = await asyncio.to_thread(fingerprint, new.source)
        given = await _given(store, new)
        others = await store.alerts.fingerprints_of_others(new.board, new.person, len(own))
        for other in await asyncio.to_thread(_near, own - given, given, others):
            await _report(store, new, other)
        await store.alerts.save_fingerprint(new, own)


def _near(
    own: frozenset[int], given: frozenset[int], others: Sequence[_WithFingerprint]
) -> list[RankedSource]:
    """Return the other sources that are near-identical; the `given` parts do not count."""
    found = [(other, theirs - given) for other, theirs in others]
    return [
        other
        for other, theirs in found
        if min(len(own), len(theirs)) >= LEAST_PARTS and similarity(own, theirs) >= NEAR
    ]


async def _given(store: Store, new: RankedSource) -> frozenset[int]:
    """Return the fingerprint of the task's own files, which everyone may start from."""
    version = await store.boards.version(new.task_version)
    files = {} if version is None else dict(version.definition.files)
    text = "\n".join(files.values())
    return await asyncio.to_thread(fingerprint, text)


async def _report(store: Store, new: RankedSource, other: RankedSource) -> None:
    first, second = sorted((new, other), key=lambda each: each.submission)
    people = [await store.people.get(each.person) for each in (first, second)]
    names = [f"#{each.submission} by {'?' if who is None else who.distinct_name}"
             for each, who in zip((first, second), people, strict=True)]  # fmt: skip
    board = await store.boards.get(new.board)
    where = "" if board is None else f" on {board.name}"
    pair = " ".join(str(each) for each in sorted((new.person, other.person)))
    words = "have near-identical sources; that does not mean that a rule was broken"
    await store.alerts.report_once(
        f"similar {new.board} {pair}", f"{names[0]} and {names[1]}{where} {words}"
    )

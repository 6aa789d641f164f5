"""People's chosen names: which of them look alike, and how they are told apart.

Anybody may choose any name at Discord, also one that looks like somebody else's. The handle that a
name is then shown with is unique and not chosen freely: a user name, or the account's identity.
"""

import pkgutil
import unicodedata
from functools import cache, lru_cache

_DATA = "lookalikes.txt"
_INVISIBLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Unicode's Default_Ignorable_Code_Point: characters that are not drawn."""


@cache
def _prototypes() -> dict[int, str]:
    """Return each character's prototype; read once, like a module."""
    data = pkgutil.get_data(__package__, _DATA)
    if data is None:
        raise FileNotFoundError(_DATA)
    found: dict[int, str] = {}
    for row in data.decode().splitlines():
        prototype, _, characters = row.partition(":")
        if not row.startswith("#"):
            text = "".join(chr(int(each, 16)) for each in prototype.split())
            found.update({int(each, 16): text for each in characters.split()})
    for first, last in _INVISIBLE:
        found.update(dict.fromkeys(range(first, last + 1), ""))
    return found


@lru_cache(maxsize=4096)
def skeleton(name: str) -> str:
    """Return the same text for names that look alike: the skeleton of UTS 39.

    Differences of case and of spaces do not count either: `Ada` and `ada` look alike.
    """
    drawn = unicodedata.normalize("NFD", name).translate(_prototypes()).casefold()
    # Unicode's list leaves out what this normalization already replaces, such as fullwidth letters.
    drawn = unicodedata.normalize("NFKD", drawn).casefold().translate(_prototypes())
    return " ".join(unicodedata.normalize("NFD", drawn).split())


def is_ambiguous(name: str) -> bool:
    """Return whether a name could itself be taken for one with a handle, such as `Ada (@ada)`."""
    return "@" in skeleton(name)


def with_handle(name: str, identity: str, handle: str) -> str:
    """Return the name with what tells it apart: `Ada (@ada)`; without a handle, the identity."""
    return f"{name} (@{handle or identity})"


def split_handle(name: str) -> tuple[str, str]:
    """Return the chosen name, and the handle such as `(@ada)`, or an empty string.

    A name never ends in a handle that its person only chose: see `is_ambiguous`.
    """
    chosen, mark, handle = name.rpartition(" (@")
    return (chosen, f"(@{handle}") if mark else (name, "")


def cut_name(name: str, most: int) -> str:
    """Return a name of at most `most` characters, and its handle whole."""
    chosen, handle = split_handle(name)
    short = chosen if len(chosen) <= most else f"{chosen[: most - 1]}…"
    return f"{short} {handle}" if handle else short

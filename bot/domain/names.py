"""People's names: which of them look alike, and how they are told apart.

A name can be chosen freely, even one that looks like another person's. Both are then shown with a
handle, which is unique: the user name, or the account's identity if there is none.
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
    """Return the text that stands for each character in a skeleton; empty for invisible ones."""
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
    """Return a text that is equal for names that look alike: the skeleton of UTS 39.

    Case and spaces are ignored too: `Ada` and `ada` look alike.
    """
    drawn = unicodedata.normalize("NFD", name).translate(_prototypes()).casefold()
    # Unicode's list leaves out what this normalization already replaces, such as fullwidth letters.
    drawn = unicodedata.normalize("NFKD", drawn).casefold().translate(_prototypes())
    return " ".join(unicodedata.normalize("NFD", drawn).split())


def is_ambiguous(name: str) -> bool:
    """Return whether a name could be mistaken for one with a handle, such as `Ada (@ada)`."""
    return "@" in skeleton(name)


def with_handle(name: str, identity: str, handle: str) -> str:
    """Return the name with the handle, such as `Ada (@ada)`; with the identity if it is empty."""
    return f"{name} (@{handle or identity})"


def split_handle(name: str) -> tuple[str, str]:
    """Split a name as it is shown into the name itself and the handle, such as `(@ada)`, or "".

    The handle is genuine: an ambiguous name (see `is_ambiguous`) is always shown with one.
    """
    chosen, mark, handle = name.rpartition(" (@")
    return (chosen, f"(@{handle}") if mark else (name, "")


def cut_name(name: str, most: int) -> str:
    """Cut a name to `most` characters, not counting its handle, which stays whole."""
    chosen, handle = split_handle(name)
    short = chosen if len(chosen) <= most else f"{chosen[: most - 1]}…"
    return f"{short} {handle}" if handle else short

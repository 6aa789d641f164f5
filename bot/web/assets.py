"""Style sheets, scripts and pictures of the pages: read once, addressed by what is in them."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

PREFIX = "/static"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """A file with its address, which another content would change: it may be kept for ever."""

    name: str
    media_type: str
    data: bytes
    zipped: bytes
    digest: str

    @property
    def url(self) -> str:
        """Where the door has it."""
        return f"{PREFIX}/{self.digest}/{self.name}"


@cache
def assets() -> Mapping[str, Asset]:
    """Every file of `static/`, by name."""
    folder = files("bot.web").joinpath("static")
    found = (_asset(each.name, each.read_bytes()) for each in folder.iterdir() if each.is_file())
    return {each.name: each for each in found}


def asset_url(name: str) -> str:
    """The address of a file of `static/`; KeyError when there is none of this name."""
    return assets()[name].url


def _asset(name: str, data: bytes) -> Asset:
    digest = hashlib.sha256(data).hexdigest()[:_DIGITS]
    kind = _TYPES[name.rpartition(".")[2]]
    return Asset(name, kind, data, gzip.compress(data, mtime=0), digest)

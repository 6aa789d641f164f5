"""Uploads: a file as a person or the bot sends it, and as the CDN serves it."""

import mimetypes
import re
import secrets
from dataclasses import dataclass

from tests.doubles.discord.wire import Json

DAY_S = 86400


@dataclass(eq=False)
class File:
    """A name and bytes; once stored it has an id and a signed URL that expires."""

    filename: str
    data: bytes = b""
    description: str | None = None
    id: int = 0
    url: str = ""
    expires: float = 0.0

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def content_type(self) -> str:
        return mimetypes.guess_type(self.filename)[0] or "application/octet-stream"

    def to_api(self) -> Json:
        data: Json = {
            "id": str(self.id),
            "filename": self.filename,
            "size": len(self.data),
            "url": self.url,
            "proxy_url": self.url,
            "content_type": self.content_type,
        }
        return data | ({"description": self.description} if self.description else {})


class Cdn:
    """Every stored file, by the path of its URL."""

    def __init__(self) -> None:
        self.base = ""
        self._files: dict[str, File] = {}

    def store(self, file: File, folder: str, number: int, now: float) -> File:
        """Return the file as it is served: Discord cleans its name and signs its URL for a day."""
        name = re.sub(r"[^\w.\-]+", "_", file.filename)
        path = f"{folder}/{number}/{name}"
        expires = now + DAY_S
        query = f"ex={int(expires):x}&is={int(now):x}&hm={secrets.token_hex(8)}&"
        url = f"{self.base}/{path}?{query}"
        stored = File(name, file.data, file.description, number, url, expires)
        self._files[path] = stored
        return stored

    def remove(self, name: str) -> None:
        """Delete every file of that name; its URL then answers 404."""
        self._files = {path: file for path, file in self._files.items() if file.filename != name}

    def find(self, path: str, *, signed: bool, now: float) -> File | None:
        file = self._files.get(path)
        return file if file and signed and file.expires > now else None

"""Reading the body of a request: JSON, or JSON with files."""

import json
import re

from aiohttp import BodyPartReader, web

from tests.doubles.discord.errors import ApiError
from tests.doubles.discord.model.files import File

CHUNK = 1 << 16


async def read_body(request: web.Request, file_size: int) -> tuple[object, list[File]]:
    """Return the JSON and the files, ordered by number; a file is cut soon after `file_size`."""
    if request.content_type == "multipart/form-data":
        return await _read_parts(request, file_size)
    raw = await request.read() if request.can_read_body else b""
    return (_parse(raw) if raw else None), []


def _parse(raw: bytes) -> object:
    try:
        parsed: object = json.loads(raw)
    except ValueError:
        raise ApiError(400, 50109, "The request body contains invalid JSON.") from None
    return parsed


async def _read_parts(request: web.Request, file_size: int) -> tuple[object, list[File]]:
    body: object = None
    files: list[tuple[int, File]] = []
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader):
            continue
        data = await _read_part(part, file_size)
        name = part.name or ""
        if name == "payload_json":
            body = _parse(data)
        else:
            number = int((re.findall(r"\d+", name) or ["0"])[0])
            files.append((number, File(part.filename or "unknown", data)))
    files.sort(key=lambda numbered: numbered[0])
    return body, [file for _, file in files]


async def _read_part(part: BodyPartReader, file_size: int) -> bytes:
    data = bytearray()
    while chunk := await part.read_chunk(CHUNK):
        if len(data) <= file_size:
            data += chunk
    return bytes(data)

"""Tests of fetching a whole board over a line that may break."""

from collections.abc import AsyncIterator

import httpx
import pytest
from typing_extensions import override

from bot.domain.api.export import ExportEnd, ExportPiece, ExportRows
from bot.domain.errors import SetupError, UserError
from bot.remote import http
from bot.remote.client.client import export_pieces
from bot.remote.client.requests import open_client
from bot.remote.http import Server

HEAD = b'{"kind":"board","board":"softmax","submissions":1}\n'
ROWS = b'{"kind":"rows","table":"results","rows":[{"gpu":"CPU","time_ns":1.0,"ranked":true}]}\n'
END = b'{"kind":"end"}\n'


class Pieces(httpx.AsyncByteStream):
    """Bytes that come one after the other, and then perhaps a broken line."""

    def __init__(self, sent: tuple[bytes | Exception, ...]) -> None:
        self._sent = sent

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        for each in self._sent:
            if isinstance(each, Exception):
                raise each
            yield each


async def fetched(*sent: bytes | Exception) -> list[ExportPiece]:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.raw_path == b"/api/v1/leaderboards/soft%2Fmax/export"
        return httpx.Response(200, stream=Pieces(sent))

    server = Server("https://podium.test", "secret")
    async with open_client(server, httpx.MockTransport(answer)) as requests:
        return [each async for each in export_pieces(requests, "leaderboards", "soft/max")]


async def test_pieces_are_lines_wherever_the_bytes_are_cut() -> None:
    whole = HEAD + ROWS + END
    _, rows, end = await fetched(whole[:20], whole[20:90], whole[90:])
    assert isinstance(rows, ExportRows)
    assert rows.rows == ({"gpu": "CPU", "time_ns": 1.0, "ranked": True},)
    assert isinstance(end, ExportEnd)


@pytest.mark.parametrize("sent", [(), (HEAD, ROWS), (HEAD, END[:-1])])
async def test_an_export_without_its_end_has_broken_off(sent: tuple[bytes, ...]) -> None:
    with pytest.raises(SetupError, match="the export is incomplete"):
        await fetched(*sent)


async def test_a_line_that_breaks_or_never_ends_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="reset; check the address"):
        await fetched(HEAD, httpx.ReadError("reset"))
    monkeypatch.setattr(http, "RESPONSE_MAX", 100)
    with pytest.raises(SetupError, match="longer than 100 bytes"):
        await fetched(HEAD, bytes(101))


@pytest.mark.parametrize(
    "line", [b"<html>\n", b'{"kind":"source","sha256":"../../etc/passwd","text":"x"}\n']
)
async def test_what_is_no_piece_is_another_version(line: bytes) -> None:
    with pytest.raises(UserError, match="does not understand"):
        await fetched(HEAD, line)

"""Fetches everything of a board from a Podium elsewhere, piece by piece."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from urllib.parse import quote

from bot.domain.api.exports import PIECE, ExportEnd, ExportPiece
from bot.domain.errors import SetupError
from bot.remote.client.requests import Requests

PIECE_S = 60.0
"""What the server may take for the next piece."""


async def exported(requests: Requests, board: str) -> AsyncGenerator[ExportPiece, None]:
    """The pieces of an export up to its end; SetupError when it breaks off before."""
    path = f"leaderboards/{quote(board, safe='')}/export"
    async with aclosing(requests.lines(path, within_s=PIECE_S)) as lines:
        async for line in lines:
            with requests.understood():
                piece = PIECE.validate_json(line)
            yield piece
            if isinstance(piece, ExportEnd):
                return
    raise SetupError(f"{requests.url}: the export broke off; give the command again")

"""The gateway: accepts websockets, and lets tests close and break them."""

from aiohttp import web

from tests.doubles.discord.gateway.connection import (
    INVALID,
    RECONNECT,
    Admission,
    ClosedError,
    Connection,
)
from tests.doubles.discord.gateway.sessions import Session
from tests.doubles.discord.gateway.socket import Socket
from tests.doubles.discord.model.world import World


class Gateway:
    """Every websocket of the bot."""

    def __init__(self, world: World, admission: Admission) -> None:
        self._world, self.admission = world, admission
        self.refuses = False
        """Whether new connections get a 503."""
        self.closes: list[int] = []
        """Codes with which the server closed a connection because the bot broke a rule."""

    @property
    def identifies(self) -> int:
        return self.admission.identifies

    @property
    def connected(self) -> list[Session]:
        return self._world.sessions.connected

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.refuses:
            return web.Response(status=503)
        websocket = web.WebSocketResponse(compress=False, heartbeat=None, autoping=True)
        await websocket.prepare(request)
        socket = Socket(websocket, request)
        connection = Connection(self.admission, socket)
        try:
            await connection.serve()
        except ClosedError as broken:
            self.closes.append(broken.code)
            socket.close(broken.code)
        finally:
            await socket.finish()
            connection.leave()
        return websocket

    def close(self, code: int = 4000) -> None:
        """Close every websocket.

        After 4000 a client may resume, after 4009 it needs a new session; 4004 and 4014 are fatal.
        """
        for session in self.connected:
            if session.socket:
                session.socket.close(code)

    def drop(self) -> None:
        """Cut the connections without a close frame."""
        for session in self.connected:
            if session.socket:
                session.socket.cut()

    def reconnect(self) -> None:
        """Ask the client to reconnect and resume."""
        for session in self.connected:
            if session.socket:
                session.socket.send(RECONNECT)

    def invalidate(self, *, resumable: bool = False) -> None:
        """Tell the client that its session is over."""
        for session in self.connected:
            if session.socket:
                session.socket.send(INVALID, data=resumable)
            if not resumable:
                del self._world.sessions[session.id]

    def forget(self) -> None:
        """Lose every session: a resume is answered with "invalid session"."""
        self._world.sessions.clear()

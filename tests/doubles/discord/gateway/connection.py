"""One client at the gateway: what it may send, in which order, and what it receives."""

import asyncio
import collections
import json

from tests.doubles.discord.gateway.sessions import Session
from tests.doubles.discord.gateway.socket import Socket
from tests.doubles.discord.kinds import PRIVILEGED, Intent
from tests.doubles.discord.model.world import World
from tests.doubles.discord.wire import Json

HEARTBEAT, IDENTIFY, PRESENCE, VOICE, RESUME, RECONNECT, MEMBERS, INVALID, HELLO, ACK = (
    1, 2, 3, 4, 6, 7, 8, 9, 10, 11,
)  # fmt: skip
SEND_WINDOW_S = 60.0
CHUNK = 1000
_ENDS_THE_SESSION = (1000, 1001, 4004, 4009, 4014)


class ClosedError(Exception):
    """The client broke a rule: its connection is closed with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class Admission:
    """Who may identify, and where a session is resumed."""

    def __init__(self, world: World, token: str, *, privileged_intents: bool) -> None:
        self.world, self.token, self.privileged_intents = world, token, privileged_intents
        self.url = ""
        self.identifies = 0

    def check(self, data: Json) -> None:
        if data.get("token") != self.token:
            raise ClosedError(4004)
        if not isinstance(data.get("intents"), int):
            raise ClosedError(4013)
        if data["intents"] & PRIVILEGED and not self.privileged_intents:
            raise ClosedError(4014)

    @property
    def application_flags(self) -> int:
        """The flags by which an application shows its privileged intents."""
        return (1 << 13 | 1 << 15 | 1 << 19) if self.privileged_intents else 0


class Connection:
    """From HELLO to the end of one websocket."""

    def __init__(self, admission: Admission, socket: Socket) -> None:
        self._admission, self._world, self._socket = admission, admission.world, socket
        self._session: Session | None = None
        self._sent: collections.deque[float] = collections.deque()
        self._last_beat = self._now()

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def serve(self) -> None:
        """Serve until the client is gone; ClosedError if it breaks a rule."""
        interval = self._world.limits.heartbeat_interval
        self._socket.send(HELLO, {"heartbeat_interval": int(interval * 1000), "_trace": []})
        try:
            while (payload := await self._receive(interval)) is not None:
                self._count()
                self._take(*self._parsed(payload))
        except TimeoutError:
            raise ClosedError(4009) from None

    async def _receive(self, interval: float) -> str | bytes | None:
        left = self._last_beat + interval * 1.5 + 1 - self._now()
        return await self._socket.receive(max(left, 0.01))

    def _count(self) -> None:
        now = self._now()
        self._sent.append(now)
        while self._sent[0] < now - SEND_WINDOW_S:
            self._sent.popleft()
        if len(self._sent) > self._world.limits.gateway_sends:
            raise ClosedError(4008)

    @staticmethod
    def _parsed(raw: str | bytes) -> tuple[int, Json]:
        try:
            payload = json.loads(raw)
            op, data = int(payload["op"]), payload.get("d")
        except (ValueError, KeyError, TypeError):
            raise ClosedError(4002) from None
        return op, data if isinstance(data, dict) else {}

    def _take(self, op: int, data: Json) -> None:
        if op == HEARTBEAT:
            self._last_beat = self._now()
            self._socket.send(ACK)
        elif op == IDENTIFY:
            self._identify(data)
        elif op == RESUME:
            self._resume(data)
        elif self._session is None:
            raise ClosedError(4003)
        elif op == MEMBERS:
            self._send_members(self._session, data)
        elif op not in (PRESENCE, VOICE):
            raise ClosedError(4001)

    def _identify(self, data: Json) -> None:
        if self._session:
            raise ClosedError(4005)
        self._admission.check(data)
        self._admission.identifies += 1
        number, count = data.get("shard") or (0, 1)
        session = Session(Intent(data["intents"]), (number, count), self._socket)
        self._session = self._world.sessions[session.id] = session
        bot = self._world.bot.id
        joined = [guild for guild in self._world.guilds.values() if bot in guild.members]
        guilds = [guild for guild in joined if session.receives(guild.id)]
        waiting = [{"id": str(guild.id), "unavailable": True} for guild in guilds]
        session.push("READY", self._ready(session) | {"guilds": waiting})
        if session.intents & Intent.GUILDS:
            for guild in guilds:
                session.push("GUILD_CREATE", guild.to_gateway())
        self._world.changed()

    def _ready(self, session: Session) -> Json:
        bot, flags = self._world.bot, self._admission.application_flags
        return {
            "v": 10,
            "user": bot.to_api() | {"verified": True, "mfa_enabled": False, "email": None},
            "session_id": session.id,
            "resume_gateway_url": self._admission.url,
            "shard": list(session.shard),
            "session_type": "normal",
            "application": {"id": str(bot.id), "flags": flags},
            "user_settings": {},
            "private_channels": [],
        }

    def _resume(self, data: Json) -> None:
        if data.get("token") != self._admission.token:
            raise ClosedError(4004)
        session = self._world.sessions.get(data.get("session_id", ""))
        gone = self._world.clock.elapsed() - session.lost if session else 0.0
        if session is None or (not session.socket and gone > self._world.limits.resume_window):
            self._socket.send(INVALID, data=False)
            return
        if data.get("seq", 0) > session.sequence:
            raise ClosedError(4007)
        self._session, session.socket = session, self._socket
        session.resumes += 1
        session.replay(data["seq"])
        session.push("RESUMED", {"_trace": []})
        self._world.changed()

    def _send_members(self, session: Session, data: Json) -> None:
        guild = self._world.guilds.get(int(data["guild_id"]))
        if not guild:
            return
        wanted = data.get("user_ids")
        wanted = [wanted] if isinstance(wanted, str | int) else wanted
        members = [
            member.to_api()
            for member in guild.members.values()
            if (wanted is None or str(member.user.id) in map(str, wanted))
            and member.user.name.startswith(data.get("query") or "")
        ][: data.get("limit") or None]
        chunks = [members[i : i + CHUNK] for i in range(0, len(members), CHUNK)] or [[]]
        for i, chunk in enumerate(chunks):
            answer: Json = {"guild_id": str(guild.id), "members": chunk, "not_found": []}
            answer |= {"chunk_index": i, "chunk_count": len(chunks), "nonce": data.get("nonce")}
            session.push("GUILD_MEMBERS_CHUNK", answer)

    def leave(self) -> None:
        """Keep the session so that it can be resumed, unless its client ended it."""
        session = self._session
        if session is None or session.socket is not self._socket:
            return
        session.socket, session.lost = None, self._world.clock.elapsed()
        if self._socket.client_left or self._socket.code in _ENDS_THE_SESSION:
            self._world.sessions.pop(session.id, None)
        self._world.changed()

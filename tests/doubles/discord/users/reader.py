"""What a person sees, and waiting until they see it."""

from collections.abc import Callable

from tests.doubles.discord.errors import NotSeenError
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import User
from tests.doubles.discord.model.world import World
from tests.doubles.discord.users.offers import offered

WITHIN_S = 10.0
Wanted = str | Callable[[Message], object]


class Reader(User):
    """A person who looks at one channel in a client."""

    def __init__(self, world: World, number: int, name: str) -> None:
        super().__init__(number, name)
        self.world = world
        self._place: Channel | None = None

    @property
    def place(self) -> Channel:
        """The channel they look at: until `goes_to`, their direct messages."""
        return self._place or self.dm

    def goes_to(self, channel: Channel) -> None:
        self._place = channel

    @property
    def dm(self) -> Channel:
        """Their direct messages with the bot."""
        return self.world.direct(self)

    @property
    def dms(self) -> list[Message]:
        return self.messages(self.dm)

    def can_see(self, place: Channel | Message) -> bool:
        if isinstance(place, Channel):
            return self.world.sees(self, place)
        return place in self.messages(place.channel)

    def channels(self) -> list[Channel]:
        everywhere = list(self.world.channels.values())
        return [channel for channel in everywhere if self.can_see(channel)]

    def messages(self, channel: Channel | None = None) -> list[Message]:
        """Return the messages that they see in a channel, including their ephemeral ones."""
        channel = channel or self.place
        if not self.can_see(channel):
            return []
        everything = channel.all_messages.values()
        return [message for message in everything if message.ephemeral_to in (None, self.id)]

    def threads(self, channel: Channel | None = None) -> list[Channel]:
        return [thread for thread in (channel or self.place).threads if self.can_see(thread)]

    def commands(self, channel: Channel | None = None) -> list[str]:
        """Return the names of the commands that are offered to them in a channel."""
        return [command["name"] for command in offered(self, channel or self.place)]

    def pinged_by(self, message: Message) -> bool:
        guild = message.channel.guild
        member = guild.members.get(self.id) if guild else None
        names = {self.id, "everyone", *(member.roles if member else ())}
        return bool(message.pings & names)

    async def sees(
        self,
        wanted: Wanted,
        where: Channel | None = None,
        *,
        after: Message | None = None,
        within: float = WITHIN_S,
    ) -> Message:
        """Wait for a message that has this text or satisfies this function; return the newest.

        Search `where` and its threads, or every channel, for messages newer than `after`.
        """
        begin = after.id if after else 0

        def look() -> Message | None:
            found = [message for message in self._in_sight(where) if _is(message, wanted)]
            found = [message for message in found if message.id > begin]
            return max(found, key=lambda message: message.id, default=None)

        try:
            message = await self.world.wait_for(look, within)
        except TimeoutError:
            raise NotSeenError(self._complaint(wanted, where, within)) from None
        assert message is not None
        return message

    async def sees_thread(
        self, name: str, channel: Channel | None = None, *, within: float = WITHIN_S
    ) -> Channel:
        """Wait for a thread whose name contains this text, and return it."""

        def look() -> Channel | None:
            threads = channel.threads if channel else self.channels()
            found = [thread for thread in threads if thread.is_thread and name in thread.name]
            return next((thread for thread in found if self.can_see(thread)), None)

        try:
            thread = await self.world.wait_for(look, within)
        except TimeoutError:
            raise NotSeenError(f"{self.name} saw no thread {name!r} in {within} s") from None
        assert thread is not None
        return thread

    def _in_sight(self, where: Channel | None) -> list[Message]:
        places = [where, *where.threads] if where else self.channels()
        return [message for place in places for message in self.messages(place)]

    def _complaint(self, wanted: Wanted, where: Channel | None, within: float) -> str:
        sight = [f"#{x.channel.name}: {x.text!r}" for x in self._in_sight(where)[-10:]]
        return "\n  ".join([f"{self.name} did not see {wanted!r} in {within} s, but:", *sight])


def _is(message: Message, wanted: Wanted) -> bool:
    return wanted in message.text if isinstance(wanted, str) else bool(wanted(message))

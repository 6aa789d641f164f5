"""An interaction, with the bot's answers to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import Callback, CommandKind, Intent, InteractionKind
from tests.doubles.discord.wire import Json

if TYPE_CHECKING:
    from tests.doubles.discord.model.channels import Channel
    from tests.doubles.discord.model.messages import Message
    from tests.doubles.discord.model.people import User

FINAL_WITHIN_S = 30.0


@dataclass(eq=False, repr=False)
class Interaction:
    """A command, a click, a choice in a menu, a filled-in modal, or an autocompletion."""

    id: int
    token: str
    kind: InteractionKind
    user: User
    channel: Channel
    created: float
    name: str = ""
    command: CommandKind = CommandKind.SLASH
    source: Message | None = None
    """The message whose component was used."""
    trigger: Interaction | None = None
    """The interaction that opened the modal which was filled in."""
    reply: Message | None = None
    """The response message; for an update, the message that was updated."""
    answer: Callback | None = None
    answered: float | None = None
    form: Json | None = None
    """The modal that the bot opened."""
    choices: list[Json] = field(default_factory=list)
    followups: list[Message] = field(default_factory=list)
    event: Json = field(default_factory=dict)
    """The gateway event that was sent to the bot."""

    @property
    def message(self) -> Message:
        assert self.reply is not None, f"{self.name}: no message was sent"
        return self.reply

    @property
    def latency(self) -> float:
        """Seconds until the first answer."""
        assert self.answered is not None, f"{self.name}: not answered"
        return self.answered - self.created

    async def final(self, within: float = FINAL_WITHIN_S) -> Message:
        """Return the response once it no longer shows "thinking..."."""
        world = self.channel.world
        await world.wait_for(lambda: self.reply and not self.reply.loading, within)
        return self.message

    async def followup(self, number: int = 0, within: float = FINAL_WITHIN_S) -> Message:
        """Return the followup of this number, counted from 0, once it is sent."""
        await self.channel.world.wait_for(lambda: len(self.followups) > number, within)
        return self.followups[number]

    def repeat(self) -> None:
        """Send its event to every session again, as a gateway may after a lost connection."""
        self.channel.world.dispatch("INTERACTION_CREATE", self.event, intent=Intent(0))

    def owners(self) -> Json:
        return {"0": str(self.channel.guild.id if self.channel.guild else 0)}

    def metadata(self) -> Json:
        data: Json = {
            "id": str(self.id),
            "type": self.kind,
            "user": self.user.to_api(),
            "authorizing_integration_owners": self.owners(),
        }
        if self.kind is InteractionKind.COMMAND:
            data |= {"name": self.name, "command_type": self.command}
        if self.kind is InteractionKind.COMPONENT and self.source:
            data["interacted_message_id"] = str(self.source.id)
        if self.trigger:
            data["triggering_interaction_metadata"] = self.trigger.metadata()
        return data

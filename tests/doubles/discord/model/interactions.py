"""An interaction as the person sees it who began it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.doubles.discord.kinds import Callback, CommandKind, Intent, InteractionKind
from tests.doubles.discord.wire import Json

if TYPE_CHECKING:
    from tests.doubles.discord.model.channels import Channel
    from tests.doubles.discord.model.messages import Message
    from tests.doubles.discord.model.people import User

FINAL_WITHIN_S = 10.0


@dataclass(eq=False, repr=False)
class Interaction:
    """A command, a click, a choice, a filled form or a request for choices."""

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
    """What opened the modal that was filled."""
    reply: Message | None = None
    """The response; of an update, the message that was updated."""
    answer: Callback | None = None
    answered: float | None = None
    form: Json | None = None
    """The modal that the bot opened."""
    choices: list[Json] = field(default_factory=list)
    followups: list[Message] = field(default_factory=list)
    told: Json = field(default_factory=dict)
    """The event by which the bot heard of it."""

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
        """The response once it no longer says "thinking..."."""
        world = self.channel.world
        await world.wait_for(lambda: self.reply and not self.reply.loading, within)
        return self.message

    async def followup(self, number: int = 0, within: float = FINAL_WITHIN_S) -> Message:
        """The message of this number that followed the response."""
        await self.channel.world.wait_for(lambda: len(self.followups) > number, within)
        return self.followups[number]

    def repeat(self) -> None:
        """Tell every session of it once more, as a gateway may after a lost connection."""
        self.channel.world.dispatch("INTERACTION_CREATE", self.told, intent=Intent(0))

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

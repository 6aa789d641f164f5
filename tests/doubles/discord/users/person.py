"""What a person does in a client, which refuses what a real one would not let them do."""

import asyncio
from collections.abc import Iterable, Mapping

from tests.doubles.discord.errors import DriverError
from tests.doubles.discord.kinds import LINK, CommandKind, ComponentKind, InteractionKind
from tests.doubles.discord.model.channels import Channel
from tests.doubles.discord.model.components import Component, walk
from tests.doubles.discord.model.files import File
from tests.doubles.discord.model.interactions import Interaction
from tests.doubles.discord.model.messages import Message
from tests.doubles.discord.model.people import User
from tests.doubles.discord.model.posting import Draft, post, react
from tests.doubles.discord.permissions import Permission
from tests.doubles.discord.users.filling import Filling, Value
from tests.doubles.discord.users.forms import Field, fill
from tests.doubles.discord.users.offers import find, invocation, sent
from tests.doubles.discord.users.reader import Reader
from tests.doubles.discord.users.sending import Action, send_interaction, wait_for_answer
from tests.doubles.discord.wire import Json

REACTION_S = 0.05
"""How long a person takes to click.

A library knows the components of its own message only after Discord's response to it.
"""


class Person(Reader):
    """A user whom tests drive; each action waits for the bot's first answer."""

    async def send(
        self,
        content: str = "",
        *files: File,
        channel: Channel | None = None,
        reply_to: Message | None = None,
    ) -> Message:
        """Write a message."""
        channel = channel or self.place
        inside, plain = Permission.SEND_MESSAGES_IN_THREADS, Permission.SEND_MESSAGES
        needed = Permission.VIEW_CHANNEL | (inside if channel.is_thread else plain)
        if not self.world.can(self, channel, needed):
            raise DriverError(f"{self.name} may not write in #{channel.name}")
        draft = Draft({"content": content}, list(files), reference=reply_to)
        message = post(self, channel, draft)
        await asyncio.sleep(0)
        return message

    def react(self, message: Message, emoji: str) -> None:
        react(self, message, emoji)

    async def slash(
        self, command: str, channel: Channel | None = None, /, **options: Value
    ) -> Interaction:
        """Run a command such as "leaderboard submit ranked", by default in `self.place`."""
        return await wait_for_answer(self.begin_slash(command, channel, **options))

    def begin_slash(
        self, command: str, channel: Channel | None = None, /, **options: Value
    ) -> Interaction:
        """Run a command without waiting for its answer."""
        channel = channel or self.place
        invoked, filling = invocation(command, self, channel), Filling(self, channel)
        for option in invoked.options:
            if option["name"] in options:
                invoked.filled.append(filling.option(option, options.pop(option["name"])))
        given = {option["name"] for option in invoked.filled}
        wanted = {option["name"] for option in invoked.options if option.get("required")}
        if wanted - given or options:
            missing, unknown = sorted(wanted - given), sorted(options)
            message = f"/{command}: required options missing {missing}, unknown options {unknown}"
            raise DriverError(message)
        data = invoked.data | ({"resolved": filling.resolved} if filling.resolved else {})
        return send_interaction(Action(InteractionKind.COMMAND, self, channel, data, command))

    async def autocomplete(
        self, command: str, option: str, typed: str | float = "", /, **others: Value
    ) -> list[Json]:
        """Return the choices ("name", "value") that are offered while typing into an option."""
        channel = self.place
        invoked, filling = invocation(command, self, channel), Filling(self, channel)
        by_name = {each["name"]: each for each in invoked.options}
        if not by_name.get(option, {}).get("autocomplete"):
            raise DriverError(f"/{command} {option} has no autocomplete")
        for name, value in others.items():
            invoked.filled.append(filling.option(by_name[name], value))
        focused = {"type": by_name[option]["type"], "name": option, "value": typed, "focused": True}
        invoked.filled.append(focused)
        action = Action(InteractionKind.AUTOCOMPLETE, self, channel, invoked.data, command)
        return (await wait_for_answer(send_interaction(action))).choices

    async def message_command(self, name: str, message: Message) -> Interaction:
        """Use a command of a message's menu."""
        resolved = {"messages": {str(message.id): message.to_api()}}
        if not self.can_see(message):
            raise DriverError(f"{self.name} does not see that message")
        target, kind = (message.id, resolved), CommandKind.MESSAGE_MENU
        return await self._menu_command(name, kind, message.channel, target)

    async def user_command(self, name: str, user: User) -> Interaction:
        """Use a command of a user's menu."""
        filling = Filling(self, self.place)
        filling.name_user(user)
        target, kind = (user.id, filling.resolved), CommandKind.USER_MENU
        return await self._menu_command(name, kind, self.place, target)

    async def _menu_command(
        self, name: str, kind: CommandKind, channel: Channel, target: tuple[int, dict[str, Json]]
    ) -> Interaction:
        number, resolved = target
        data = sent(find(name, kind, self, channel))
        data |= {"target_id": str(number), "resolved": resolved}
        action = Action(InteractionKind.COMMAND, self, channel, data, name, kind)
        return await wait_for_answer(send_interaction(action))

    async def click(
        self,
        target: Message | Component,
        label: str | None = None,
        *,
        custom_id: str | None = None,
    ) -> Interaction:
        """Press a button."""
        button = target.button(label, custom_id) if isinstance(target, Message) else target
        if button.style == LINK:
            raise DriverError("link buttons open a URL")
        return await self._use(button, {"component_type": ComponentKind.BUTTON})

    async def select(
        self,
        target: Message | Component,
        values: Iterable[Value],
        *,
        placeholder: str | None = None,
        custom_id: str | None = None,
    ) -> Interaction:
        """Choose options of a menu by value or label; users, roles and channels as objects."""
        menu = target if isinstance(target, Component) else target.select(placeholder, custom_id)
        filling = Filling(self, menu.message.channel)
        data: Json = {"component_type": menu.kind, "values": filling.chosen(menu.raw, values)}
        resolved = {"resolved": filling.resolved} if filling.resolved else {}
        return await self._use(menu, data | resolved)

    async def _use(self, part: Component, data: Json) -> Interaction:
        message = part.message
        if message.deleted or not self.can_see(message):
            raise DriverError(f"{self.name} does not see that message")
        there = [each.get("custom_id") for each in walk(message.components)]
        if part.disabled or part.custom_id not in there:
            raise DriverError(f"component {part.custom_id} is disabled or gone")
        data |= {"id": part.raw.get("id"), "custom_id": part.custom_id}
        await asyncio.sleep(REACTION_S)
        kind = InteractionKind.COMPONENT
        name = part.label or part.placeholder or part.custom_id or ""
        return await wait_for_answer(
            send_interaction(Action(kind, self, message.channel, data, name, source=message))
        )

    async def modal(
        self, opened: Interaction, fields: Mapping[str, Field] | None = None, /, **more: Field
    ) -> Interaction:
        """Fill in and send the modal that the bot opened; keys are custom ids or labels."""
        form = opened.form
        if form is None:
            raise DriverError("no modal was opened")
        filling = Filling(self, opened.channel)
        components = fill(form, {**(fields or {}), **more}, filling)
        opened.form = None
        data: Json = {"custom_id": form["custom_id"], "components": components}
        data["resolved"] = filling.resolved
        action = Action(InteractionKind.MODAL, self, opened.channel, data, form["title"])
        action.source, action.trigger = opened.source, opened
        return await wait_for_answer(send_interaction(action))

"""Questions that are answered within minutes: GPU types, of which there may be many, and a yes."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import discord
from typing_extensions import override

from bot.discord.options import in_menus, span
from bot.discord.responses import InteractionReply, replying
from bot.domain.errors import UserError

MENU_S = 840.0
"""A menu may be left unanswered; after 14 minutes Discord would refuse the answer anyway."""

Then: TypeAlias = Callable[[InteractionReply, tuple[str, ...]], Awaitable[None]]


class Question(discord.ui.View):
    """A button that goes on once, with what is chosen by then."""

    def __init__(self, then: Then, label: str) -> None:
        super().__init__(timeout=MENU_S)
        self.then = then
        self.add_item(Go(label))

    def chosen(self) -> tuple[str, ...]:
        """What is chosen by now; UserError when that is not enough."""
        return ()

    def answering(
        self, interaction: discord.Interaction[Any]
    ) -> AbstractAsyncContextManager[InteractionReply]:
        """Acknowledges the click on the button."""
        return replying(interaction)

    async def go_on(self, interaction: discord.Interaction[Any]) -> None:
        """Go on with what is chosen by now, once."""
        async with self.answering(interaction) as answer:
            chosen = self.chosen()
            if self.is_finished():
                raise UserError("answered", "this was answered already; give the command again")
            self.stop()
            await self.then(answer, chosen)


class GpuMenus(Question):
    """As many menus as the GPU types need, 25 in each, and a button to go on."""

    def __init__(self, gpus: Sequence[str], then: Then, *, label: str = "Submit") -> None:
        super().__init__(then, label)
        self.menus = [GpuSelect(part) for part in in_menus(gpus)]
        for menu in self.menus:
            self.add_item(menu)
        self.left_out = tuple(gpus[sum(len(menu.options) for menu in self.menus) :])
        """GPU types for which a message has no room; they can be named as an option."""

    @override
    def chosen(self) -> tuple[str, ...]:
        if not self.picked:
            raise UserError("choose-gpu", "choose at least one GPU type, then press the button")
        return self.picked

    @property
    def picked(self) -> tuple[str, ...]:
        """What is chosen by now, be it nothing."""
        return tuple(gpu for menu in self.menus for gpu in menu.values)

    def asking(self, words: str) -> str:
        """The question, and how those GPU types are reached for which there is no room."""
        if not self.left_out:
            return words
        return f"{words} ({len(self.left_out)} more can be named by the option `gpus`)"


class GpuSelect(discord.ui.Select["GpuMenus"]):
    """Up to 25 GPU types, of which any number may be chosen."""

    def __init__(self, gpus: Sequence[str]) -> None:
        super().__init__(
            placeholder=span(gpus),
            min_values=0,
            max_values=len(gpus),
            options=[discord.SelectOption(label=gpu, value=gpu) for gpu in gpus],
        )

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Keep the choice until the button is pressed."""
        await interaction.response.defer()


class Go(discord.ui.Button["Question"]):
    """Goes on with what is chosen."""

    def __init__(self, label: str) -> None:
        super().__init__(label=label, style=discord.ButtonStyle.primary, row=4)

    @override
    async def callback(self, interaction: discord.Interaction[Any]) -> None:
        """Hand over to the question."""
        if self.view is not None:
            await self.view.go_on(interaction)

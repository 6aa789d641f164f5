"""Questions in an answer: menus of GPU types, and a button that continues with the choice.

A question is stored with the file that came with the command, for as long as Discord lets the bot
edit its message. Any process of the bot handles the clicks, also after a restart.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import discord
from typing_extensions import override

from bot.discord.context import Interaction, context_of, interaction_key
from bot.discord.interaction_claims import EXPIRED, replacing
from bot.discord.options import gpu_menu, offered_values, split_into_menus
from bot.discord.responses import InteractionReply
from bot.discord.roles import user_credential
from bot.domain.errors import UserError
from bot.domain.records import Question

Continuation: TypeAlias = Callable[[InteractionReply, Question], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question, and what the bot does after the answer."""

    action: str
    label: str
    """The text of the button."""
    proceed: Continuation
    needs_gpus: bool = True


KINDS: dict[str, QuestionKind] = {}
"""The kinds by action; commands add theirs."""


async def ask(
    answer: InteractionReply, text: str, question: Question, gpus: Sequence[str] = ()
) -> None:
    """Store a question, then ask it with menus of these GPU types."""
    await context_of(answer.interaction).store.interactions.ask(question)
    view = question_view(question, gpus)
    left_out = len(gpus) - sum(map(len, split_into_menus(gpus)))
    more = f" ({left_out} more; name them with the option `gpus`)" if left_out else ""
    await answer.say(f"{text}{more}", view)


def new_question(
    interaction: Interaction,
    kind: QuestionKind,
    request: str,
    content: bytes,
) -> Question:
    """Return a question to the person who ran the command."""
    return Question(
        interaction_key(interaction),
        user_credential(interaction.user.id),
        kind.action,
        request,
        content,
        context_of(interaction).clock.now(),
    )


def question_view(question: Question, gpus: Sequence[str]) -> discord.ui.View:
    """Return a question's menus and its button."""
    number = int(question.id.rpartition(":")[2])
    view = discord.ui.View(timeout=None)
    for place, part in enumerate(split_into_menus(gpus)):
        view.add_item(GpuSelect(number, place, part, question.chosen))
    view.add_item(ContinueButton(number, KINDS[question.action].label))
    return view


class GpuSelect(
    discord.ui.DynamicItem[discord.ui.Select[Any]],
    template=r"podium:question:gpus:(?P<question>[0-9]{1,20}):(?P<place>[0-9])",
):
    """A menu of up to 25 GPU types with multiple choice."""

    def __init__(
        self, question: int, place: int, gpus: Sequence[str], chosen: Sequence[str] = ()
    ) -> None:
        custom_id = f"podium:question:gpus:{question}:{place}"
        super().__init__(gpu_menu(custom_id, gpus, chosen, least=0, most=len(gpus)))
        self.question = question
        self.place = place

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction
        return cls(int(match["question"]), int(match["place"]), offered_values(item) or ["?"])

    @override
    async def callback(self, interaction: Interaction) -> None:
        """Keep the choice until the button is pressed."""
        offered = offered_values(self.item)
        picked = [each for each in offered if each in self.item.values]
        async with replacing(interaction) as answer:
            question = await _find(answer, self.question)
            await context_of(interaction).store.interactions.choose(question.id, offered, picked)


class ContinueButton(
    discord.ui.DynamicItem[discord.ui.Button[Any]],
    template=r"podium:question:continue:(?P<question>[0-9]{1,20})",
):
    """The button that continues, once, with the current choice."""

    def __init__(self, question: int, label: str = "Continue") -> None:
        super().__init__(
            discord.ui.Button(
                label=label,
                style=discord.ButtonStyle.primary,
                custom_id=f"podium:question:continue:{question}",
            )
        )
        self.question = question

    @override
    @classmethod
    async def from_custom_id(
        cls, interaction: Interaction, item: discord.ui.Item[Any], match: re.Match[str]
    ) -> Self:
        del interaction, item
        return cls(int(match["question"]))

    @override
    async def callback(self, interaction: Interaction) -> None:
        """Continue; the next message replaces the question."""
        async with replacing(interaction) as answer:
            question = await _find(answer, self.question)
            kind = KINDS[question.action]
            if kind.needs_gpus and not question.chosen:
                raise UserError("choose-gpu", "choose at least one GPU type, then press the button")
            store, click = context_of(interaction).store, interaction_key(interaction)
            if not await store.interactions.answer_question(question.id, click):
                raise UserError("answered", "this was already answered")
            answer.is_filled = False
            await kind.proceed(answer, question)


async def _find(answer: InteractionReply, number: int) -> Question:
    """Return the question; if it has expired, UserError, whose message replaces it."""
    interaction = answer.interaction
    key = interaction_key(interaction).rpartition(":")[0]
    question = await context_of(interaction).store.interactions.question(f"{key}:{number}")
    if question is None or question.asked != user_credential(interaction.user.id):
        answer.is_filled = False
        raise UserError("expired", EXPIRED)
    return question

"""A question is stored, continues once for the person who was asked, and expires."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from bot.discord import questions
from bot.discord.context import DiscordContext
from bot.discord.questions import ContinueButton, QuestionKind, ask, new_question, question_view
from bot.discord.responses import InteractionReply
from bot.domain.records import TOKEN_TTL, Question
from tests.doubles.clock import ManualClock
from tests.doubles.interaction import answer_texts, command_used
from tests.doubles.memory_store import MemoryStore

ASKED, PRESSED = 11, 12
continued: list[tuple[str, ...]] = []


async def note(answer: InteractionReply, question: Question) -> None:
    continued.append(question.chosen)
    await answer.say(f"{question.request} {question.content.decode()}")


KIND = QuestionKind("noted", "Yes", note)


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> DiscordContext:
    monkeypatch.setitem(questions.KINDS, KIND.action, KIND)
    continued.clear()
    clock = ManualClock()
    return DiscordContext(MemoryStore(clock), clock)


def question(context: DiscordContext, *chosen: str) -> Question:
    found = new_question(command_used(context, ASKED), KIND, "a request", b"a file")
    return replace(found, chosen=chosen)


async def press(context: DiscordContext, number: int = PRESSED, person: int = 7) -> Mock:
    click = command_used(context, number)
    click.user.id = person
    await ContinueButton(ASKED).callback(click)
    return click


def told(click: Mock) -> list[str]:
    """The messages below the question, which stays."""
    return [each.args[0] for each in click.followup.send.mock_calls]


def kinds(count: int) -> list[str]:
    return [f"G{number:03}" for number in range(count)]


@pytest.mark.parametrize(
    ("count", "menus", "left_out"), [(1, 1, 0), (25, 1, 0), (26, 2, 0), (60, 3, 0), (130, 4, 30)]
)
async def test_gpu_types_are_spread_over_menus(
    context: DiscordContext, count: int, menus: int, left_out: int
) -> None:
    view = question_view(question(context), kinds(count))
    *rows, button = view.to_components()
    assert len(rows) == menus
    assert all(len(row["components"][0]["options"]) <= 25 for row in rows)
    assert button["components"][0]["label"] == "Yes"
    command = command_used(context, ASKED)
    await ask(InteractionReply(command), "Which?", question(context), kinds(count))
    (text,) = answer_texts(command)
    more = f" ({left_out} more; name them with the option `gpus`)" if left_out else ""
    assert text == f"Which?{more}"


async def test_gpu_types_that_were_chosen_before_are_marked(context: DiscordContext) -> None:
    rows = question_view(question(context, "G002", "G028"), kinds(30)).to_components()[:-1]
    options = [each for row in rows for each in row["components"][0]["options"]]
    assert [each["value"] for each in options if each.get("default")] == ["G002", "G028"]


async def test_a_question_continues_once_in_its_own_message(context: DiscordContext) -> None:
    await context.store.interactions.ask(question(context, "CPU"))
    first, second = await press(context), await press(context, PRESSED + 1)
    assert continued == [("CPU",)]
    assert (answer_texts(first), told(first)) == (["a request a file"], [])
    assert (answer_texts(second), told(second)) == ([], ["⚠️ This was already answered"])


async def test_nothing_chosen_is_refused_and_the_question_stays(context: DiscordContext) -> None:
    await context.store.interactions.ask(question(context))
    click = await press(context)
    assert (answer_texts(click), continued) == ([], [])
    assert "Choose at least one" in told(click)[0]
    await context.store.interactions.choose(f"discord:{ASKED}", ["CPU"], ["CPU"])
    await press(context, PRESSED + 1)
    assert continued == [("CPU",)]


async def test_an_expired_question_is_replaced(context: DiscordContext) -> None:
    await context.store.interactions.ask(question(context, "CPU"))
    assert isinstance(context.clock, ManualClock)
    context.clock.advance(TOKEN_TTL.total_seconds())
    click = await press(context)
    assert "expired" in answer_texts(click)[0]
    assert continued == []


async def test_only_the_person_who_was_asked_answers(context: DiscordContext) -> None:
    await context.store.interactions.ask(question(context, "CPU"))
    click = await press(context, person=8)
    assert "expired" in answer_texts(click)[0]
    assert continued == []

"""A zip that is too large is not even fetched; a change of nothing stores no release."""

import io
import zipfile
from datetime import timedelta
from unittest.mock import AsyncMock, Mock

import discord
import pytest

from bot.discord import questions
from bot.discord.commands.leaderboard_publish import (
    _CREATE,
    _UPDATE,
    ZIP_BYTES,
    create_board,
    submit_publication,
    update_board,
    upload_of,
)
from bot.discord.context import FRONT_END, DiscordContext
from bot.discord.responses import InteractionReply
from bot.domain.errors import UserError
from bot.domain.ids import PersonId
from bot.domain.publication import PublishRequest
from bot.domain.tasks.scaffold import scaffold
from bot.services.publishing.publish import NO_BOARD, REQUEST, TaskUpload
from runners.contract.task import Device
from tests.doubles.factories import make_task
from tests.doubles.place import Place

EVERYTHING = discord.Permissions.all()


@pytest.fixture(autouse=True)
def _registered() -> None:
    questions.KINDS.update({each.action: each for each in (_CREATE, _UPDATE)})


async def answer_with(place: Place, *gpus: str) -> InteractionReply:
    """An answer where a worker offers these GPU types."""
    await place.store.workers.announce("box", gpus, timedelta(minutes=1))
    return answer(place)


def answer(place: Place) -> InteractionReply:
    interaction = Mock(spec=discord.Interaction, channel_id=5, id=1)
    interaction.channel = Mock(spec=discord.TextChannel)
    interaction.user.id = 9
    interaction.client.context = DiscordContext(place.store, place.clock)
    channel = Mock(spec=discord.TextChannel)
    channel.permissions_for.return_value, channel.is_news.return_value = EVERYTHING, False
    interaction.client.get_channel.return_value = channel
    interaction.followup.send = AsyncMock()
    return InteractionReply(interaction, is_filled=True)


def said(given: InteractionReply) -> list[str]:
    return [call.args[0] for call in given.interaction.followup.send.await_args_list]  # type: ignore[attr-defined]


async def stored(place: Place) -> list[PublishRequest]:
    found = await place.store.publications.claim(FRONT_END, "test", timedelta(seconds=1), 9)
    return [REQUEST.validate_json(each.wish) for each in found]


async def test_a_zip_that_is_too_large_is_not_fetched(place: Place) -> None:
    attachment = Mock(spec=discord.Attachment, size=ZIP_BYTES + 1, filename="x.zip")
    request = PublishRequest(PersonId(1), "adding")
    with pytest.raises(UserError, match="at most 10,485,760 are allowed"):
        await upload_of(attachment, request, answer(place))
    attachment.read.assert_not_called()


async def test_what_a_zip_holds_and_what_could_be_better_is_shown(place: Place) -> None:
    files = {name: text for name, text in scaffold("double").items() if "/wrong/" not in name}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for name, text in files.items():
            made.writestr(f"double/{name}", text)
    attachment = Mock(spec=discord.Attachment, size=1, filename="x.zip")
    attachment.read = AsyncMock(return_value=archive.getvalue())
    given = answer(place)
    upload = await upload_of(attachment, PublishRequest(place.ada, "adding"), given)
    (shown,) = said(given)
    assert "3 tests, 1 benchmark, 3 files, 1 correct and 0 wrong solutions" in shown
    assert "warning: there is no solution under solutions/wrong, so nothing shows" in shown
    assert (upload.task.name, upload.request.zip_name) == ("double", "x")


async def test_named_gpu_types_are_not_asked_for(place: Place) -> None:
    given = await answer_with(place, "CPU")
    await create_board(
        TaskUpload(PublishRequest(place.ada, "adding", ("CPU",)), b"zip", make_task()), given
    )
    (kept,) = await stored(place)
    assert (kept.gpus, kept.onto) == (("CPU",), NO_BOARD)
    assert "published only if every solution" in said(given)[-1]


async def test_only_gpu_types_that_fit_the_task_are_offered(place: Place) -> None:
    given = await answer_with(place, "CPU", "H100")
    task = make_task(device=Device.CUDA)
    await create_board(TaskUpload(PublishRequest(place.ada, "adding"), b"zip", task), given)
    view = given.interaction.followup.send.await_args.kwargs["view"]  # type: ignore[attr-defined]
    menu, _button = view.to_components()
    assert [each["value"] for each in menu["components"][0]["options"]] == ["H100"]
    assert await stored(place) == []


@pytest.mark.parametrize(
    ("name", "words"), [("two words", "not a valid"), ("vectoradd", "already")]
)
async def test_what_cannot_be_is_refused_before_anything_is_asked(
    place: Place, name: str, words: str
) -> None:
    with pytest.raises(UserError, match=words):
        await create_board(
            TaskUpload(PublishRequest(place.ada, name), b"zip", make_task()),
            await answer_with(place, "CPU"),
        )


async def test_without_a_fitting_gpu_type_it_says_so(place: Place) -> None:
    task = make_task(device=Device.CUDA)
    upload = TaskUpload(PublishRequest(place.ada, "adding"), b"", task)
    with pytest.raises(UserError, match=r"device cuda.*option gpus"):
        await create_board(upload, await answer_with(place, "CPU"))


async def test_an_update_shows_its_difference_and_waits_for_a_yes(place: Place) -> None:
    given = answer(place)
    task = make_task(description="Add both.")
    await update_board(
        TaskUpload(PublishRequest(place.ada, "vectoradd"), b"zip", task), place.board, given
    )
    assert "What changes on vectoradd" in said(given)[0]
    assert "Nothing is changed yet" in said(given)[1]
    assert await stored(place) == []


async def test_an_update_to_the_same_task_changes_nothing(place: Place) -> None:
    given = answer(place)
    await update_board(
        TaskUpload(PublishRequest(place.ada, "vectoradd"), b"zip", make_task()), place.board, given
    )
    assert any("nothing to change" in each for each in said(given))
    assert await stored(place) == []


async def test_what_became_impossible_meanwhile_is_not_stored(place: Place) -> None:
    request = PublishRequest(place.ada, "vectoradd", ("CPU",), onto=NO_BOARD)
    with pytest.raises(UserError, match="already"):
        await submit_publication(TaskUpload(request, b"zip", make_task()), answer(place))
    assert await stored(place) == []

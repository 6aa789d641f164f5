import pytest

from bot.domain.board import Viewer
from bot.domain.errors import UserError
from bot.domain.submission import NewDisplay
from bot.services.submissions import RerunRequest, rerun
from runners.contract.task import Mode
from tests.doubles.place import Place


async def test_the_same_source_runs_again_in_the_mode_that_is_asked_for(place: Place) -> None:
    earlier = await place.submit(mode=Mode.TEST)
    same = await rerun(place.store, place.clock, RerunRequest(Viewer(place.ada), earlier.id))
    assert (same.mode, same.source_hash, same.gpus) == (
        Mode.TEST,
        earlier.source_hash,
        earlier.gpus,
    )
    shown = NewDisplay("discord", "here")
    request = RerunRequest(Viewer(place.ada), earlier.id, Mode.RANKED, shown)
    ranked = await rerun(place.store, place.clock, request)
    assert ranked.mode is Mode.RANKED
    display = await place.store.displays.find(ranked.id)
    assert display is not None
    assert display.place == "here"


async def test_somebody_else_s_is_not_run_again(place: Place) -> None:
    earlier = await place.submit(await place.person("bob"))
    with pytest.raises(UserError, match="another person; choose one of yours"):
        await rerun(place.store, place.clock, RerunRequest(Viewer(place.ada), earlier.id))


async def test_a_request_to_the_evaluation_server_is_repeated_there(place: Place) -> None:
    earlier = await place.asked()
    with pytest.raises(UserError, match="send it there again"):
        await rerun(place.store, place.clock, RerunRequest(Viewer(place.ada), earlier.id))

from bot.domain.ids import PersonId
from bot.domain.publication import PublishRequest
from bot.services.boards import demo_owner, remove_demo
from bot.services.publishing.publish import publish
from runners.contract.evaluation import CPU
from tests.doubles.factories import make_task
from tests.doubles.place import Place


async def demonstrate(place: Place, name: str) -> PersonId:
    """A board of the demo with one judged and one queued kernel; gives whose they are."""
    owner = await demo_owner(place.store)
    await publish(place.store, place.clock, PublishRequest(owner.id, name=name), make_task())
    ada = (await place.store.people.ensure("demo:ada", "Ada")).id
    await place.judged(await place.submit(ada, board=name))
    await place.submit(ada, board=name)
    place.clock.advance(1)
    return ada


async def test_its_boards_go_with_all_that_is_on_them(place: Place) -> None:
    ada = await demonstrate(place, "demo-vectoradd")
    removed = await remove_demo(place.store)
    assert (removed.boards, removed.kept) == (("demo-vectoradd",), ())
    assert [each.name for each in await place.store.boards.all()] == ["vectoradd"]
    assert await place.store.submissions.history(ada) == ()


async def test_other_people_s_boards_stay_be_their_names_as_they_may(place: Place) -> None:
    await publish(place.store, place.clock, PublishRequest(place.ada, name="demo-own"), make_task())
    await demonstrate(place, "demo-vectoradd")
    own = await place.submit(board="demo-own")
    await remove_demo(place.store)
    names = [each.name for each in await place.store.boards.all()]
    assert names == ["demo-own", "vectoradd"]
    assert await place.store.submissions.get(own.id) is not None


async def test_a_board_that_others_use_keeps_their_submissions(place: Place) -> None:
    ada = await demonstrate(place, "demo-vectoradd")
    own = await place.submit(board="demo-vectoradd")
    removed = await remove_demo(place.store)
    assert (removed.boards, removed.kept) == ((), ("demo-vectoradd",))
    assert await place.store.submissions.get(own.id) is not None
    assert await place.store.submissions.history(ada) == ()
    board = await place.store.boards.find("demo-vectoradd")
    assert board is not None
    assert await place.store.results.entrants(board.task_version, CPU) == ()


async def test_without_a_demo_nothing_is_removed(place: Place) -> None:
    removed = await remove_demo(place.store)
    assert (removed.boards, removed.kept) == ((), ())
    assert await place.store.people.find("demo:podium") is None

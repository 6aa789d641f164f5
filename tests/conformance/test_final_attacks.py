"""What could make a final publish something false, or never end, in every store."""

import random

import pytest

from bot.domain.submission import Exclusion, ExclusionKind
from bot.services.finals import cancel_final
from bot.services.moderation import Decision
from tests.conformance.test_finals import admin, four, newest, pair, start
from tests.doubles.clock import ManualClock
from tests.doubles.confirming import Arena
from tests.doubles.stored import Scene, make_evaluation


@pytest.fixture
def arena(scene: Scene, clock: ManualClock) -> Arena:
    return Arena(scene, clock)


async def test_the_board_says_the_same_as_the_final_whatever_was_compared_before(
    arena: Arena,
) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 99)
    await arena.compared(ratio=0.99)
    await start(arena)
    await arena.compared(ratio=0.98)  # ada is faster in the final
    final = await newest(arena)
    assert final.rows is not None
    told = [(each.rank, each.person_name) for each in final.rows]
    assert told == [(1, "ada"), (2, "bob")]
    assert [each[:2] for each in await arena.ranks()] == told


async def test_a_final_that_runs_or_is_cancelled_changes_no_rank(arena: Arena) -> None:
    await four(arena)
    before = [each[:2] for each in await arena.ranks()]
    await start(arena)
    await arena.compared(ratio=0.5)
    assert [each[:2] for each in await arena.ranks()] == before
    await cancel_final(
        arena.scene.store, admin(arena), Decision(arena.scene.ada.id, ""), "vectoradd"
    )
    assert [each[:2] for each in await arena.ranks()] == before


async def test_an_entry_that_falls_behind_the_next_one_outside_is_compared_with_it(
    arena: Arena,
) -> None:
    await four(arena)
    await start(arena, top=2)
    await arena.compared(ratio=1.2)  # bob would be at 120, behind eve and dan
    assert pair(await arena.compared(ratio=0.9)) == ("eve", "bob")
    await arena.compared(ratio=1.1)  # eve and ada
    assert pair(await arena.compared(ratio=1.02)) == ("dan", "bob")
    final = await newest(arena)
    assert final.rows is not None
    told = [(each.rank, each.person_name) for each in final.rows]
    assert told == [(1, "ada"), (2, "eve"), (3, "bob"), (4, "dan")]
    assert [each[:2] for each in await arena.ranks()] == told


async def test_a_final_whose_entries_are_all_withdrawn_ends(arena: Arena) -> None:
    numbers = await four(arena)
    await start(arena, top=2)
    for name in numbers:
        gone = Exclusion(numbers[name], ExclusionKind.WITHDRAWN, "")
        await arena.scene.store.moderation.exclude(gone)
    await arena.compared(ratio=0.5)
    assert (await newest(arena)).rows == ()


async def test_runs_that_keep_coming_do_not_keep_a_final_from_its_start(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 200)
    await arena.ran("eve", 99)
    await start(arena)
    for number in range(4):
        await arena.ran("eve", 98 - number)
        await arena.compared(ratio=1.02)
    final = await newest(arena)
    assert (final.entries is not None, final.compared) == (True, 2)


async def test_an_entry_that_fails_whenever_it_is_compared_keeps_no_place(arena: Arena) -> None:
    await four(arena)
    await start(arena, top=3)
    await arena.compared(ratio=1.01)
    await arena.rival_failed()  # bob, compared with eve
    assert pair(await arena.rival_failed()) == ("bob", "bob")
    await arena.rival_failed()
    assert pair(await arena.compared(ratio=1.02)) == ("eve", "ada")
    final = await newest(arena)
    assert final.rows is not None
    assert [each.person_name for each in final.rows] == ["ada", "eve"]


async def test_a_first_entry_that_has_become_slow_makes_no_time_beyond_reach(arena: Arena) -> None:
    await arena.ran("accomplice", 100)
    await arena.ran("bob", 101)
    await start(arena)
    await arena.compared(ratio=0.1)  # the kernel of the accomplice waits from a certain hour on
    assert (await arena.ranks())[0] == (1, "bob", 98)
    run = await arena.ran("eve", 95)
    assert [each.submission for each in await arena.pending()] == [run]


async def test_another_run_of_the_same_kernel_does_not_undo_a_final(arena: Arena) -> None:
    await arena.ran("ada", 100)
    await arena.ran("bob", 101)
    await arena.ran("bob", 101.2)  # the same kernel again
    await start(arena)
    await arena.compared(ratio=1.05)
    final = await newest(arena)
    assert final.rows is not None
    assert [(each.person_name, each.time_ns) for each in final.rows] == [("ada", 100), ("bob", 105)]
    assert await arena.ranks() == [(1, "ada", 100), (2, "bob", 105)]


async def test_a_comparison_whose_final_was_cancelled_is_no_run_of_the_reference(
    arena: Arena,
) -> None:
    await four(arena)
    before = await arena.ranks()
    await start(arena)
    (job,) = await arena.queue.claim({"CPU": 1})
    request = await arena.queue.request(job)
    assert request is not None
    decision = Decision(arena.scene.ada.id, "")
    await cancel_final(arena.scene.store, admin(arena), decision, "vectoradd")
    # Somebody's kernel would be judged with all files of the task, as only the reference is.
    assert await arena.queue.request(job) is None
    passed = make_evaluation().model_copy(update={"request_id": request.request_id})
    await arena.queue.accept(job, request, passed)
    await arena.step()
    assert await arena.ranks() == before  # without an entry of Podium's own


async def test_a_run_with_a_wider_interval_does_not_undo_a_final_either(arena: Arena) -> None:
    await arena.ran("ada", 100, 0.3)
    await arena.ran("ada", 98.6, 2)  # slower, since its upper end counts
    await arena.ran("bob", 110, 6)
    await start(arena)
    await arena.compared(ratio=0.9)
    assert await told_by(arena) == await arena.ranks()
    assert [each[:2] for each in await arena.ranks()] == [(1, "bob"), (2, "ada")]


@pytest.mark.parametrize("seed", [5, 38, 41, 68, 70, 84])
async def test_the_table_of_a_final_has_the_first_rows_of_the_board(
    arena: Arena, seed: int
) -> None:
    chance = random.Random(seed)  # noqa: S311
    names = ["ada", "bob", "eve", "dan", "zed"][: chance.randint(3, 5)]
    for _ in range(chance.randint(4, 8)):
        spread = chance.choice([2, 10, 40])
        name, time_ns = chance.choice(names), 100 + chance.random() * spread
        await arena.ran(name, time_ns, chance.choice([0, 0.3, 2]))
        await compare_all(arena, chance)
    top = chance.choice([3, 10])
    await start(arena, top)
    await compare_all(arena, chance)
    told = await told_by(arena)
    assert len(told) >= min(top, len(await arena.ranks()))
    assert told == (await arena.ranks())[: len(told)]


async def compare_all(arena: Arena, chance: random.Random) -> None:
    """Finish every comparison, with ratios that vary as much as those of the fewest rounds."""
    while await arena.scene.store.confirmations.unfinished():
        ratio = chance.choice([0.9, 0.97, 0.99, 0.995, 1.0, 1.003, 1.01, 1.05, 1.1])
        await arena.compared(ratio, chance.choice([0.0005, 0.002, 0.006, 0.02]))


async def told_by(arena: Arena) -> list[tuple[int, str, float]]:
    """Rank, name and time of each row in the table of the final."""
    rows = (await newest(arena)).rows
    assert rows is not None
    return [(each.rank, each.person_name, round(each.time_ns, 3)) for each in rows]

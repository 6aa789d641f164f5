"""What every store must do with what people asked: one does it at a time, and secrets go."""

import asyncio
from datetime import timedelta

from bot.domain.records import InteractionRequest, OpenRequest, Question
from bot.domain.submission import KeptAnswer, UntoldOutcome
from tests.doubles.clock import ManualClock
from tests.doubles.stored import Scene

LEASE = timedelta(seconds=30)
BRIEF = timedelta(seconds=1)
SILENT = timedelta(seconds=5)
TOKEN = "aW50ZXJhY3Rpb24-secret"  # noqa: S105
NONE: tuple[OpenRequest, ...] = ()


def asked(clock: ManualClock, number: int = 1) -> InteractionRequest:
    return InteractionRequest(
        f"discord:{number}", "discord", '{"a": "\\u0000"}', TOKEN, clock.now()
    )


async def test_of_many_at_one_moment_one_claims_it(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    claims = [interactions.claim(asked(clock), f"owner-{each}", BRIEF) for each in range(8)]
    assert sum(await asyncio.gather(*claims)) == 1


async def test_the_same_owner_does_not_claim_it_again(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    assert not await interactions.claim(asked(clock), "one", BRIEF)


async def test_who_looks_again_after_the_lease_takes_over(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    assert not await interactions.claim(asked(clock), "two", BRIEF)
    clock.advance(1)
    assert await interactions.claim(asked(clock), "two", BRIEF)
    assert not await interactions.renew("discord:1", "one", LEASE)
    assert not await interactions.release("discord:1", "one", LEASE)
    assert not await interactions.finish("discord:1", "one")
    assert await interactions.renew("discord:1", "two", LEASE)
    clock.advance(29)
    assert not await interactions.claim(asked(clock), "three", BRIEF)


async def test_a_lease_that_ran_out_is_kept_while_nobody_has_taken_it(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    clock.advance(3)
    assert await interactions.renew("discord:1", "one", LEASE)
    assert not await interactions.claim(asked(clock), "two", BRIEF)


async def test_what_is_done_is_never_claimed_again_and_forgotten_after_a_day(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    assert await interactions.finish("discord:1", "one")
    assert not await interactions.finish("discord:1", "one")
    assert not await interactions.renew("discord:1", "one", LEASE)
    clock.advance(86_399)
    assert not await interactions.claim(asked(clock), "two", BRIEF)
    assert await interactions.claim_unfinished("discord", "two", LEASE, SILENT) == NONE
    assert await interactions.delete_finished() == 0
    clock.advance(1)
    assert await interactions.delete_finished() == 1
    assert await interactions.claim(asked(clock), "two", BRIEF)


async def test_what_was_begun_and_not_ended_is_taken_once_it_is_silent(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    first = asked(clock, 1)
    assert await interactions.claim(first, "one", BRIEF)
    clock.advance(0.5)
    second = asked(clock, 2)
    assert await interactions.claim(second, "one", LEASE)
    clock.advance(5)
    assert await interactions.claim_unfinished("discord", "two", LEASE, SILENT) == NONE
    clock.advance(0.5)
    assert await interactions.claim_unfinished("web", "two", LEASE, SILENT) == NONE
    (found,) = await interactions.claim_unfinished("discord", "two", LEASE, SILENT)
    assert found == OpenRequest("discord:1", first.request, TOKEN, first.at, tries=1)
    assert await interactions.claim_unfinished("discord", "three", LEASE, SILENT) == NONE
    assert not await interactions.begin("discord:1", "three", LEASE)
    clock.advance(20)
    assert await interactions.begin("discord:1", "two", LEASE)
    clock.advance(36)
    both = await interactions.claim_unfinished("discord", "three", LEASE, SILENT)
    assert [(each.id, each.tries) for each in both] == [("discord:1", 2), ("discord:2", 1)]
    assert await interactions.finish("discord:1", "three")
    assert not await interactions.begin("discord:1", "three", LEASE)


async def test_what_is_left_was_not_tried_and_waits(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    assert await interactions.release("discord:1", "one", LEASE)
    assert not await interactions.renew("discord:1", "one", LEASE)
    clock.advance(29)
    assert await interactions.claim_unfinished("discord", "two", LEASE, timedelta()) == NONE
    clock.advance(1)
    (found,) = await interactions.claim_unfinished("discord", "two", LEASE, timedelta())
    assert found.tries == 0


async def test_a_token_that_has_expired_is_deleted(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    clock.advance(899)
    assert await interactions.delete_finished() == 0
    clock.advance(1)
    assert await interactions.delete_finished() == 1
    assert await interactions.delete_finished() == 0
    clock.advance(-60)
    (found,) = await interactions.claim_unfinished("discord", "two", LEASE, SILENT)
    assert found.token is None


async def test_a_kept_token_is_known_until_it_is_dropped_or_expires(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    for number in (1, 2):
        assert await interactions.claim(asked(clock, number), "one", BRIEF)
        key = f"discord:{number}"
        assert await interactions.answer_of(key) == KeptAnswer(done=False, token=TOKEN)
        assert not await interactions.drop_token(key)
        assert not await interactions.finish(key, "two", keep_token=True)
        assert await interactions.finish(key, "one", keep_token=True)
        assert await interactions.answer_of(key) == KeptAnswer(done=True, token=TOKEN)
    assert await interactions.drop_token("discord:1")
    assert not await interactions.drop_token("discord:1")
    assert await interactions.answer_of("discord:1") == KeptAnswer()
    clock.advance(15 * 60)
    assert await interactions.answer_of("discord:2") == KeptAnswer()
    assert await interactions.delete_finished() == 1
    assert not await interactions.drop_token("discord:2")
    assert await interactions.answer_of("discord:3") == KeptAnswer()


async def test_only_its_holder_replaces_a_stored_request(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    assert await interactions.claim(asked(clock), "one", BRIEF)
    assert not await interactions.save_request("discord:1", "two", "{}")
    assert await interactions.save_request("discord:1", "one", '{"told": "done"}')
    clock.advance(10)
    (left,) = await interactions.claim_unfinished("discord", "two", LEASE, SILENT)
    assert left.request == '{"told": "done"}'
    assert not await interactions.save_request("discord:1", "one", "{}")


async def test_a_token_that_has_expired_is_given_to_nobody(
    scene: Scene, clock: ManualClock
) -> None:
    assert await scene.store.interactions.claim(asked(clock), "one", BRIEF)
    clock.advance(900)
    (found,) = await scene.store.interactions.claim_unfinished("discord", "two", LEASE, SILENT)
    assert found.token is None


def test_a_token_is_in_no_description_of_what_was_asked(clock: ManualClock) -> None:
    unfinished = OpenRequest("discord:1", "{}", TOKEN, clock.now(), tries=1)
    assert TOKEN not in repr(asked(clock)) + repr(unfinished)


def question(clock: ManualClock, number: int = 1, content: bytes = b"a\0file") -> Question:
    return Question(
        f"discord:{number}",
        "discord:7",
        "submit",
        '{"a": "\\u0000"}',
        content,
        clock.now(),
        ("CPU",),
    )


async def test_a_question_is_stored_once_and_expires(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    await interactions.ask(question(clock))
    await interactions.ask(question(clock, content=b"another"))
    clock.advance(899)
    assert await interactions.delete_finished() == 0
    found = await interactions.question("discord:1")
    assert found is not None
    assert (found.content, found.request, found.chosen) == (
        b"a\0file",
        '{"a": "\\u0000"}',
        ("CPU",),
    )
    assert await interactions.question("discord:2") is None
    clock.advance(1)
    assert await interactions.question("discord:1") is None
    assert await interactions.delete_finished() == 1
    assert await interactions.delete_finished() == 0


async def test_a_choice_replaces_what_one_menu_offered(scene: Scene, clock: ManualClock) -> None:
    interactions = scene.store.interactions
    await interactions.ask(question(clock))
    await interactions.choose("discord:1", ["H100", "L4"], ["L4", "H100"])
    await interactions.choose("discord:1", ["CPU", "A100"], [])
    await interactions.choose("discord:2", ["CPU"], ["CPU"])
    found = await interactions.question("discord:1")
    assert found is not None
    assert found.chosen == ("L4", "H100")


async def test_only_the_interaction_that_answered_a_question_may_repeat_it(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    await interactions.ask(question(clock))
    answers = [interactions.answer_question("discord:1", f"discord:{by}") for by in range(5, 9)]
    won = await asyncio.gather(*answers)
    assert sum(won) == 1
    winner = f"discord:{5 + won.index(True)}"
    assert await interactions.answer_question("discord:1", winner)
    assert not await interactions.answer_question("discord:2", winner)


async def untold(scene: Scene, clock: ManualClock, number: int, to: str = "discord:7") -> None:
    """End a request whose outcome could not be sent."""
    outcome = UntoldOutcome(to, f"outcome {number}")
    assert await scene.store.interactions.claim(asked(clock, number), "one", LEASE)
    assert not await scene.store.interactions.finish(f"discord:{number}", "two", untold=outcome)
    assert await scene.store.interactions.finish(f"discord:{number}", "one", untold=outcome)
    clock.advance(1)


async def test_an_outcome_that_was_not_sent_is_told_its_person_once(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    await untold(scene, clock, 1)
    await untold(scene, clock, 2)
    for number in (8, 9):
        assert await interactions.claim(asked(clock, number), "one", LEASE)
    assert await interactions.take_untold("discord:6", "discord:9") is None
    assert await interactions.take_untold("discord:7", "discord:9") == "outcome 1"
    assert await interactions.take_untold("discord:7", "discord:8") == "outcome 2"
    assert await interactions.take_untold("discord:7", "discord:9") == "outcome 1"
    assert await interactions.finish("discord:9", "one", told=True)
    assert await interactions.finish("discord:8", "one", told=True)
    assert await interactions.take_untold("discord:7", "discord:10") is None


async def test_an_outcome_is_told_by_another_request_if_the_first_ended_without_it(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    await untold(scene, clock, 1)
    assert await interactions.claim(asked(clock, 9), "one", LEASE)
    assert await interactions.take_untold("discord:7", "discord:9") == "outcome 1"
    assert await interactions.take_untold("discord:7", "discord:10") is None
    assert await interactions.finish("discord:9", "one")
    assert await interactions.take_untold("discord:7", "discord:10") == "outcome 1"


async def test_of_many_answers_at_one_moment_one_tells_an_outcome(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    await untold(scene, clock, 1)
    for number in range(10, 18):
        assert await interactions.claim(asked(clock, number), "one", LEASE)
    takes = [interactions.take_untold("discord:7", f"discord:{each}") for each in range(10, 18)]
    assert sorted(filter(None, await asyncio.gather(*takes))) == ["outcome 1"]


async def test_an_outcome_that_nobody_read_is_deleted_after_a_day(
    scene: Scene, clock: ManualClock
) -> None:
    interactions = scene.store.interactions
    await untold(scene, clock, 1)
    clock.advance(86_398)
    assert await interactions.delete_finished() == 0
    clock.advance(1)
    assert await interactions.take_untold("discord:7", "discord:9") is None
    assert await interactions.delete_finished() == 2

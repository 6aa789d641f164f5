"""The current limits, quotas, pauses and bans, with the names of boards and people."""

from bot.domain.accounts import Person
from bot.domain.costs import NamedQuota
from bot.domain.ids import BoardId, PersonId
from bot.domain.records import NamedLimit, SubmissionRules
from bot.ports import Store


async def submission_rules(store: Store) -> SubmissionRules:
    """Return the current limits, quotas, pauses and bans."""
    names: dict[BoardId | None, str] = {each.id: each.name for each in await store.boards.all()}
    limits, quotas = await store.moderation.limits(), await store.costs.quotas()
    whom: dict[PersonId | None, Person | None] = {None: None}
    for number in {each.person for each in limits} | {each.key.person for each in quotas}:
        whom[number] = await store.people.get(number) if number else None
    paused = await store.moderation.board_pauses()
    bans = await store.moderation.bans()
    people = [(await store.people.get(person), each) for person, each in bans.items()]
    return SubmissionRules(
        limits=tuple(NamedLimit(each, names.get(each.board), whom[each.person]) for each in limits),
        pause=await store.moderation.pause_notice(),
        boards={names[board]: notice for board, notice in paused.items() if board in names},
        gpus=await store.moderation.gpu_pauses(),
        bans=tuple((person, each) for person, each in people if person is not None),
        quotas=tuple(
            NamedQuota(each, names.get(each.key.board), whom[each.key.person]) for each in quotas
        ),
    )

-- Names that look alike are told apart; names that an admin reset; notifications of long runs' results.

alter table people
    add handle text,
    add skeleton text,
    add refused_skeleton text,
    add notices_offered bigint;
comment on column people.handle is 'The user name at the front end, which is unique there; null where only the identity is known';
comment on column people.skeleton is 'Equal for names that look alike, see bot.domain.names; null until a process has computed it';
comment on column people.refused_skeleton is 'The skeleton of the name that an admin reset, which the person cannot choose again';
comment on column people.notices_offered is 'The submission below which notifications of results were offered; null: not offered yet';
create index people_by_skeleton on people (skeleton);

create view shown_names as
select people.id as person, task_version, gpu, case
    when starts_with(people.identity, 'deleted:') then people.name
    when position('@' in people.skeleton) > 0 or exists (
        select from people as others join entrants on entrants.person = others.id
        where others.skeleton = people.skeleton and others.id <> people.id
            and entrants.task_version = leaderboards.task_version
            and entrants.gpu = leaderboards.gpu
    ) then people.name || ' (@' || coalesce(people.handle, people.identity) || ')'
    else people.name
end as name
from people cross join leaderboards;
comment on view shown_names is 'A person''s name on a leaderboard, with the handle if another person''s name there looks alike';

drop trigger move_renamed on people;
create trigger move_renamed after update on people
    for each row
    when ((old.name, old.handle, old.skeleton) is distinct from (new.name, new.handle, new.skeleton))
    execute function move_renamed();

alter table listeners
    drop constraint listeners_kind_check,
    add constraint listeners_kind_check
        check (kind in ('competition', 'deadline', 'lost-rank', 'record', 'result'));
alter table outbox alter column board drop not null;
comment on column outbox.board is 'Only people who may see it get the notification; null: it is about the addressee''s account';

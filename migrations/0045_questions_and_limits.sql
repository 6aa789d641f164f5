-- What the Discord bot asked people, so that each of its processes can continue; limits of one person.

create table questions (
    id          text primary key,
    asked       text not null,
    action      text not null,
    request     text not null,
    content     bytea not null,
    asked_at    timestamptz not null,
    chosen      text[] not null,
    answered_by text
);
comment on table questions is 'Questions of commands, with the uploaded file; kept for 15 minutes';
comment on column questions.id is 'The interaction that asked';
comment on column questions.asked is 'The credential of the person who may answer';
comment on column questions.answered_by is 'The only interaction that may continue';
create index questions_by_time on questions (asked_at);

alter table rate_limits
    add column person bigint references people (id),
    add column reason text not null default '',
    add column until timestamptz,
    drop constraint rate_limits_board_mode_key,
    add unique nulls not distinct (board, mode, person);
comment on column rate_limits.person is 'The only person whom it limits; null: each person';
comment on column rate_limits.reason is 'What that person is told';
comment on column rate_limits.until is 'When it ends by itself; null: not until it is removed';

alter table gpu_quotas
    add column person bigint references people (id),
    add column reason text not null default '',
    drop constraint gpu_quotas_unit_each_person_board_gpu_key,
    add unique nulls not distinct (unit, each_person, board, gpu, person);
comment on column gpu_quotas.person is 'The only person whom it limits; null: everyone';
comment on column gpu_quotas.reason is 'What that person is told';

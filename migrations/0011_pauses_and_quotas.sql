-- Pauses of one board or of one GPU type, and submissions that nobody's quota counts.

create table board_pauses (
    board  bigint primary key references boards (id) on delete cascade,
    notice text not null,
    at     timestamptz not null
);
comment on table board_pauses is 'Boards that take no submissions for the time being';

alter table pools add column notice text;
comment on column pools.notice is 'Why the pool is paused, for those who wait';

alter table submissions add column judged_again boolean not null default false;
comment on column submissions.judged_again is 'An admin asked for it, so no quota of its person counts it';

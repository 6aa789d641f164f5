-- What admins decide: who may submit, how often, and what is not ranked.

create table bans (
    person bigint primary key references people (id),
    reason text not null,
    at     timestamptz not null
);

create table exclusions (
    submission bigint primary key references submissions (id),
    kind       text not null check (kind in ('withdrawn', 'disqualified')),
    reason     text not null,
    at         timestamptz not null
);
comment on table exclusions is 'Submissions that keep their results and are not ranked';

create table pause (
    only_row boolean primary key default true check (only_row),
    notice   text not null,
    at       timestamptz not null
);
comment on table pause is 'Has its row while no submissions are taken';

create table rate_limits (
    board    bigint references boards (id),
    mode     text check (mode in ('test', 'benchmark', 'profile', 'ranked')),
    most     int not null check (most >= 1),
    window_s double precision not null check (window_s > 0),
    unique nulls not distinct (board, mode)
);
comment on table rate_limits is 'Per person; null covers every board, or every mode';

create table rooms (
    house text not null,
    room  text not null,
    primary key (house, room)
);
comment on table rooms is 'Where a door takes submissions, such as channels of a guild; none named: where the door does by itself';

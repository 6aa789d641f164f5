-- Competitions: boards with one overall ranking. A board may open later, and keep unranked runs open.

alter table boards
    add column opens_at timestamptz,
    add column late_runs boolean not null default false;
comment on column boards.opens_at is 'Until then only its creator and admins see it; null: it was open from the beginning';
comment on column boards.late_runs is 'Whether it accepts submissions in unranked modes after its deadline';

create table competitions (
    id                bigint generated always as identity primary key,
    name              text not null unique,
    creator           bigint not null references people (id),
    description       text not null,
    ranks             double precision[] not null,
    opens_at          timestamptz not null,
    created_at        timestamptz not null,
    opening_announced timestamptz,
    closing_announced timestamptz
);
comment on column competitions.ranks is 'The points of the first places; empty: 100 x best / own time';
comment on column competitions.opening_announced is 'The opening date that was announced, so that it is announced once';
comment on column competitions.closing_announced is 'The closing date that was announced; a changed one is announced again';

create table competition_boards (
    competition bigint not null references competitions (id),
    board       bigint not null references boards (id),
    position    int not null check (position >= 1),
    primary key (competition, board)
);
create index competitions_of_board on competition_boards (board);

alter table listeners
    drop constraint listeners_kind_check,
    add constraint listeners_kind_check
        check (kind in ('competition', 'deadline', 'lost-rank', 'record'));

-- Links by which people join a private board: they expire, have a limit of people, and can be revoked.

create table invite_links (
    id         bigint generated always as identity primary key,
    board      bigint not null references boards (id) on delete cascade,
    creator    bigint not null references people (id),
    digest     text not null unique,
    most       int not null check (most > 0),
    uses       int not null default 0 check (uses between 0 and most),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    revoked_at timestamptz
);
comment on table invite_links is 'Each has one code, which works in every front end';
comment on column invite_links.digest is 'A hash of the code, which is shown once and not stored';
comment on column invite_links.most is 'The most people who can join by it';
comment on column invite_links.uses is 'How many people have joined by it; people who were invited already do not count';
create index invite_links_of_board on invite_links (board, id);

-- Who wants to be told of what, and what waits to be delivered.

create table listeners (
    addressee text not null,
    kind      text not null check (kind in ('deadline', 'lost-rank', 'record')),
    primary key (addressee, kind)
);
comment on table listeners is 'Nobody is told of anything without a row; an addressee is a door''s own word, such as discord:17';

create table untold (
    job bigint primary key references scores (job)
);
comment on table untold is 'Scores whose news is not worked out yet; the statement that stores a score writes it';

create table outbox (
    id          bigint generated always as identity primary key,
    key         text not null unique,
    kind        text not null,
    addressee   text not null,
    board       bigint not null references boards (id),
    text        text not null,
    due         timestamptz not null,
    tries       int not null default 0,
    owner       text,
    lease_until timestamptz,
    done_at     timestamptz,
    refusal     text,
    check ((owner is null) = (lease_until is null)),
    check (refusal is null or done_at is not null)
);
comment on column outbox.key is 'What makes two news the same; kept a while after delivery, so that none is told twice';
create index outbox_waiting on outbox (due, id) where done_at is null;

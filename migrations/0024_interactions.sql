-- What people asked a door for, kept until it is done: a bot that ends in the middle loses none of it.

create table interactions (
    id          text primary key,
    door        text not null,
    request     text,
    token       text,
    asked_at    timestamptz not null,
    tries       integer not null default 1,
    owner       text,
    lease_until timestamptz,
    done_at     timestamptz
);
comment on table interactions is 'Commands, clicks and forms, each claimed by one process before it is acknowledged';
comment on column interactions.request is 'The door''s own words for what was asked; null once that is done';
comment on column interactions.token is 'A secret by which the person is answered for 15 minutes; null once it is done or expired';
create index interactions_unfinished on interactions (door, lease_until) where done_at is null;
create index interactions_with_token on interactions (asked_at) where token is not null;
create index interactions_done on interactions (done_at) where done_at is not null;

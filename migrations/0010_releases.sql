-- Task zips that are being proven; each is gone once its outcome is told.

create table releases (
    id          bigint generated always as identity primary key,
    door        text not null,
    person      bigint not null references people (id),
    zip         bytea not null,
    wish        text not null,
    place       text not null,
    tries       int not null default 0,
    owner       text,
    lease_until timestamptz,
    check ((owner is null) = (lease_until is null))
);
comment on table releases is 'Kept while a task''s own solutions run, so that a restart goes on with it';
comment on column releases.wish is 'The door''s own words for the board that is wanted';
comment on column releases.place is 'The door''s own words for where it tells of it and what is told already';
comment on column releases.tries is 'How often a process has begun; one that takes its process with it is given up';

-- Where doors show submissions, and how far each has got.

create table displays (
    submission  bigint primary key references submissions (id),
    door        text not null,
    place       text not null,
    owner       text,
    lease_until timestamptz,
    finished_at timestamptz,
    check ((owner is null) = (lease_until is null))
);
comment on column displays.place is 'The door''s own words for where it shows the submission and what is shown already';
create index displays_unfinished on displays (door, submission) where finished_at is null;

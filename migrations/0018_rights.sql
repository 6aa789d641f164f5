-- What people may as each source saw it last, and what their tokens are good for.

create table rights (
    person      bigint not null references people (id),
    source      text not null,
    credentials text[] not null,
    is_admin    boolean not null,
    is_creator  boolean not null,
    seen_at     timestamptz not null,
    primary key (person, source)
);
comment on table rights is 'What a person may; a door notes it where it meets the person, the rest is taken over';
comment on column rights.source is 'Who vouches for it, such as discord-guild:123, or machine for whoever sits at it';
comment on column rights.credentials is 'Doors'' own words by which boards are seen, such as discord-role:5';

alter table tokens drop constraint tokens_scope_check;
alter table tokens add constraint tokens_scope_check
    check (scope in ('read', 'person', 'admin', 'worker'));
comment on column tokens.scope is 'What it is good for: to read, to act or to administer for its person, or to judge as a worker';

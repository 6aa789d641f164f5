-- Sessions of browsers are tokens; what a check of a task has come to is kept for its page.

alter table tokens drop constraint tokens_scope_check;
alter table tokens add constraint tokens_scope_check
    check (scope in ('read', 'person', 'admin', 'worker', 'session', 'admin-session'));
comment on column tokens.scope is 'What it is good for: to read, to act or to administer for its person, to judge as a worker; or a browser that is signed in';
alter table tokens add begun_by bigint references tokens (id);
comment on column tokens.begun_by is 'The token by which a browser was signed in: the session ends with it';

alter table releases add ended_at timestamptz;
comment on column releases.ended_at is 'Since when only its outcome is kept, in place, for who comes to read it';
create index releases_of_person on releases (person, id);

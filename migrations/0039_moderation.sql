-- Bans that end; alerts; roles and channels of a front end; who may read a source, as it was stated to its submitter.

alter table bans add until timestamptz;
comment on column bans.until is 'When it ends by itself; null: not until it is lifted';

create table guild_parts (
    guild       text not null,
    kind        text not null,
    part        text,
    lease_until timestamptz not null,
    primary key (guild, kind)
);
comment on table guild_parts is 'The role or channel that a front end uses for a purpose in a server; its name may change, and it is made once';
comment on column guild_parts.part is 'The front end''s own id of it, kept when it is deleted; null while a process makes it';

alter table submissions
    add column consent text not null default 'never'
    check (consent in ('after-deadline', 'always', 'never'));
comment on column submissions.consent is 'Who might read the source, as the board stated when it was submitted; a later change shows it to no more people';
update submissions set consent = source_visibility from boards where boards.id = board and submissions.id > 0;

-- What admins are told of: a worker that is gone, a stuck queue, a card out of service, similar sources.

create table alerts (
    id       bigint generated always as identity primary key,
    key      text not null,
    text     text not null,
    began_at timestamptz not null,
    ended_at timestamptz,
    once     boolean not null
);
comment on column alerts.key is 'What makes two alerts the same: at most one of them lasts';
comment on column alerts.once is 'It has no end, and is told once for ever';
create unique index alerts_lasting on alerts (key) where ended_at is null;

create table alert_messages (
    alert       bigint not null references alerts (id) on delete cascade,
    addressee   text not null,
    message     text,
    has_ended   boolean not null default false,
    tries       int not null default 0,
    due         timestamptz not null,
    owner       text,
    primary key (alert, addressee)
);
comment on column alert_messages.message is 'The front end''s own id of the message; null until it is sent';
comment on column alert_messages.has_ended is 'Whether the message says that the alert has ended';
comment on column alert_messages.due is 'Until then its owner has it, or it waits after a failure';

create table source_prints (
    submission bigint primary key references submissions (id) on delete cascade,
    board      bigint not null references boards (id) on delete cascade,
    person     bigint not null references people (id),
    prints     bigint[] not null
);
comment on table source_prints is 'Hashes of parts of the sources of ranked submissions, by which near-identical ones are found';
create index source_prints_of_board on source_prints (board, person, submission desc);

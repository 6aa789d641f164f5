-- Bans that end, and the roles and channels that a front end made or found in a server.

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

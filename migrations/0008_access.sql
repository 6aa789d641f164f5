-- Who may see a board, and when its sources are shown to others.

alter table boards
    add column visibility text not null default 'public'
        check (visibility in ('public', 'private')),
    add column house text,
    add column source_visibility text not null default 'after-deadline'
        check (source_visibility in ('after-deadline', 'always', 'never')),
    add column guests text[] not null default '{}';
comment on column boards.house is 'What everyone who sees the board must have, such as discord-guild:123; null asks for nothing';
comment on column boards.guests is 'Who sees a private board: doors'' own words, such as discord:17 or discord-role:5';

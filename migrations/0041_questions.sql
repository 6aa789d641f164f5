-- What the Discord bot asked people, kept so that every process of the bot can continue after the answer.

create table questions (
    id          text primary key,
    asked       text not null,
    action      text not null,
    request     text not null,
    content     bytea not null,
    asked_at    timestamptz not null,
    chosen      text[] not null,
    answered_by text
);
comment on table questions is 'Questions below answers to commands, with the file that came with the command; for 15 minutes';
comment on column questions.id is 'The interaction that asked';
comment on column questions.asked is 'The credential of the person who may answer';
comment on column questions.answered_by is 'The only interaction that may continue';
create index questions_by_time on questions (asked_at);

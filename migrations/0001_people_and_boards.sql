-- Who submits, and to what.

create table people (
    id         bigint generated always as identity primary key,
    identity   text not null unique,
    name       text not null,
    created_at timestamptz not null
);
comment on column people.identity is 'The door''s own name of the account, such as local:ada';

create table boards (
    id           bigint generated always as identity primary key,
    name         text not null unique,
    gpus         text[] not null,
    deadline     timestamptz,
    creator      bigint not null references people (id),
    task_version bigint,
    created_at   timestamptz not null
);
comment on column boards.task_version is 'What new submissions are judged by; null only within the transaction that publishes';

create table task_versions (
    id         bigint generated always as identity primary key,
    board      bigint not null references boards (id),
    number     int not null check (number >= 1),
    digest     text not null,
    definition text not null,
    created_at timestamptz not null,
    unique (board, number),
    unique (board, digest),
    unique (board, id)
);
comment on column task_versions.definition is 'TaskDefinition as JSON text: jsonb would refuse an escaped NUL and forget the order of keys';

alter table boards
    add constraint boards_task_version_is_its_own
    foreign key (id, task_version) references task_versions (board, id);

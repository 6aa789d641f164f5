-- Personal tokens, with which programs act for a person.

create table tokens (
    id         bigint generated always as identity primary key,
    person     bigint not null references people (id),
    digest     text not null unique check (digest ~ '^[0-9a-f]{64}$'),
    label      text not null,
    created_at timestamptz not null,
    revoked_at timestamptz
);
comment on column tokens.digest is 'SHA-256 of the token, which is shown once and never kept';
create index tokens_of_person on tokens (person) where revoked_at is null;

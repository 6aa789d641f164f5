-- Whoever repeats a submission with its key does not make a second one.

create table submission_keys (
    person     bigint not null references people (id),
    key        text not null check (length(key) between 1 and 200),
    digest     text not null,
    submission bigint not null references submissions (id),
    made_at    timestamptz not null,
    primary key (person, key)
);
comment on table submission_keys is 'What a person submitted with a key: who sends it again gets that submission, for a day';
comment on column submission_keys.digest is 'Of all that was asked for with the key: anything else with it is refused';
create index submission_keys_of_submission on submission_keys (submission);
create index submission_keys_made_at on submission_keys (made_at);

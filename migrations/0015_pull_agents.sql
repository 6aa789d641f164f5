-- Tokens with which machines judge from elsewhere, and what each worker offers.

alter table tokens add scope text not null default 'person' check (scope in ('person', 'worker'));
alter table tokens alter scope drop default;
alter table tokens add expires_at timestamptz;
comment on column tokens.scope is 'What it is good for: to act for its person, or to judge as a worker';
create unique index tokens_of_workers on tokens (label) where scope = 'worker' and revoked_at is null;

alter table workers add offers text;
alter table workers add seen_at timestamptz not null default now();
alter table workers alter seen_at drop default;
comment on column workers.offers is 'What each of its runners offers, as JSON of runners.contract.runner';
comment on column workers.seen_at is 'When it last gave a sign of life';

-- Which workers live, and room for forgetting old events.

create table workers (
    name        text primary key,
    gpus        text[],
    lease_until timestamptz not null
);
comment on table workers is 'Who works through the queue now; a worker that is gone stays until its lease has run out';
comment on column workers.gpus is 'The GPU types it offers; null while its runners have not answered';

create index job_events_old on job_events (at);

-- The runs of a task's check are jobs of the queue, so that any worker takes them.

create table check_tasks (
    release    bigint not null references releases (id) on delete cascade,
    digest     text not null,
    definition text not null,
    primary key (release, digest)
);
comment on table check_tasks is 'A task that is checked, once for all runs of its check';
comment on column check_tasks.definition is 'TaskDefinition as JSON text';

create table check_runs (
    id         bigint generated always as identity primary key,
    release    bigint not null,
    task       text not null,
    key        text not null,
    request    text not null,
    progress   text,
    evaluation text,
    unique (release, key),
    foreign key (release, task) references check_tasks (release, digest) on delete cascade
);
comment on table check_runs is 'One evaluation of a task that is checked before publication; deleted when its publication ends';
comment on column check_runs.key is 'A hash of what is run: a process that takes over finds the runs that were started before';
comment on column check_runs.request is 'EvaluationRequest without its task, as JSON text';
comment on column check_runs.progress is 'The last Progress as JSON text';
comment on column check_runs.evaluation is 'Evaluation as JSON text';

alter table jobs
    alter submission drop not null,
    add check_run bigint unique references check_runs (id) on delete cascade,
    add check ((submission is null) <> (check_run is null));
comment on column jobs.check_run is 'The run of a check, in place of a submission';

-- Only submissions have events.
create or replace function tell_new_jobs() returns trigger language plpgsql as $$
begin
    insert into job_events (job, submission, kind, body, at)
    select id, submission, state, json_build_object('gpu', gpu, 'attempt', attempt)::text, created_at
    from jobs_after where submission is not null order by id;
    perform pg_notify('podium_ready', gpu) from (select distinct gpu from jobs_after) as pool;
    perform pg_notify('podium_progress', submission::text)
    from (select distinct submission from jobs_after where submission is not null) as moved;
    return null;
end $$;

-- The rows of the submissions are locked in order before their events get ids: otherwise an event
-- with a lower id could appear after a watcher has read past it.
create or replace function tell_moved_jobs() returns trigger language plpgsql as $$
declare
    moved bigint[];
begin
    select array_agg(distinct a.submission) into moved
    from jobs_after a join jobs_before b using (id)
    where a.state <> b.state and a.submission is not null;
    if moved is not null then
        perform 1 from submissions where id = any (moved) order by id for no key update;
        insert into job_events (job, submission, kind, body, at)
        select a.id, a.submission, a.state,
            json_strip_nulls(
                json_build_object('gpu', a.gpu, 'attempt', a.attempt, 'error', a.error))::text,
            a.moved_at
        from jobs_after a join jobs_before b using (id)
        where a.state <> b.state and a.submission is not null order by a.id;
        perform pg_notify('podium_progress', submission::text) from unnest(moved) as submission;
    end if;
    perform pg_notify('podium_ready', gpu) from (
        select distinct a.gpu from jobs_after a join jobs_before b using (id)
        where a.state <> b.state and (a.state = 'queued' or b.state = 'running')) as pool;
    perform pg_notify('podium_cancel', a.id::text)
    from jobs_after a join jobs_before b using (id)
    where a.cancel_requested and not b.cancel_requested;
    return null;
end $$;

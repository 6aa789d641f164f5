-- GPU time: what a job may use at most, what each attempt used, and quotas of seconds and of money.

alter table jobs
    add column limit_s double precision not null default 0 check (limit_s >= 0),
    add column cards int not null default 1 check (cards >= 1),
    add column waits text not null default '';
comment on column jobs.limit_s is 'The most seconds that it may take; on all its cards, they are reserved while it runs';
comment on column jobs.cards is 'How many GPUs it uses';
comment on column jobs.waits is 'The quota of GPU time that it waits for, in words; empty: none';

create table gpu_quotas (
    unit        text not null check (unit in ('seconds', 'dollars')),
    each_person boolean not null,
    board       bigint references boards (id) on delete cascade,
    gpu         text,
    most        double precision not null check (most > 0 and most < 'infinity'),
    unique nulls not distinct (unit, each_person, board, gpu)
);
comment on table gpu_quotas is 'The most GPU time of a day (UTC); null covers every board, or all GPU types together';
comment on column gpu_quotas.each_person is 'Whether each person has it, or all people together';

create table gpu_time (
    job        bigint not null,
    fence      bigint not null,
    person     bigint not null references people (id),
    board      bigint,
    board_name text not null,
    gpu        text not null,
    kind       text not null check (kind in (
        'submission', 'check', 'rejudge', 'reference', 'confirmation', 'fault')),
    seconds    double precision not null check (seconds >= 0 and seconds < 'infinity'),
    at         timestamptz not null,
    primary key (job, fence)
);
comment on table gpu_time is 'What each attempt used; it stays when its job and its board are deleted';
comment on column gpu_time.board_name is 'Empty for the check of a task';
comment on column gpu_time.kind is 'Why it was used, see bot.domain.costs.UsageKind';
comment on column gpu_time.seconds is 'Seconds for which it had its GPUs, times their number';
create index gpu_time_recent on gpu_time (at);

create function add_gpu_time(of_job bigint, spent_s double precision, by_fault boolean, at timestamptz)
returns void language sql as $$
    insert into gpu_time (job, fence, person, board, board_name, gpu, kind, seconds, at)
    select jobs.id, fence, jobs.person, boards.id, coalesce(boards.name, ''), gpu,
        case
            when exists (select from confirmation_runs where run = submission) then 'confirmation'
            when submission < 0 then 'reference'
            when by_fault then 'fault'
            when judged_again then 'rejudge'
            when submission is null then 'check'
            else 'submission'
        end,
        spent_s, at
    from jobs left join submissions on submissions.id = submission
        left join boards on boards.id = submissions.board
    where jobs.id = of_job
$$;

-- A running job is deleted with its check or its board: what it used is not forgotten.
create function keep_gpu_time() returns trigger language plpgsql as $$
begin
    perform add_gpu_time(
        old.id,
        old.cards * greatest(0, least(old.limit_s, extract(epoch from now() - old.moved_at))),
        old.check_run is null,
        now());
    return old;
end $$;

create trigger keep_deleted before delete on jobs
    for each row when (old.state = 'running') execute function keep_gpu_time();

select add_gpu_time(job, used_s, verdict = 'task_error', at) from evaluations;

-- name: lock_gpu
-- Claims of one GPU type wait for each other, which makes its limit exact. The running jobs are counted
-- by a separate statement (`running`), which sees what the previous claim committed.
--
-- The setting lasts for this transaction: if the statistics say that the queue is empty, the planner
-- would read and sort all of it instead of walking along jobs_in_line.
select max_running, paused, set_config('enable_sort', 'off', true) from pools where gpu = $1
for no key update

-- name: running
select count(*) from jobs where gpu = $1 and state = 'running'

-- name: claim
-- One walk along the index jobs_in_line for the jobs of any pool, and one for those pinned to each of
-- the worker's pools. The cost does not depend on the number of people or jobs.
with line as materialized (
    select first.* from unnest($6::text[], $7::int[]) as mine (pool, room) cross join lateral (
        select id, priority, turn from jobs
        where gpu = $1 and jobs.pool = mine.pool and state = 'queued' and run_at <= $3
        order by priority desc, turn, id limit mine.room
        for no key update skip locked
    ) as first
),
picked as materialized (
    select id from line order by priority desc, turn, id limit $2
),
claimed as (
    update jobs set
        state = 'running', attempt = attempt + 1, fence = fence + 1, worker = $4,
        lease_until = $5, started_at = coalesce(started_at, $3), moved_at = $3, waits = ''
    where id = any (array(select id from picked))
    returning *
),
passed as (
    insert into present_turns (gpu, priority, turn)
    select gpu, priority, max(turn) from claimed group by gpu, priority
    on conflict (gpu, priority) do update set turn = excluded.turn
    where present_turns.turn < excluded.turn
)
select * from claimed order by priority desc, turn, id

-- name: attach
update jobs set call = $3 where id = $1 and fence = $2 and state = 'running'
returning id

-- name: heartbeat
with held as (
    select jobs.id from jobs join unnest($2::bigint[], $3::bigint[]) as lease (id, fence)
        on jobs.id = lease.id and jobs.fence = lease.fence
    where state = 'running' and worker = $1
    order by jobs.id for no key update of jobs
)
update jobs set lease_until = $4 from held where jobs.id = held.id
returning jobs.id, jobs.cancel_requested

-- name: accept
with ended as (
    update jobs set state = 'succeeded', error = null, lease_until = null,
        finished_at = $10, moved_at = $10
    where id = $1 and fence = $2 and state = 'running'
    returning id, submission, gpu
),
evaluated as (
    insert into evaluations (
        job, submission, task_version, gpu, verdict, stage, message, wall_s, used_s, evaluation, at,
        noisy
    )
    select ended.id, submission, task_version, gpu, $3, $4, $5, $6, $12, $7, $10, $19
    from ended join submissions on submissions.id = submission
),
filed as (
    insert into evaluation_files (job, name, zipped)
    select ended.id, name, zipped from ended, unnest($13::text[], $14::bytea[]) as file (name, zipped)
),
timed as (
    update reference_times set time_ns = $8, half_width_ns = $9,
        resolution_ns = $15, claimed_ns = $16, machine = $11, at = $10
    from ended where reference_times.submission = ended.submission and $8::float8 is not null
    returning reference_times.submission
),
scored as (
    insert into scores (
        job, submission, task_version, gpu, time_ns, half_width_ns, resolution_ns, claimed_ns,
        reference_ratio, reference_half_width
    )
    select ended.id, submission, task_version, gpu, $8, $9, $15, $16, $17, $18
    from ended join submissions on submissions.id = submission
    where $8::float8 is not null and not exists (select from timed)
),
untold as (
    insert into untold (job)
    select id from ended where $8::float8 is not null and not exists (select from timed)
)
select id, add_gpu_time(id, $12, $3 = 'task_error', $10) from ended

-- name: lock_held
-- Here and below no key is locked. Otherwise `add_progress`, which has locked the submission and refers to
-- the job, would wait for this transaction while it waits for the submission.
select * from jobs where id = $1 and fence = $2 and state = 'running' for no key update

-- name: lock_unfinished
select * from jobs where submission = $1 and state in ('queued', 'running')
order by id for no key update

-- name: unfinished_of
-- Each state has its own index; one condition for both states would use neither.
select submission from jobs where person = $1 and state = 'queued' and submission is not null
union
select submission from jobs where person = $1 and state = 'running' and submission is not null
order by submission

-- name: lock_expired
select * from jobs where state = 'running' and lease_until < $1
order by lease_until limit $2 for no key update skip locked

-- name: move
-- Writes what bot/domain/job.py decided for jobs that this transaction has locked.
update jobs set
    state = moved.state, attempt = moved.attempt, max_attempts = moved.max_attempts,
    worker = moved.worker, call = moved.call, error = moved.error, run_at = moved.run_at,
    finished_at = moved.finished_at, lease_until = null, moved_at = $10, used_s = moved.used_s
from unnest(
    $1::bigint[], $2::text[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[],
    $8::timestamptz[], $9::timestamptz[], $11::float8[]
) as moved (id, state, attempt, max_attempts, worker, call, error, run_at, finished_at, used_s)
where jobs.id = moved.id

-- name: request_cancel
update jobs set cancel_requested = true, error = $2 where id = any ($1::bigint[])

-- name: of
select * from jobs where submission = $1 order by gpu collate "C"

-- name: get
select * from jobs where id = $1

-- name: ahead
-- Two ranges of jobs_in_line for each pool: a single condition would read all jobs of the GPU type from
-- the table. The pools of queued jobs are those to which boards pin the GPU type.
with mine as materialized (
    select gpu, pool, priority, turn, id from jobs where id = $1 and state = 'queued'
),
pins as materialized (
    select '' as pool
    union
    select value from boards, jsonb_each_text(pools)
    where key = (select gpu from mine) and (select pool from mine) in ('', value)
),
above as (
    select coalesce(sum(found.count), 0) as count from pins cross join lateral (
        select count(*) from jobs where state = 'queued' and jobs.pool = pins.pool
            and gpu = (select gpu from mine) and priority > (select priority from mine)
    ) as found
),
level as (
    select coalesce(sum(found.count), 0) as count from pins cross join lateral (
        select count(*) from jobs where state = 'queued' and jobs.pool = pins.pool
            and gpu = (select gpu from mine) and priority = (select priority from mine)
            and (turn, id) < ((select turn from mine), (select id from mine))
    ) as found
)
select above.count + level.count from above, level

-- name: add_progress
insert into job_events (job, submission, kind, body, at)
select jobs.id, submissions.id, $3, $4, $5
from jobs join submissions on submissions.id = jobs.submission
where jobs.id = $1 and jobs.fence = $2 and jobs.state = 'running'
for no key update of submissions
returning submission, pg_notify('podium_progress', submission::text)

-- name: events
select * from job_events where submission = $1 and id > $2 order by id

-- name: latest
-- Reads backwards along job_events_in_order, because a long evaluation has many events.
select newest.* from jobs cross join lateral (
    select * from job_events where submission = $1 and job = jobs.id order by id desc limit 1
) as newest
where jobs.submission = $1 and jobs.state = 'running'
order by newest.id

-- name: delete_events
delete from job_events where id in (
    select job_events.id from job_events join jobs on jobs.id = job
    where at < $1 and finished_at < $1 limit $2
)
returning id

-- name: limit
insert into pools (gpu, max_running, paused) values ($1, $2, $3)
on conflict (gpu) do update set max_running = excluded.max_running, paused = excluded.paused
returning pg_notify('podium_ready', gpu)

-- name: backlog
-- Two counts, each within an index that has only the jobs of one state.
select gpu, 'queued' as state, count(*) as jobs from jobs where state = 'queued' group by gpu
union all
select gpu, 'running', count(*) from jobs where state = 'running' group by gpu

-- name: unfinished
select found.*, people.name as person_name, submissions.board
from unnest($1::text[]) with ordinality as asked (gpu, number)
cross join lateral (
    (
        select jobs.*, row_number() over (order by started_at, id) as position from jobs
        where state = 'running' and jobs.gpu = asked.gpu order by started_at, id
        limit case when $3::bigint is null then $2::bigint end
    )
    union all
    (
        select jobs.*, row_number() over (order by priority desc, turn, id) as position from jobs
        where state = 'queued' and jobs.gpu = asked.gpu order by priority desc, turn, id
        limit case when $3::bigint is null then $2::bigint end
    )
) as found
join submissions on submissions.id = found.submission
join people on people.id = found.person
where found.submission > 0 and (found.position <= $2 or found.person = $3)
order by asked.number, found.state desc, found.position

-- name: lock_pool
-- Claims of one pool wait for each other, which makes its limit exact. The counting is a statement
-- of its own, so that it sees what the claim before this one committed.
select max_running, paused from pools where gpu = $1 for no key update

-- name: running
select count(*) from jobs where gpu = $1 and state = 'running'

-- name: claim
-- Jumps from each (priority, person) to the next along the index, and looks only at the first few
-- jobs of each: the cost follows the number of people who wait, not the number of their jobs.
with recursive waiting as (
    (select priority, person from jobs where gpu = $1 and state = 'queued'
     order by priority desc, person limit 1)
    union all
    select next.priority, next.person
    from waiting, lateral (
        (select priority, person from jobs
         where gpu = $1 and state = 'queued'
             and priority = waiting.priority and person > waiting.person
         order by person limit 1)
        union all
        (select priority, person from jobs
         where gpu = $1 and state = 'queued' and priority < waiting.priority
         order by priority desc, person limit 1)
        limit 1
    ) as next
),
busy as (
    select person, count(*) as turns from jobs where gpu = $1 and state = 'running' group by person
),
candidate as (
    select waiting.priority, waiting.person, job.id, job.run_at
    from waiting, lateral (
        select id, run_at from jobs
        where gpu = $1 and state = 'queued'
            and priority = waiting.priority and person = waiting.person and run_at <= $3
        order by run_at, id limit $2
    ) as job
),
placed as (
    select id, priority, run_at,
        coalesce(turns, 0)
        + row_number() over (partition by person order by priority desc, run_at, id) as turn
    from candidate left join busy using (person)
),
picked as materialized (
    select id, row_number() over (order by priority desc, turn, run_at, id) as place
    from placed order by place limit $2
),
free as materialized (
    -- Still queued? Asked in words which no partial index knows, and of an array: otherwise the
    -- planner may read every queued job to find these few.
    select id from jobs
    where id = any (array(select id from picked)) and state <> 'running' and finished_at is null
    for update skip locked
),
claimed as (
    update jobs set
        state = 'running', attempt = attempt + 1, fence = fence + 1, worker = $4,
        lease_until = $5, started_at = coalesce(started_at, $3), moved_at = $3
    where id = any (array(select id from free))
    returning *
)
select claimed.* from claimed join picked using (id) order by place

-- name: attach
update jobs set call = $3 where id = $1 and fence = $2 and state = 'running'
returning id

-- name: beat
with held as (
    select jobs.id from jobs join unnest($2::bigint[], $3::bigint[]) as lease (id, fence)
        on jobs.id = lease.id and jobs.fence = lease.fence
    where state = 'running' and worker = $1
    order by jobs.id for update of jobs
)
update jobs set lease_until = $4 from held where jobs.id = held.id
returning jobs.id, jobs.cancel_requested

-- name: accept
with ended as (
    update jobs set state = 'succeeded', error = null, lease_until = null,
        finished_at = $8, moved_at = $8
    where id = $1 and fence = $2 and state = 'running'
    returning id, submission, gpu
),
evaluated as (
    insert into evaluations (job, submission, gpu, verdict, message, evaluation, at)
    select id, submission, gpu, $3, $4, $5, $8 from ended
),
scored as (
    insert into scores (job, submission, task_version, gpu, time_ns, half_width_ns)
    select ended.id, submission, task_version, gpu, $6, $7
    from ended join submissions on submissions.id = submission
    where $6::float8 is not null
)
select id from ended

-- name: lock_held
select * from jobs where id = $1 and fence = $2 and state = 'running' for update

-- name: lock_unfinished
select * from jobs where submission = $1 and state in ('queued', 'running') order by id for update

-- name: lock_expired
select * from jobs where state = 'running' and lease_until < $1
order by lease_until limit $2 for update skip locked

-- name: move
-- Writes what bot/store/transitions.py decided for jobs that this transaction has locked.
update jobs set
    state = moved.state, attempt = moved.attempt, max_attempts = moved.max_attempts,
    worker = moved.worker, call = moved.call, error = moved.error, run_at = moved.run_at,
    finished_at = moved.finished_at, lease_until = null, moved_at = $10
from unnest(
    $1::bigint[], $2::text[], $3::int[], $4::int[], $5::text[], $6::text[], $7::text[],
    $8::timestamptz[], $9::timestamptz[]
) as moved (id, state, attempt, max_attempts, worker, call, error, run_at, finished_at)
where jobs.id = moved.id

-- name: ask_to_stop
update jobs set cancel_requested = true where id = any ($1::bigint[])

-- name: of
select * from jobs where submission = $1 order by gpu collate "C"

-- name: get
select * from jobs where id = $1

-- name: ahead
-- Counts by person, without sorting the pool: jobs of the same turn all count as earlier.
with mine as (
    select * from jobs where id = $1 and state = 'queued'
),
waiting as (
    select jobs.person,
        count(*) filter (where jobs.priority > mine.priority) as above,
        count(*) filter (where jobs.priority = mine.priority) as level,
        count(*) filter (where jobs.person = mine.person and jobs.priority = mine.priority
            and (jobs.run_at, jobs.id) < (mine.run_at, mine.id)) as before
    from jobs join mine using (gpu)
    where jobs.state = 'queued' and jobs.priority >= mine.priority group by jobs.person
),
had as (
    select jobs.person, count(*) as turns from jobs join mine using (gpu)
    where jobs.state = 'running' group by jobs.person
),
turn as (
    select above + before + coalesce(turns, 0) as earlier
    from waiting join mine using (person) left join had using (person)
)
select coalesce(sum(
    above + case when waiting.person = mine.person then before
        else least(level, greatest(0, earlier + 1 - above - coalesce(turns, 0))) end
), 0)::bigint
from waiting cross join mine cross join turn left join had on had.person = waiting.person

-- name: tell
insert into job_events (job, submission, kind, body, at)
select jobs.id, submissions.id, $3, $4, $5
from jobs join submissions on submissions.id = jobs.submission
where jobs.id = $1 and jobs.fence = $2 and jobs.state = 'running'
for no key update of submissions
returning submission, pg_notify('podium_progress', submission::text)

-- name: events
select * from job_events where submission = $1 and id > $2 order by id

-- name: limit
insert into pools (gpu, max_running, paused) values ($1, $2, $3)
on conflict (gpu) do update set max_running = excluded.max_running, paused = excluded.paused
returning pg_notify('podium_ready', gpu)

-- name: backlog
select gpu, state, count(*) as jobs from jobs where state in ('queued', 'running')
group by gpu, state

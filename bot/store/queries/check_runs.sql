-- name: store_task
with home as (
    select id from releases where id = $1 and ended_at is null for key share
)
insert into check_tasks (release, digest, definition) select id, $2, $3 from home
on conflict do nothing

-- name: add
-- If two statements add the same key, the second waits for the first and returns nothing.
with home as (
    select id, person from releases
    where id = $1 and ended_at is null and cancelled is null for key share
),
present as (
    select jobs.id as job from jobs join check_runs on check_runs.id = check_run
    where release = $1 and key = $2 and exists (select from home)
),
pool as (
    insert into pools (gpu) values ($4) on conflict do nothing
),
run as (
    insert into check_runs (release, key, request, task) select id, $2, $3, $9 from home
    where not exists (select from present)
    on conflict do nothing
    returning id, release
),
queued as (
    insert into jobs (
        check_run, person, gpu, mode, priority, turn, max_attempts, run_at, created_at, moved_at,
        limit_s, cards
    )
    select run.id, person, $4, $5, $6, next_turn(person, $4, $6), $7, $8, $8, $8, $10, $11
    from run join home on home.id = release
    returning id as job
)
select job from present union all select job from queued

-- name: get
select jobs.id as job, gpu, jobs.state, error, progress, evaluation, waits
from jobs join check_runs on check_runs.id = check_run join releases on releases.id = release
where jobs.id = $1 and cancelled is null

-- name: request
select request, definition
from check_runs join check_tasks on check_tasks.release = check_runs.release and digest = task
where id = $1

-- name: save_progress
update check_runs set progress = $3 from jobs
where jobs.id = $1 and fence = $2 and state = 'running' and check_runs.id = check_run
returning check_runs.id

-- name: accept
with ended as (
    update jobs set state = 'succeeded', error = null, lease_until = null,
        finished_at = $4, moved_at = $4
    where id = $1 and fence = $2 and state = 'running'
    returning id as job, check_run
)
update check_runs set evaluation = $3 from ended where check_runs.id = check_run
returning check_runs.id, add_gpu_time(job, $5, $6, $4)

-- name: add
insert into boards (
    name, gpus, deadline, creator, created_at, visibility, house, source_visibility, guests, pools,
    opens_at, late_runs, grader
)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
returning id

-- name: lock
select name, task_version from boards where id = $1 for no key update

-- name: add_version
insert into task_versions (board, number, digest, definition, created_at)
select $1, coalesce(max(number), 0) + 1, $2, $3, $4 from task_versions where board = $1
on conflict (board, digest) do nothing

-- name: version_of_digest
select * from task_versions where board = $1 and digest = $2

-- name: use_version
update boards set task_version = $2 where id = $1
returning *

-- name: configure
update boards set gpus = $2, deadline = $3 where id = $1
returning *

-- name: get_locked
select * from boards where id = $1 for no key update

-- name: pin
update boards set pools = $2 where id = $1
returning *

-- name: pin_jobs
-- Unfinished jobs follow the board: no job may wait for a pool that the board no longer uses.
with held as (
    select jobs.id, coalesce(pools ->> jobs.gpu, '') as pool
    from jobs join submissions on submissions.id = submission join boards on boards.id = board
    where boards.id = $1 and jobs.mode = 'ranked' and jobs.state in ('queued', 'running')
    order by jobs.id for no key update of jobs
),
pinned as (
    update jobs set pool = held.pool from held where held.id = jobs.id and jobs.pool <> held.pool
    returning gpu
)
select pg_notify('podium_ready', gpu) from (select distinct gpu from pinned) as each

-- name: time_again
-- A time from another pool is no longer comparable. A reference without a time is being timed; it stays.
delete from reference_times using boards
where boards.id = $1 and reference_times.task_version = boards.task_version
    and reference_times.gpu = any ($2::text[]) and time_ns is not null

-- name: set_rules
update boards set opens_at = $2, late_runs = $3 where id = $1
returning *

-- name: choose_grader
update boards set grader = $2 where id = $1
returning *

-- name: restrict
update boards set visibility = $2, house = $3, source_visibility = $4 where id = $1
returning *

-- name: invite
update boards set guests = array(select distinct unnest(guests || $2::text[])) where id = $1
returning *

-- name: uninvite
update boards
set guests = array(select guest from unnest(guests) as guest where guest <> all ($2::text[]))
where id = $1
returning *

-- name: find
select * from boards where name = $1

-- name: get
select * from boards where id = $1

-- name: all
select * from boards where name not like '/%' order by name collate "C"

-- name: version
select * from task_versions where id = $1

-- name: versions
select * from task_versions where board = $1 order by number

-- name: lock_whole
-- Blocks new submissions: each locks the key of its board.
select id from boards where id = $1 for update

-- name: lock_jobs
-- Jobs are locked before their submissions, as in `accept`. No key is locked, because `add_progress`
-- locks the submission first.
select jobs.id from jobs join submissions on submissions.id = submission where board = $1
order by jobs.id for no key update of jobs

-- name: lock_submissions
select id from submissions where board = $1 order by id for update

-- name: drop_untold
delete from untold using jobs where jobs.id = job and submission = any ($1::bigint[])

-- name: drop_scores
delete from scores where submission = any ($1::bigint[])

-- name: drop_files
delete from evaluation_files using evaluations
where evaluations.job = evaluation_files.job and submission = any ($1::bigint[])

-- name: drop_evaluations
delete from evaluations where submission = any ($1::bigint[])

-- name: drop_events
delete from job_events where submission = any ($1::bigint[])

-- name: drop_jobs
delete from jobs where submission = any ($1::bigint[])

-- name: drop_displays
delete from displays where submission = any ($1::bigint[])

-- name: drop_exclusions
delete from exclusions where submission = any ($1::bigint[])

-- name: drop_keys
delete from submission_keys where submission = any ($1::bigint[])

-- name: drop_entrants
delete from entrants using task_versions where id = task_version and board = $1

-- name: drop_leaderboards
delete from leaderboards using task_versions where id = task_version and board = $1

-- name: drop_references
delete from reference_times using task_versions where id = task_version and board = $1

-- name: drop_submissions
delete from submissions where id = any ($1::bigint[])

-- name: drop_outbox
delete from outbox where board = $1

-- name: drop_limits
delete from rate_limits where board = $1

-- name: unset_version
update boards set task_version = null where id = $1

-- name: drop_versions
delete from task_versions where board = $1

-- name: drop
delete from boards where id = $1

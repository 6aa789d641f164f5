-- name: untimed
select boards.id as board, boards.task_version, gpus.gpu
from boards, unnest(boards.gpus) as gpus (gpu)
where boards.task_version is not null and not exists (
    select from reference_times
    where reference_times.task_version = boards.task_version and reference_times.gpu = gpus.gpu
)
order by boards.id, gpus.gpu collate "C"

-- name: order
-- If two statements run at once, one violates the primary key and adds nothing.
with source as (
    insert into sources (sha256, text) values ($5, $6) on conflict do nothing
),
pool as (
    insert into pools (gpu) values ($3) on conflict do nothing
),
home as (
    select pools from boards
    where id = (select board from task_versions where id = $2) for share
),
added as (
    insert into submissions (
        id, person, board, task_version, file_name, source, mode, gpus, created_at, judged_again
    )
    overriding system value
    select nextval('house_submissions'), $1, board, id, $4, $5, $7, array[$3], $10, true from task_versions
    where id = $2 and not exists (
        select from reference_times where task_version = $2 and gpu = $3
    )
    returning *
),
queued as (
    insert into jobs (
        submission, person, gpu, mode, priority, turn, max_attempts, run_at, created_at, moved_at,
        pool
    )
    select id, person, $3, mode, $8, next_turn(person, $3, $8), $9,
        created_at, created_at, created_at, coalesce((select pools ->> $3::text from home), '')
    from added
)
insert into reference_times (task_version, gpu, submission)
select task_version, $3, id from added
returning submission

-- name: mark_untimeable
-- Locks the board's key, as a submission does: nothing is added to a board that is being deleted.
with held as (
    select boards.id from boards join task_versions on board = boards.id
    where task_versions.id = $1 for key share of boards
)
insert into reference_times (task_version, gpu) select $1, $2 from held
on conflict (task_version, gpu) do nothing
returning gpu

-- name: delete_given_up
-- Runs every few seconds. With a join, the planner may read every job, because it underestimates how
-- many jobs have ended like this.
delete from reference_times
where time_ns is null and $1 > (
    select max(finished_at) from jobs
    where jobs.submission = reference_times.submission and state in ('failed', 'cancelled')
)
returning gpu

-- name: of
select reference_times.*, jobs.state, jobs.error, verdict, message
from reference_times
left join jobs using (submission)
left join evaluations on evaluations.job = jobs.id
where reference_times.task_version = $1 and reference_times.gpu = $2

-- name: lock_unrecorded
select reference_times.task_version, reference_times.gpu, boards.name, number,
    jobs.state, jobs.error, verdict, message
from reference_times
join jobs using (submission)
join task_versions on task_versions.id = reference_times.task_version
join boards on boards.id = board
left join evaluations on evaluations.job = jobs.id
where not noted and time_ns is null and state in ('succeeded', 'failed', 'cancelled')
for no key update of reference_times skip locked

-- name: mark_recorded
update reference_times set noted = true where task_version = $1 and gpu = $2

-- name: usual
insert into usual_references (task_version, times_ns) values ($1, $2)
on conflict (task_version) do update set times_ns = usual_references.times_ns
returning times_ns

-- name: evaluations
select * from evaluations where submission = $1 order by gpu collate "C"

-- name: files
select gpu, name, zipped from evaluation_files join evaluations using (job)
where submission = $1 order by gpu collate "C", name collate "C"

-- name: outcomes
select evaluations.submission, evaluations.gpu, verdict, time_ns, half_width_ns, resolution_ns, claimed_ns,
    exclusions.kind as exclusion, evaluations.noisy
from evaluations left join scores using (job)
left join exclusions on exclusions.submission = evaluations.submission
where evaluations.submission = any ($1::bigint[])
order by evaluations.submission, evaluations.gpu collate "C"

-- name: scores
select scores.submission, submissions.person, shown_names.name as person_name, board,
    scores.task_version, scores.gpu,
    time_ns, half_width_ns, resolution_ns, claimed_ns, reference_ratio, reference_half_width,
    submissions.created_at as submitted_at, worker, call
from scores join jobs on jobs.id = job
join submissions on submissions.id = scores.submission
join shown_names on shown_names.person = submissions.person
    and shown_names.task_version = scores.task_version and shown_names.gpu = scores.gpu
where scores.task_version = $1 and scores.gpu = $2
    and not exists (select from exclusions where exclusions.submission = scores.submission)
order by upper_ns, scores.submission

-- name: scores_of
select scores.submission, submissions.person, shown_names.name as person_name, board,
    scores.task_version, scores.gpu,
    time_ns, half_width_ns, resolution_ns, claimed_ns, reference_ratio, reference_half_width,
    submissions.created_at as submitted_at, worker, call
from submissions
join scores on scores.submission = submissions.id and scores.gpu = $3
join jobs on jobs.id = job
join shown_names on shown_names.person = submissions.person
    and shown_names.task_version = scores.task_version and shown_names.gpu = scores.gpu
where submissions.person = $1 and submissions.task_version = $2
    and not exists (select from exclusions where exclusions.submission = submissions.id)
order by submissions.created_at, submissions.id

-- name: score_count
select coalesce(sum(attempts), 0)::bigint as total from entrants where task_version = $1 and gpu = $2

-- name: score_history
with chosen as (
    select submission from records where task_version = $1 and gpu = $2
    union
    select scores.submission from entrants join scores on job = best
    where entrants.task_version = $1 and entrants.gpu = $2
    union
    -- Whether these are records, their ratios say.
    select submission from confirmations where task_version = $1 and gpu = $2 and ratio is not null
    union
    select rival from confirmations where task_version = $1 and gpu = $2 and ratio is not null
    union
    select submission from scores where task_version = $1 and gpu = $2 and hashint8(job) <= $3
)
select scores.submission, submissions.person, shown_names.name as person_name, board,
    scores.task_version, scores.gpu,
    time_ns, half_width_ns, resolution_ns, claimed_ns, reference_ratio, reference_half_width,
    submissions.created_at as submitted_at, worker, call
from chosen
join scores on scores.submission = chosen.submission and scores.gpu = $2
join jobs on jobs.id = job
join submissions on submissions.id = scores.submission
join shown_names on shown_names.person = submissions.person
    and shown_names.task_version = scores.task_version and shown_names.gpu = scores.gpu
where not exists (select from exclusions where exclusions.submission = scores.submission)
order by submissions.created_at, submissions.id

-- name: fastest
select best.*, shown_names.name as person_name, wanted.version as task_version, wanted.gpu
from unnest($1::bigint[], $2::text[]) as wanted (version, gpu)
cross join lateral (
    select scores.submission, submissions.person, board, time_ns, half_width_ns,
        resolution_ns, claimed_ns, reference_ratio, reference_half_width,
        submissions.created_at as submitted_at, worker, call
    from scores join jobs on jobs.id = job
    join submissions on submissions.id = scores.submission
    where scores.task_version = wanted.version and scores.gpu = wanted.gpu
        and not exists (select from exclusions where exclusions.submission = scores.submission)
    order by upper_ns, submissions.created_at, scores.submission
    limit 1
) as best
join shown_names on shown_names.person = best.person
    and shown_names.task_version = wanted.version and shown_names.gpu = wanted.gpu

-- name: revision
select moves from leaderboards where task_version = $1 and gpu = $2

-- name: entrants
-- With the value, because a final changes it: the rest of a score never changes.
select best, shown_names.name as person_name, attempts, time_ns, half_width_ns, resolution_ns, claimed_ns
from entrants join shown_names using (task_version, gpu, person) join scores on job = best
where entrants.task_version = $1 and entrants.gpu = $2

-- name: scores_by_job
select job, scores.submission, submissions.person, shown_names.name as person_name, board,
    scores.task_version, scores.gpu,
    time_ns, half_width_ns, resolution_ns, claimed_ns, reference_ratio, reference_half_width,
    submissions.created_at as submitted_at, worker, call
from scores join jobs on jobs.id = job
join submissions on submissions.id = scores.submission
join shown_names on shown_names.person = submissions.person
    and shown_names.task_version = scores.task_version and shown_names.gpu = scores.gpu
where job = any ($1::bigint[])

-- name: refusals
select refused, shown_names.name as person_name from entrants join shown_names using (task_version, gpu, person)
where task_version = $1 and gpu = $2 and refused is not null

-- name: refusals_by_job
-- For the run of a comparison, the row has the submission that was compared.
select job, submissions.id as submission, submissions.person, shown_names.name as person_name, evaluations.gpu,
    verdict, stage, coalesce(confirmations.reason, message) as message,
    confirmations.id is not null as in_confirmation, submissions.created_at as submitted_at
from evaluations
left join confirmation_runs on run = evaluations.submission
left join confirmations on confirmations.id = confirmation
join submissions on submissions.id = coalesce(confirmations.submission, evaluations.submission)
join shown_names on shown_names.person = submissions.person
    and shown_names.task_version = evaluations.task_version and shown_names.gpu = evaluations.gpu
where job = any ($1::bigint[])

-- name: gpu_durations
-- Reads the newest jobs by the primary key, so a rarely used GPU type costs no more than others.
select wall_s from (
    select job, gpu, wall_s from evaluations where submission > 0 order by job desc limit 1000
) as newest
where gpu = $1 order by job desc limit $2

-- name: durations
select wall_s from evaluations where task_version = $1 and gpu = $2 and submission > 0
order by at desc, job desc limit $3

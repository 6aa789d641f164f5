-- name: evaluations
select * from evaluations where submission = $1 order by gpu collate "C"

-- name: outcomes
select evaluations.submission, evaluations.gpu, verdict, time_ns, half_width_ns
from evaluations left join scores using (job)
where evaluations.submission = any ($1::bigint[])
order by evaluations.submission, evaluations.gpu collate "C"

-- name: scores
select scores.submission, person, people.name as person_name, board, scores.task_version, gpu,
    time_ns, half_width_ns, submissions.created_at as submitted_at
from scores
join submissions on submissions.id = scores.submission
join people on people.id = person
where scores.task_version = $1 and gpu = $2
    and not exists (select from exclusions where exclusions.submission = scores.submission)
order by time_ns, scores.submission

-- name: refusals
select * from (
    select distinct on (person) submissions.id as submission, person, people.name as person_name,
        gpu, verdict, stage, message, submissions.created_at as submitted_at
    from submissions
    join evaluations on evaluations.submission = submissions.id
    join people on people.id = person
    where submissions.task_version = $1 and mode = 'ranked' and gpu = $2 and verdict <> 'passed'
        and submissions.id > 0
    order by person, submissions.id desc
) as newest
order by submission desc

-- name: pool_durations
-- The newest jobs by the primary key, so that a GPU type which is seldom used costs no more.
select wall_s from (
    select job, gpu, wall_s from evaluations where submission > 0 order by job desc limit 1000
) as newest
where gpu = $1 order by job desc limit $2

-- name: durations
select wall_s from evaluations where task_version = $1 and gpu = $2 and submission > 0
order by at desc, job desc limit $3

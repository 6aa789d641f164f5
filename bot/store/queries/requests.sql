-- name: tallies
select jobs.state, count(*) as requests,
    avg(extract(epoch from $2::timestamptz - jobs.created_at))::float8 as age_s
from submissions join jobs on jobs.submission = submissions.id
where board = $1
group by jobs.state

-- name: newest
-- Quotation marks in a candidate's output are escaped in JSON, so its output cannot match the key.
select jobs.gpu, jobs.state, jobs.created_at, started_at, finished_at, verdict, stage,
    evaluations.used_s,
    substring(evaluation from '"durations_s":(\{[^{}]*\})') as durations_s
from submissions
join jobs on jobs.submission = submissions.id
left join evaluations on evaluations.job = jobs.id
where board = $1
order by submissions.id desc limit $2

-- name: overdue
select submissions.id from submissions join jobs on jobs.submission = submissions.id
where board = $1 and state in ('queued', 'running') and jobs.created_at < $2
order by submissions.id

-- name: lock_ended
select submissions.id, source from submissions join jobs on jobs.submission = submissions.id
where board = $1 and finished_at < $2 and ($3::bigint is null or submissions.person = $3)
limit $4 for update of submissions

-- name: drop_sources
delete from sources
where sha256 = any ($1::text[]) and not exists (select from submissions where source = sha256)

-- name: drop_versions
delete from task_versions
where board = $1 and id <> (select task_version from boards where id = $1) and not exists (
    select from submissions
    where submissions.board = $1 and submissions.task_version = task_versions.id
)

-- name: people
select count(*) as count from people where identity <> $1

-- name: participants
select board, count(distinct person) as people from submissions where not judged_again
group by board

-- name: days
select (created_at at time zone 'UTC')::date as day, count(*) as submissions,
    count(distinct person) as people
from submissions where created_at >= $1 and id > 0
group by day order by day

-- name: verdicts
select verdict, count(*) as count from evaluations where at >= $1 and submission > 0 group by verdict

-- name: usage
-- The runs of confirmations are counted apart.
select boards.name as board, people.name || case when run is null then '' else ' (confirmations)' end as person,
    evaluations.gpu, count(*) as evaluations, sum(evaluations.used_s) as seconds
from evaluations
    left join confirmation_runs on run = evaluations.submission
    join submissions on submissions.id = evaluations.submission
    join boards on boards.id = submissions.board
    join people on people.id = submissions.person
where evaluations.at >= $1
group by boards.name, people.id, run is null, evaluations.gpu
order by boards.name, people.id, run is null desc, evaluations.gpu

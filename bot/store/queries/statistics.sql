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

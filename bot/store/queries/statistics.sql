-- name: people
select count(*) as count from people

-- name: days
select (created_at at time zone 'UTC')::date as day, count(*) as submissions,
    count(distinct person) as people
from submissions where created_at >= $1
group by day order by day

-- name: verdicts
select verdict, count(*) as count from evaluations where at >= $1 group by verdict

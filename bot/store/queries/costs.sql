-- name: lock_quotas
-- While there are quotas, claims of all GPU types wait for each other, which makes the quotas exact.
select * from gpu_quotas order by unit, each_person, board, gpu, person for no key update

-- name: spent
-- What counts for quotas: what jobs have used since this time, and what running ones may use.
select person, board, gpu, sum(seconds) as used_s, 0::float8 as reserved_s
from gpu_time where at >= $1 and kind in ('submission', 'check')
group by person, board, gpu
union all
select jobs.person, submissions.board, jobs.gpu, 0, sum(limit_s * cards)
from jobs left join submissions on submissions.id = submission
where jobs.state = 'running' and (submission is null or (submission > 0 and not judged_again))
group by jobs.person, submissions.board, jobs.gpu

-- name: candidates
-- The jobs that `jobs.claim` would claim next, with what it needs to know for quotas.
with line as materialized (
    select first.* from unnest($4::text[], $5::int[]) as mine (pool, room) cross join lateral (
        select id, priority, turn from jobs
        where gpu = $1 and jobs.pool = mine.pool and state = 'queued' and run_at <= $3
        order by priority desc, turn, id limit mine.room
        for no key update skip locked
    ) as first
)
select jobs.id, jobs.person, submissions.board, limit_s, cards,
    submission is null or (submission > 0 and not judged_again) as counts
from line join jobs using (id) left join submissions on submissions.id = submission
order by line.priority desc, line.turn, line.id limit $2

-- name: postpone
-- All jobs that need at least as much of the same quota wait too, except those that have room.
with held as (
    select jobs.id from jobs left join submissions on submissions.id = submission
    where jobs.gpu = $1 and jobs.state = 'queued' and run_at <= $2 and limit_s * cards >= $3
        and ($4::bigint is null or jobs.person = $4)
        and ($5::bigint is null or submissions.board = $5)
        and (submission is null or (submission > 0 and not judged_again))
        and jobs.id <> all ($8::bigint[])
    order by jobs.id for no key update of jobs skip locked
)
update jobs set run_at = $6, waits = $7 from held where jobs.id = held.id

-- name: add_used
-- What an attempt used that ends without an evaluation.
select add_gpu_time($1, $2::float8 * cards, $3, $4) from jobs where id = $1

-- name: add_lost
-- When an attempt was lost, nobody knows what it used: at most the time since its claim.
select add_gpu_time(id, cards * greatest(0, least(limit_s, extract(epoch from $2 - moved_at))), true, $2)
from jobs where id = any ($1::bigint[])

-- name: set_quota
insert into gpu_quotas (unit, each_person, board, gpu, person, most, reason)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (unit, each_person, board, gpu, person) do update
set most = excluded.most, reason = excluded.reason

-- name: drop_quota
delete from gpu_quotas
where unit = $1 and each_person = $2 and board is not distinct from $3::bigint
    and gpu is not distinct from $4::text and person is not distinct from $5::bigint
returning most

-- name: quotas
select * from gpu_quotas
order by person nulls first, board nulls first, gpu nulls first, each_person desc, unit

-- name: usage
select (at at time zone 'UTC')::date as day, board_name as board, people.id, people.name as person, gpu, kind,
    count(*) as evaluations, sum(seconds) as seconds
from gpu_time join people on people.id = person
where at >= $1 and ($2::bigint is null or person = $2)
group by day, board_name, people.id, gpu, kind
order by day, board_name, people.id, gpu, kind

-- name: announce
-- Also deletes workers whose lease expired an hour ago; until then they are missed.
with gone as (
    delete from workers where lease_until < $4::timestamptz - interval '1 hour' and name <> $1
)
insert into workers (name, gpus, lease_until, seen_at, offers) values ($1, $2, $3, $4, $5)
on conflict (name) do update set
    gpus = excluded.gpus, lease_until = excluded.lease_until, seen_at = excluded.seen_at,
    offers = excluded.offers

-- name: leave
delete from workers where name = $1

-- name: alive
select name, gpus, offers, seen_at,
    (select count(*) from jobs where state = 'running' and worker = workers.name) as running
from workers where lease_until >= $1 order by name collate "C"

-- name: lost
select name, gpus from workers where lease_until < $1::timestamptz and lease_until >= $1::timestamptz - interval '1 hour'
order by name collate "C"

-- name: announce
-- Those whose lease ran out long ago go with it.
with gone as (
    delete from workers where lease_until < $4 and name <> $1
)
insert into workers (name, gpus, lease_until) values ($1, $2, $3)
on conflict (name) do update set gpus = excluded.gpus, lease_until = excluded.lease_until

-- name: leave
delete from workers where name = $1

-- name: alive
select name, gpus from workers where lease_until >= $1 order by name collate "C"

-- name: schema
select coalesce(max(number), 0) as present from schema_migrations

-- name: tallies
select * from tallies order by gpu collate "C", mode, verdict

-- name: lost_leases
select gpu, jobs from lost_leases

-- name: lose
insert into lost_leases (gpu, jobs)
select gpu, count(*) from unnest($1::text[]) as gpu group by gpu order by gpu
on conflict (gpu) do update set jobs = lost_leases.jobs + excluded.jobs

-- name: waiting_since
-- Of each pool the oldest: the queue is read within its own index, however long it is.
select gpu, min(created_at) as since from jobs where state = 'queued' and run_at <= $1 group by gpu

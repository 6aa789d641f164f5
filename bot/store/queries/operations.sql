-- name: schema
select coalesce(max(number), 0) as present from schema_migrations

-- name: tallies
select * from tallies order by gpu collate "C", mode, verdict

-- name: lost_leases
select gpu, jobs from lost_leases

-- name: count_lost_leases
insert into lost_leases (gpu, jobs)
select gpu, count(*) from unnest($1::text[]) as gpu group by gpu order by gpu
on conflict (gpu) do update set jobs = lost_leases.jobs + excluded.jobs

-- name: waiting_since
-- The oldest job of each GPU type, read from the index of queued jobs.
select gpu, min(created_at) as since from jobs where state = 'queued' and run_at <= $1 group by gpu

-- The seconds that failed attempts at a job have used, so that all its attempts share one time limit.

alter table jobs add column used_s double precision not null default 0 check (used_s >= 0);
comment on column jobs.used_s is 'Seconds of evaluation in attempts that failed; lost ones do not count';

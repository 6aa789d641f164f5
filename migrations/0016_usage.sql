-- What evaluations cost, so that it can be said who and which board needed how much of the GPUs.

alter table evaluations add used_s double precision;
update evaluations set used_s = wall_s;
alter table evaluations alter used_s set not null;
comment on column evaluations.used_s is 'Seconds for which it had its GPUs, times their number';
create index evaluations_recent on evaluations (at);

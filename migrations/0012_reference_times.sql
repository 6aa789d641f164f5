-- How long each task's own reference takes.

create sequence house_submissions increment by -1;
comment on sequence house_submissions is 'Numbers of the house''s own submissions: all below zero, so that people''s have no gaps';

create table reference_times (
    task_version  bigint not null references task_versions (id),
    gpu           text not null,
    submission    bigint unique references submissions (id),
    time_ns       double precision check (time_ns > 0 and time_ns < 'infinity'),
    half_width_ns double precision check (half_width_ns >= 0 and half_width_ns < 'infinity'),
    machine       text,
    at            timestamptz,
    noted         boolean not null default false,
    primary key (task_version, gpu),
    check ((time_ns is null) = (half_width_ns is null)),
    check ((time_ns is null) = (machine is null)),
    check ((time_ns is null) = (at is null))
);
comment on table reference_times is 'Once per task version and GPU type; written by the statement that accepts the evaluation';
comment on column reference_times.submission is 'The house''s own, whose job times it; null where the task has no reference';
comment on column reference_times.noted is 'Whether the audit has it that the reference could not be timed';

-- The files of evaluations, such as a profiler's reports: megabytes, read only when asked for.

create table evaluation_files (
    job    bigint not null references evaluations (job),
    name   text not null,
    zipped bytea not null,
    primary key (job, name)
);
alter table evaluation_files alter zipped set storage external;
comment on column evaluation_files.zipped is 'Its bytes, compressed by zlib';

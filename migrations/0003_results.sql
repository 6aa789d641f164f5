-- What was measured, what it is worth, and who decided what.

create table evaluations (
    job          bigint primary key references jobs (id),
    submission   bigint not null references submissions (id),
    task_version bigint not null references task_versions (id),
    gpu          text not null,
    verdict      text not null,
    stage        text,
    message      text not null,
    wall_s       double precision not null,
    evaluation   text not null,
    at           timestamptz not null,
    unique (submission, gpu)
);
comment on column evaluations.evaluation is
    'Evaluation as JSON text, with every raw sample and the environment; verdict, stage, message and wall_s repeat it for queries';
create index evaluations_newest on evaluations (task_version, gpu, at desc, job desc);

create table scores (
    job           bigint primary key references evaluations (job),
    submission    bigint not null references submissions (id),
    task_version  bigint not null references task_versions (id),
    gpu           text not null,
    time_ns       double precision not null check (time_ns > 0 and time_ns < 'infinity'),
    half_width_ns double precision not null check (half_width_ns >= 0 and half_width_ns < 'infinity'),
    unique (submission, gpu)
);
create index scores_in_order on scores (task_version, gpu, time_ns);

create index submissions_ranked on submissions (task_version, id desc) where mode = 'ranked';

create table audit (
    id      bigint generated always as identity primary key,
    actor   bigint references people (id),
    action  text not null,
    subject text not null,
    reason  text not null,
    at      timestamptz not null
);

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'audit rows are never changed or removed' using errcode = 'restrict_violation';
end $$;

create trigger audit_stays before update or delete or truncate on audit
    for each statement execute function refuse_change();

-- How each leaderboard came about, so that its season is drawn without reading every score of it.

create table records (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    submission   bigint not null,
    submitted_at timestamptz not null,
    time_ns      double precision not null,
    primary key (task_version, gpu, submission)
);
comment on table records is 'The scores that were the fastest of all when they were submitted; the rule is bot.domain.ranking.records';

create function keep_record(of_version bigint, at_gpu text, which bigint) returns void
language plpgsql as $$
declare
    since timestamptz;
    took double precision;
begin
    select created_at, scores.time_ns into since, took
    from scores join submissions on submissions.id = submission
    where submission = which and gpu = at_gpu;
    if since is null or exists (
        select from records where task_version = of_version and gpu = at_gpu
            and (submitted_at, submission) < (since, which) and time_ns <= took
    ) then
        return;
    end if;
    delete from records where task_version = of_version and gpu = at_gpu
        and (submitted_at, submission) > (since, which) and time_ns >= took;
    insert into records values (of_version, at_gpu, which, since, took) on conflict do nothing;
end $$;

create function find_records(of_version bigint, at_gpu text, without bigint) returns void
language plpgsql as $$
begin
    delete from records where task_version = of_version and gpu = at_gpu and exists (
        select from records as gone
        where gone.task_version = of_version and gone.gpu = at_gpu and gone.submission = without);
    if not found then
        return;
    end if;
    insert into records
    select of_version, at_gpu, submission, created_at, time_ns from (
        select submission, created_at, time_ns, min(time_ns) over (
            order by created_at, submission rows between unbounded preceding and 1 preceding) as best
        from scores join submissions on submissions.id = submission
        where scores.task_version = of_version and gpu = at_gpu
            and not exists (select from exclusions where exclusions.submission = submissions.id)
    ) as season where best is null or time_ns < best;
end $$;

-- These come after the triggers that keep the entrants, whose row of leaderboards is locked by then.
create function record_score() returns trigger language plpgsql as $$
begin
    if not exists (select from exclusions where submission = new.submission) then
        perform keep_record(new.task_version, new.gpu, new.submission);
    end if;
    return null;
end $$;

create function record_without() returns trigger language plpgsql as $$
begin
    perform find_records(old.task_version, old.gpu, old.submission);
    return null;
end $$;

create function record_anew() returns trigger language plpgsql as $$
declare
    which bigint := case tg_op when 'DELETE' then old.submission else new.submission end;
begin
    if tg_op = 'DELETE' then
        perform keep_record(task_version, gpu, which) from scores where submission = which
        order by gpu collate "C";
    else
        perform find_records(task_version, gpu, which) from scores where submission = which
        order by gpu collate "C";
    end if;
    return null;
end $$;

create trigger record_scored after insert on scores for each row execute function record_score();
create trigger record_unscored after delete on scores
    for each row execute function record_without();
create trigger record_counted after insert or delete on exclusions
    for each row execute function record_anew();

-- A range of it is a part of a leaderboard's scores, whichever and whoever's they are.
create index scores_at_random on scores (task_version, gpu, hashint8(job));

insert into records
select task_version, gpu, submission, created_at, time_ns from (
    select scores.task_version, gpu, submission, created_at, time_ns, min(time_ns) over (
        partition by scores.task_version, gpu order by created_at, submission
        rows between unbounded preceding and 1 preceding) as best
    from scores join submissions on submissions.id = submission
    where not exists (select from exclusions where exclusions.submission = submissions.id)
) as season where best is null or time_ns < best;

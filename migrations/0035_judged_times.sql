-- Ranks by the judge's own times: what its clock cannot see, and what the submission's clock claims.

alter table scores
    add resolution_ns double precision check (resolution_ns >= 0 and resolution_ns < 'infinity'),
    add claimed_ns double precision;
comment on column scores.time_ns is 'The time that counts: the judge''s own, or if there is none, as it was reported';
comment on column scores.resolution_ns is 'What the judge''s clock cannot see; null if it does not confirm the time';
comment on column scores.claimed_ns is 'What the submission''s own clock says; it decides nothing';
alter table reference_times
    add resolution_ns double precision check (resolution_ns >= 0 and resolution_ns < 'infinity'),
    add claimed_ns double precision;

-- The stored evaluations have the judge's own times too. A run that ended early counts by the upper
-- end of its interval. Postgres cannot read an escaped NUL. A score of which a case has no such time stays as it is, unconfirmed.
create temporary table judged on commit drop as
with cases as (
    select evaluations.job, position, coalesce(replace(definition, '\u0000', '\u0001')::json ->> 'ranking_by', 'last') as ranking_by,
        (measured ->> 'half_width_ns')::float8 as half_width, (measured ->> 'resolution_ns')::float8 as resolution,
        (measured ->> 'claimed_ns')::float8 as claimed, measured ->> 'stop_reason' as stopped,
        (measured ->> 'rounds')::int as rounds,
        case when measured ->> 'claimed_ns' is null
            then greatest((measured ->> 'time_ns')::float8, (measured ->> 'bound_ns')::float8)
            else (measured ->> 'bound_ns')::float8 end as own
    from evaluations
    join task_versions on task_versions.id = evaluations.task_version
    cross join lateral json_array_elements(
        replace(evaluation, '\u0000', '\u0001')::json -> 'cases')
        with ordinality as found (tried, position)
    cross join lateral (select tried -> 'measurement' as measured) as timed
    where verdict = 'passed' and json_typeof(measured) = 'object'
        and (exists (select from scores where scores.job = evaluations.job)
            or exists (select from reference_times where reference_times.submission = evaluations.submission))
),
counted as (
    select *, own + case when stopped = 'slow' or (stopped = 'time_cap' and rounds < 5)
        or (stopped = 'round_cap' and rounds = 1) then half_width + resolution else 0 end as took
    from cases
),
sound as (
    select job, min(ranking_by) as ranking_by, avg(took) as mean, avg(resolution) as mean_resolution,
        avg(claimed) as mean_claimed, sqrt(sum(half_width ^ 2)) / count(*) as mean_half,
        exp(avg(ln(took))) as geom, avg(resolution / took) as geom_resolution,
        sqrt(sum((half_width / took) ^ 2)) / count(*) as geom_half,
        case when min(claimed) > 0 then exp(avg(ln(nullif(greatest(claimed, 0), 0)))) else avg(claimed) end as geom_claimed,
        count(claimed) = count(*) as all_claimed,
        (array_agg(took order by position desc))[1] as last,
        (array_agg(resolution order by position desc))[1] as last_resolution,
        (array_agg(half_width order by position desc))[1] as last_half,
        (array_agg(claimed order by position desc))[1] as last_claimed
    from (
        select counted.*, bool_and(coalesce(
            stopped <> 'task' and own > 1e-6 and greatest(took, half_width, resolution) < 1e150
            and coalesce(abs(claimed) < 1e150, true), false
        )) over (partition by job) as usable
        from counted
    ) as each
    where usable
    group by job
)
select job,
    case ranking_by when 'last' then last when 'mean' then mean else geom end as time_ns,
    case ranking_by when 'last' then last_half when 'mean' then mean_half else geom * geom_half end as half_width_ns,
    case ranking_by when 'last' then last_resolution when 'mean' then mean_resolution
        else geom * geom_resolution end as resolution_ns,
    case when ranking_by = 'last' then last_claimed when not all_claimed then null
        when ranking_by = 'mean' then mean_claimed else geom_claimed end as claimed_ns
from sound;

update scores set time_ns = judged.time_ns, half_width_ns = judged.half_width_ns,
    resolution_ns = judged.resolution_ns, claimed_ns = judged.claimed_ns
from judged where judged.job = scores.job;
update reference_times set time_ns = judged.time_ns, half_width_ns = judged.half_width_ns,
    resolution_ns = judged.resolution_ns, claimed_ns = judged.claimed_ns
from judged join evaluations on evaluations.job = judged.job
where evaluations.submission = reference_times.submission and reference_times.time_ns is not null;

alter table scores add upper_ns double precision not null
    generated always as (time_ns + (half_width_ns + coalesce(resolution_ns, 0))) stored;
comment on column scores.upper_ns is 'The upper end of its interval, by which it is ordered; the rules are in bot.domain.scoring';
alter table scores add passes_ns double precision not null generated always as (
    time_ns + (half_width_ns + coalesce(resolution_ns, 0)) + greatest(
        half_width_ns + coalesce(resolution_ns, 0),
        0.005 * (time_ns + (half_width_ns + coalesce(resolution_ns, 0))))
) stored;
comment on column scores.passes_ns is 'It is ahead of those whose upper end is greater than this';
drop index scores_in_order;
create index scores_in_order on scores (task_version, gpu, upper_ns);

comment on column entrants.best is 'Whose score has the lowest upper end of them, of equal ones the earlier; the rule is bot.domain.scoring';

create or replace function enter_score() returns trigger language plpgsql as $$
declare
    whose bigint;
    since timestamptz;
    counts boolean;
begin
    perform move_leaderboard(new.task_version, new.gpu);
    select person, created_at, not exists (select from exclusions where submission = submissions.id)
    into whose, since, counts from submissions where id = new.submission;
    insert into entrants (task_version, gpu, person) values (new.task_version, new.gpu, whose)
    on conflict do nothing;
    if counts then
        update entrants set attempts = attempts + 1, best = case when exists (
            select from scores join submissions on submissions.id = submission
            where job = entrants.best
                and (upper_ns, created_at, submission) < (new.upper_ns, since, new.submission)
        ) then best else new.job end
        where task_version = new.task_version and gpu = new.gpu and person = whose;
    end if;
    return null;
end $$;

create or replace function recount(of_version bigint, at_gpu text, whose bigint) returns void
language sql as $$
    update leaderboards set moves = moves + 1 where task_version = of_version and gpu = at_gpu;
    update entrants set (attempts, best) = (
        select count(*), (array_agg(job order by upper_ns, created_at, submission))[1]
        from submissions join scores on submission = submissions.id and scores.gpu = at_gpu
        where submissions.person = whose and submissions.task_version = of_version
            and not exists (select from exclusions where exclusions.submission = submissions.id)
    )
    where task_version = of_version and gpu = at_gpu and person = whose;
$$;

-- A record is the first score, and each that is ahead of the record before it.

delete from records;
alter table records drop column time_ns;
alter table records add column upper_ns double precision not null;
comment on table records is 'The first score, and each that is ahead of the record before it; the rule is bot.domain.scoring.records';

create function find_all_records(of_version bigint, at_gpu text) returns void
language plpgsql as $$
declare
    each record;
    best double precision := 'infinity';
begin
    delete from records where task_version = of_version and gpu = at_gpu;
    for each in
        select submission, created_at, scores.upper_ns, passes_ns
        from scores join submissions on submissions.id = submission
        where scores.task_version = of_version and gpu = at_gpu
            and not exists (select from exclusions where exclusions.submission = submissions.id)
        order by created_at, submission
    loop
        if each.passes_ns < best then
            best := each.upper_ns;
            insert into records values (of_version, at_gpu, each.submission, each.created_at, best);
        end if;
    end loop;
end $$;

create or replace function keep_record(of_version bigint, at_gpu text, which bigint) returns void
language plpgsql as $$
declare
    since timestamptz;
    upper_end double precision;
    passes double precision;
begin
    select created_at, scores.upper_ns, passes_ns into since, upper_end, passes
    from scores join submissions on submissions.id = submission
    where submission = which and gpu = at_gpu;
    if since is null or exists (
        select from records where task_version = of_version and gpu = at_gpu
            and (submitted_at, submission) < (since, which) and records.upper_ns <= passes
    ) then
        return;
    end if;
    if exists (
        select from records where task_version = of_version and gpu = at_gpu
            and (submitted_at, submission) > (since, which)
    ) then
        perform find_all_records(of_version, at_gpu);
    else
        insert into records values (of_version, at_gpu, which, since, upper_end)
        on conflict do nothing;
    end if;
end $$;

create or replace function find_records(of_version bigint, at_gpu text, without bigint) returns void
language plpgsql as $$
begin
    if exists (
        select from records
        where task_version = of_version and gpu = at_gpu and submission = without
    ) then
        perform find_all_records(of_version, at_gpu);
    end if;
end $$;

select find_all_records(task_version, gpu) from (select distinct task_version, gpu from scores) as known;

update entrants set best = (
    select (array_agg(job order by upper_ns, created_at, submission))[1]
    from submissions join scores on submission = submissions.id and scores.gpu = entrants.gpu
    where submissions.person = entrants.person and submissions.task_version = entrants.task_version
        and not exists (select from exclusions where exclusions.submission = submissions.id)
)
where best is not null;
update leaderboards set moves = moves + 1;

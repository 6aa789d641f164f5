-- What an operator watches: counts that only grow, kept by the statements that they count.

create function bucket_of(seconds double precision) returns int language sql immutable as $$
    select width_bucket(
        seconds, array[0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600]::double precision[])
$$;

create table tallies (
    gpu         text not null,
    mode        text not null,
    verdict     text not null,
    evaluations bigint not null,
    judged_s    double precision not null,
    waited_s    double precision not null,
    judged      bigint[] not null,
    waited      bigint[] not null,
    primary key (gpu, mode, verdict)
);
comment on table tallies is 'Evaluations since the first, those of deleted boards as well';
comment on column tallies.judged is 'How many took how long, by bucket_of, from 0';
comment on column tallies.waited is 'How many were queued for how long before their first attempt';

create table lost_leases (
    gpu  text primary key,
    jobs bigint not null
);
comment on table lost_leases is 'How many leases ran out so far';

-- Locks a row of tallies last of all, and only until its statement is committed.
create function tally_evaluation() returns trigger language plpgsql as $$
declare
    its_mode text;
    queued_s double precision;
    judged_in int := 1 + bucket_of(new.wall_s);
    waited_in int;
begin
    select case when submission < 0 then 'reference' else mode end,
        greatest(0, extract(epoch from started_at - created_at))
    into its_mode, queued_s from jobs where id = new.job;
    waited_in := 1 + bucket_of(queued_s);
    insert into tallies values (
        new.gpu, its_mode, new.verdict, 0, 0, 0,
        array_fill(0::bigint, array[13]), array_fill(0::bigint, array[13]))
    on conflict do nothing;
    update tallies set
        evaluations = evaluations + 1,
        judged_s = judged_s + new.wall_s,
        waited_s = waited_s + queued_s,
        judged[judged_in] = judged[judged_in] + 1,
        waited[waited_in] = waited[waited_in] + 1
    where gpu = new.gpu and mode = its_mode and verdict = new.verdict;
    return null;
end $$;

create trigger tally_each after insert on evaluations
    for each row execute function tally_evaluation();

with ended as materialized (
    select evaluations.gpu, case when jobs.submission < 0 then 'reference' else mode end as mode,
        verdict, wall_s, queued_s, bucket_of(wall_s) as judged_in, bucket_of(queued_s) as waited_in
    from evaluations join jobs on jobs.id = job,
        greatest(0, extract(epoch from started_at - jobs.created_at)::double precision) as queued_s
),
judged as materialized (
    select gpu, mode, verdict, judged_in, count(*) as jobs from ended group by 1, 2, 3, 4
),
waited as materialized (
    select gpu, mode, verdict, waited_in, count(*) as jobs from ended group by 1, 2, 3, 4
)
insert into tallies
select gpu, mode, verdict, count(*), sum(wall_s), sum(queued_s),
    array(select coalesce((
        select jobs from judged where judged_in = bucket
            and (judged.gpu, judged.mode, judged.verdict) = (ended.gpu, ended.mode, ended.verdict)
    ), 0) from generate_series(0, 12) as bucket order by bucket),
    array(select coalesce((
        select jobs from waited where waited_in = bucket
            and (waited.gpu, waited.mode, waited.verdict) = (ended.gpu, ended.mode, ended.verdict)
    ), 0) from generate_series(0, 12) as bucket order by bucket)
from ended group by gpu, mode, verdict;

-- Who is in the standings of which leaderboard, kept by the statements that change it: of a board
-- with many submissions only so many rows are read as it has people.

create table leaderboards (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    moves        bigint not null,
    primary key (task_version, gpu)
);
comment on column leaderboards.moves is 'Grows with every change of what its standings show; whoever changes an entrant locks the row first';

create table entrants (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    person       bigint not null references people (id),
    attempts     int not null default 0,
    best         bigint,
    refused      bigint,
    primary key (task_version, gpu, person)
);
comment on column entrants.attempts is 'How many scores count: those of submissions that are not excluded';
comment on column entrants.best is 'Whose score is the fastest of them, of equal ones the earlier; the rule is bot.domain.ranking';
comment on column entrants.refused is 'The newest submission''s of those whose ranked evaluation did not pass';
create index entrants_of_person on entrants (person);

create function move_leaderboard(of_version bigint, at_gpu text) returns void language sql as $$
    insert into leaderboards values (of_version, at_gpu, 1)
    on conflict (task_version, gpu) do update set moves = leaderboards.moves + 1
$$;

create function enter_refusal() returns trigger language plpgsql as $$
declare
    whose bigint;
begin
    select person into whose from submissions where id = new.submission and mode = 'ranked';
    if whose is null then
        return null;
    end if;
    perform move_leaderboard(new.task_version, new.gpu);
    insert into entrants (task_version, gpu, person, refused)
    values (new.task_version, new.gpu, whose, new.job)
    on conflict (task_version, gpu, person) do update set refused = excluded.refused
    where entrants.refused is null
        or (select submission from evaluations where job = entrants.refused) < new.submission;
    return null;
end $$;

create function enter_score() returns trigger language plpgsql as $$
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
                and (time_ns, created_at, submission) < (new.time_ns, since, new.submission)
        ) then best else new.job end
        where task_version = new.task_version and gpu = new.gpu and person = whose;
    end if;
    return null;
end $$;

create function recount(of_version bigint, at_gpu text, whose bigint) returns void
language sql as $$
    update leaderboards set moves = moves + 1 where task_version = of_version and gpu = at_gpu;
    update entrants set (attempts, best) = (
        select count(*), (array_agg(job order by time_ns, created_at, submission))[1]
        from submissions join scores on submission = submissions.id and scores.gpu = at_gpu
        where submissions.person = whose and submissions.task_version = of_version
            and not exists (select from exclusions where exclusions.submission = submissions.id)
    )
    where task_version = of_version and gpu = at_gpu and person = whose;
$$;

create function enter_anew() returns trigger language plpgsql as $$
declare
    made record;
    at_gpu text;
begin
    select id, person, task_version, gpus into made from submissions
    where id = case tg_op when 'DELETE' then old.submission else new.submission end;
    for at_gpu in select gpu from unnest(made.gpus) as gpu order by gpu collate "C" loop
        if tg_op = 'INSERT' then
            perform move_leaderboard(made.task_version, at_gpu);
        end if;
        perform recount(made.task_version, at_gpu, made.person);
    end loop;
    return null;
end $$;

create function leave_score() returns trigger language plpgsql as $$
begin
    perform recount(old.task_version, old.gpu, person) from submissions where id = old.submission;
    return null;
end $$;

create function leave_refusal() returns trigger language plpgsql as $$
begin
    update leaderboards set moves = moves + 1
    where task_version = old.task_version and gpu = old.gpu;
    update entrants set refused = null from submissions
    where entrants.task_version = old.task_version and entrants.gpu = old.gpu
        and entrants.person = submissions.person and submissions.id = old.submission
        and refused = old.job;
    return null;
end $$;

create function move_reference() returns trigger language plpgsql as $$
begin
    perform move_leaderboard(new.task_version, new.gpu);
    return null;
end $$;

create function move_renamed() returns trigger language plpgsql as $$
begin
    perform from leaderboards join entrants using (task_version, gpu) where person = new.id
    order by task_version, gpu collate "C" for update of leaderboards;
    update leaderboards set moves = moves + 1 from entrants
    where person = new.id and entrants.task_version = leaderboards.task_version
        and entrants.gpu = leaderboards.gpu;
    return null;
end $$;

create trigger enter_refused after insert on evaluations
    for each row when (new.verdict <> 'passed' and new.submission > 0)
    execute function enter_refusal();
create trigger enter_scored after insert on scores for each row execute function enter_score();
create trigger leave_refused after delete on evaluations
    for each row when (old.verdict <> 'passed' and old.submission > 0)
    execute function leave_refusal();
create trigger leave_scored after delete on scores for each row execute function leave_score();
create trigger enter_counted after insert or delete on exclusions
    for each row execute function enter_anew();
create trigger move_renamed after update on people
    for each row when (old.name <> new.name) execute function move_renamed();
create trigger move_timed after insert or update on reference_times
    for each row execute function move_reference();

insert into entrants
select task_version, gpu, person, coalesce(max(attempts), 0), max(best), max(refused)
from (
    select scores.task_version, scores.gpu, person, count(*) as attempts,
        (array_agg(job order by time_ns, created_at, submission))[1] as best,
        null::bigint as refused
    from scores join submissions on submissions.id = submission
    where not exists (select from exclusions where exclusions.submission = submissions.id)
    group by 1, 2, 3
    union all
    select evaluations.task_version, gpu, person, null, null,
        (array_agg(job order by submission desc))[1]
    from evaluations join submissions on submissions.id = submission
    where submissions.id > 0 and mode = 'ranked' and verdict <> 'passed'
    group by 1, 2, 3
    union all
    select scores.task_version, scores.gpu, person, 0, null, null
    from scores join submissions on submissions.id = submission group by 1, 2, 3
) as entered
group by task_version, gpu, person;

insert into leaderboards
select distinct task_version, gpu, 1 from entrants
union
select task_version, gpu, 1 from reference_times;

-- Every GPU type has one name from here on, as in runners/contract/gpus.py. What was stored under
-- another name of the same card is renamed. Two rows that become one are added up, or the better
-- one stays; nothing that was measured is removed.

create temporary table renamed on commit drop as
with named as (
    select gpu from pools
    union select unnest(gpus) from boards
    union select unnest(gpus) from submissions
    union select gpu from jobs
    union select gpu from evaluations
    union select gpu from scores
    union select gpu from reference_times
    union select gpu from leaderboards
    union select gpu from entrants
    union select gpu from records
    union select gpu from tallies
    union select gpu from lost_leases
), called (alias, name) as (values
    ('t4', 'T4'), ('l4', 'L4'), ('a10', 'A10'), ('a10g', 'A10'), ('l40s', 'L40S'),
    ('a100', 'A100'), ('a100-40gb', 'A100'), ('a100-40g', 'A100'),
    ('a100-80gb', 'A100-80GB'), ('a100-80g', 'A100-80GB'),
    ('h100', 'H100'), ('h100!', 'H100'), ('h100-pcie', 'H100-PCIe'), ('h100-nvl', 'H100-NVL'),
    ('h200', 'H200'), ('b200', 'B200'), ('nvidia', 'NVIDIA'), ('b200_nebius', 'B200_Nebius'),
    ('mi250', 'MI250'), ('mi300', 'MI300X'), ('mi300x', 'MI300X'), ('mi325x', 'MI325X'),
    ('mi355x', 'MI355X')
)
select gpu as old, name as new
from named join called
    on alias in (lower(gpu), lower(regexp_replace(gpu, '(x|:)[1-9][0-9]{0,2}$', '', 'i')))
where gpu <> name;

insert into pools (gpu, max_running, paused, notice)
select new, max(max_running), coalesce(bool_or(paused), false),
    (array_agg(notice order by old) filter (where notice is not null))[1]
from renamed left join pools on gpu = old group by new
on conflict (gpu) do update set
    max_running = greatest(pools.max_running, excluded.max_running),
    paused = pools.paused or excluded.paused,
    notice = coalesce(pools.notice, excluded.notice);

insert into present_turns
select new, priority, max(turn) from renamed join present_turns on gpu = old group by 1, 2
on conflict (gpu, priority) do update set turn = greatest(present_turns.turn, excluded.turn);

-- A submission that ran on one card under two names has two jobs for it. The better one takes the
-- name; the other one keeps its own, with all that it measured, and if it has not ended, it ends.
create temporary table rivals on commit drop as
select jobs.id as job, jobs.gpu as old, coalesce(new, jobs.gpu) as new,
    row_number() over (
        partition by jobs.submission, coalesce(new, jobs.gpu)
        order by time_ns nulls last, array_position(
            array['succeeded', 'running', 'queued', 'failed', 'cancelled'], state), jobs.id
    ) = 1 as better
from jobs left join renamed on old = jobs.gpu left join scores on job = jobs.id
where coalesce(new, jobs.gpu) in (select new from renamed);

update jobs set state = 'cancelled', cancel_requested = true, lease_until = null,
    error = 'the submission runs on this card under its other name', fence = fence + 1,
    moved_at = now(), finished_at = now()
from rivals where job = jobs.id and not better and state in ('queued', 'running');

-- Where the other one has the name so far, both change names.
create temporary table named_anew on commit drop as
select each.job, each.old, case
    when each.better then each.new
    when each.old = each.new then (
        select winner.old from rivals as winner join jobs as its on its.id = winner.job
        where winner.better and winner.new = each.new and its.submission = jobs.submission)
    else each.old end as name
from rivals as each join jobs on jobs.id = each.job;
delete from named_anew where old = name;

-- Two rows of a submission never have one name, not even in between.
insert into pools (gpu) values ('?');
update jobs set gpu = '?' from named_anew, renamed
where job = jobs.id and named_anew.old = renamed.new and name = renamed.old;
update jobs set gpu = name from named_anew where job = jobs.id and jobs.gpu <> '?';
update jobs set gpu = name from named_anew where job = jobs.id and jobs.gpu = '?';

update evaluations set gpu = '?' from named_anew, renamed
where named_anew.job = evaluations.job and named_anew.old = renamed.new and name = renamed.old;
update evaluations set gpu = name from named_anew
where named_anew.job = evaluations.job and evaluations.gpu <> '?';
update evaluations set gpu = name from named_anew
where named_anew.job = evaluations.job and evaluations.gpu = '?';

update scores set gpu = '?' from named_anew, renamed
where named_anew.job = scores.job and named_anew.old = renamed.new and name = renamed.old;
update scores set gpu = name from named_anew
where named_anew.job = scores.job and scores.gpu <> '?';
update scores set gpu = name from named_anew
where named_anew.job = scores.job and scores.gpu = '?';

-- Both spellings of JSON that Postgres has.
update job_events set body = replace(replace(body,
    '"gpu" : ' || to_json(old), '"gpu" : ' || to_json(name)),
    '"gpu":' || to_json(old), '"gpu":' || to_json(name))
from named_anew where named_anew.job = job_events.job;

update boards set gpus = (
    select array_agg(name order by place) from (
        select coalesce(new, gpu) as name, min(place) as place
        from unnest(gpus) with ordinality as listed (gpu, place) left join renamed on old = gpu
        group by 1) as found)
where gpus && (select array_agg(old) from renamed);

update submissions set gpus = (
    select array_agg(name order by place) from (
        select coalesce(new, gpu) as name, min(place) as place
        from unnest(gpus) with ordinality as listed (gpu, place) left join renamed on old = gpu
        group by 1) as found)
    || array(
        select jobs.gpu from rivals join jobs on jobs.id = job
        where jobs.submission = submissions.id and not better order by jobs.gpu)
where gpus && (select array_agg(old) from renamed);

create temporary table second_times on commit drop as
select task_version, gpu, submission from (
    select task_version, gpu, submission, row_number() over (
        partition by task_version, coalesce(new, gpu)
        order by time_ns nulls last, submission is null, noted desc, gpu) as place
    from reference_times left join renamed on old = gpu
    where coalesce(new, gpu) in (select new from renamed)
) as timed where place > 1;
update jobs set state = 'cancelled', cancel_requested = true, lease_until = null,
    error = 'the reference runs on this card under its other name', fence = fence + 1,
    moved_at = now(), finished_at = now()
from second_times
where jobs.submission = second_times.submission and state in ('queued', 'running');
delete from reference_times using second_times
where (reference_times.task_version, reference_times.gpu) = (second_times.task_version, second_times.gpu);
update reference_times set gpu = new from renamed where gpu = old;

insert into tallies
select new, mode, verdict, sum(evaluations), sum(judged_s), sum(waited_s),
    array(select sum(others.judged[bucket])::bigint
        from renamed as names join tallies as others on others.gpu = names.old,
            generate_series(1, 13) as bucket
        where (names.new, others.mode, others.verdict)
            = (renamed.new, tallies.mode, tallies.verdict)
        group by bucket order by bucket),
    array(select sum(others.waited[bucket])::bigint
        from renamed as names join tallies as others on others.gpu = names.old,
            generate_series(1, 13) as bucket
        where (names.new, others.mode, others.verdict)
            = (renamed.new, tallies.mode, tallies.verdict)
        group by bucket order by bucket)
from renamed join tallies on gpu = old group by new, mode, verdict
on conflict (gpu, mode, verdict) do update set
    evaluations = tallies.evaluations + excluded.evaluations,
    judged_s = tallies.judged_s + excluded.judged_s,
    waited_s = tallies.waited_s + excluded.waited_s,
    judged = array(
        select tallies.judged[bucket] + excluded.judged[bucket]
        from generate_series(1, 13) as bucket order by bucket),
    waited = array(
        select tallies.waited[bucket] + excluded.waited[bucket]
        from generate_series(1, 13) as bucket order by bucket);
delete from tallies using renamed where gpu = old;

insert into lost_leases
select new, sum(jobs) from renamed join lost_leases on gpu = old group by new
on conflict (gpu) do update set jobs = lost_leases.jobs + excluded.jobs;
delete from lost_leases using renamed where gpu = old;

-- The standings and records of these cards are worked out anew, as at first.
create temporary table touched on commit drop as
select old as gpu from renamed union select new from renamed;

insert into leaderboards
select task_version, new, 1 + sum(moves) from renamed join leaderboards on gpu = old group by 1, 2
on conflict (task_version, gpu) do update set moves = leaderboards.moves + excluded.moves;

delete from entrants where gpu in (select gpu from touched);
insert into entrants
select task_version, gpu, person, coalesce(max(attempts), 0), max(best), max(refused)
from (
    select scores.task_version, scores.gpu, person, count(*) as attempts,
        (array_agg(job order by time_ns, created_at, submission))[1] as best,
        null::bigint as refused
    from scores join submissions on submissions.id = submission
    where scores.gpu in (select gpu from touched)
        and not exists (select from exclusions where exclusions.submission = submissions.id)
    group by 1, 2, 3
    union all
    select evaluations.task_version, gpu, person, null, null,
        (array_agg(job order by submission desc))[1]
    from evaluations join submissions on submissions.id = submission
    where evaluations.gpu in (select gpu from touched)
        and submissions.id > 0 and mode = 'ranked' and verdict <> 'passed'
    group by 1, 2, 3
    union all
    select scores.task_version, scores.gpu, person, 0, null, null
    from scores join submissions on submissions.id = submission
    where scores.gpu in (select gpu from touched) group by 1, 2, 3
) as entered
group by task_version, gpu, person;
delete from leaderboards where gpu in (select old from renamed)
    and not exists (select from entrants
        where (entrants.task_version, entrants.gpu)
            = (leaderboards.task_version, leaderboards.gpu));

delete from records where gpu in (select gpu from touched);
insert into records
select task_version, gpu, submission, created_at, time_ns from (
    select scores.task_version, gpu, submission, created_at, time_ns, min(time_ns) over (
        partition by scores.task_version, gpu order by created_at, submission
        rows between unbounded preceding and 1 preceding) as best
    from scores join submissions on submissions.id = submission
    where scores.gpu in (select gpu from touched)
        and not exists (select from exclusions where exclusions.submission = submissions.id)
) as season where best is null or time_ns < best;

delete from present_turns where gpu in (select old from renamed);
delete from pools where (gpu = '?' or gpu in (select old from renamed))
    and not exists (select from jobs where jobs.gpu = pools.gpu);

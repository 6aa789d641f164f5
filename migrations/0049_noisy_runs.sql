-- A passed run that is too noisy to be ranked is the reason why its person is not ranked, as a failed one is.

alter table evaluations add noisy boolean not null default false;
comment on column evaluations.noisy is 'Whether it passed, but its time is too uncertain to be ranked; the rule is bot.domain.noise';
comment on column entrants.refused is 'The newest submission''s of those whose ranked evaluation did not pass or was too noisy';

-- Earlier evaluations: the rule of today, for those that have no score. Postgres cannot read an escaped NUL.
create temporary table unranked on commit drop as
with unscored as materialized (
    select job, submission, evaluations.task_version, person, evaluation
    from evaluations join submissions on submissions.id = submission
    where gpu = 'CPU' and verdict = 'passed' and submission > 0 and mode = 'ranked'
        and not exists (select from scores where scores.job = evaluations.job)
        and not exists (select from confirmations
            where confirmations.submission = evaluations.submission and confirmations.gpu = 'CPU')
)
select job, submission, task_version, person from unscored
where exists (
    select from json_array_elements(replace(evaluation, '\u0000', '\u0001')::json -> 'cases') as tried
    cross join lateral (select tried -> 'measurement' as measured) as timed
    where json_typeof(measured) = 'object' and measured ->> 'claimed_ns' is null
        and measured ->> 'stop_reason' not in ('task', 'slow')
        and (measured ->> 'half_width_ns')::float8
            > greatest(0.15 * (measured ->> 'time_ns')::float8, 15000)
);
update evaluations set noisy = true where job in (select job from unranked);

select move_leaderboard(task_version, 'CPU')
from (select distinct task_version from unranked order by 1) as moved;
insert into entrants (task_version, gpu, person, refused)
select task_version, 'CPU', person, (array_agg(job order by submission desc))[1]
from unranked group by task_version, person
on conflict (task_version, gpu, person) do update set refused = excluded.refused
where entrants.refused is null
    or (select submission from evaluations where job = entrants.refused)
        between 0 and (select submission from evaluations where job = excluded.refused);

drop trigger enter_refused on evaluations;
create trigger enter_refused after insert on evaluations
    for each row when ((new.verdict <> 'passed' or new.noisy) and new.submission > 0)
    execute function enter_refusal();
drop trigger leave_refused on evaluations;
create trigger leave_refused after delete on evaluations
    for each row when ((old.verdict <> 'passed' or old.noisy) and old.submission > 0)
    execute function leave_refusal();

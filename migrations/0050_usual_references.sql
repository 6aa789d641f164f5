-- The usual time of each task's reference on the CPU: the ratio to it, times this, is the time that ranks.

create table usual_references (
    task_version bigint primary key references task_versions (id) on delete cascade,
    times_ns     double precision[] not null
);
comment on table usual_references is 'The reference''s time in each benchmark, from the first ranked run on the CPU; never changed';

-- Boards with runs: the median of their references, so that earlier times stay comparable on average.
insert into usual_references (task_version, times_ns)
with cases as (
    select job, task_version, place, body -> 'measurement' as measured
    from scores join evaluations using (job, task_version)
    cross join lateral json_array_elements(replace(evaluation, '\u0000', '\u0001')::json -> 'cases')
        with ordinality as tried (body, place)
    where scores.gpu = 'CPU' and scores.reference_ratio is not null
        and json_typeof(body -> 'measurement') = 'object'
),
timed as (
    select task_version, row_number() over (partition by job order by place) as benchmark,
        (measured ->> 'time_ns')::float8 / (measured -> 'vs_reference' ->> 'ratio')::float8 as reference_ns
    from cases
),
usual as (
    select task_version, benchmark, percentile_cont(0.5) within group (order by reference_ns) as usual_ns
    from timed group by task_version, benchmark
)
select task_version, array_agg(usual_ns order by benchmark) from usual group by task_version;

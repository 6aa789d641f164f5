-- The state of a publication gets one shape for every door, in a column of its own. `place` keeps
-- what only the door needs. Until now each door had the whole in `place`, in a shape of its own.

alter table releases add state text not null default '{}';
comment on column releases.state is 'The steps of its check and its outcome, of every door alike';
comment on column releases.place is 'The door''s own words for where it shows it, and what is sent already';
comment on column releases.wish is 'The request for the board';

-- jsonb takes no escaped NUL, which the output of a submission may have.
create temporary table stored on commit drop as
select id, door, place, place -> 'outcome' as outcome,
    place #>> '{outcome,title}' ~ ': to be mended$' as unsound
from (
    select id, door, replace(place, '\u0000', '\ufffd')::jsonb as place from releases
) as parsed;

-- A line of an outcome is [words, tone]. Discord's lines of findings begin with their level.
create temporary table lines on commit drop as
select id, door, number, words, tone, unsound,
    case when door = 'discord' and unsound then substr(words, 10) else words end as remark
from stored, lateral (
    select number, line ->> 0 as words, line ->> 1 as tone
    from jsonb_array_elements(coalesce(outcome -> 'lines', '[]')) with ordinality
        as listed (line, number)
) as each
where jsonb_typeof(outcome) = 'object'
    and not (unsound and words like 'Nothing was published. Mend it, and %');

create temporary table reports on commit drop as
select id, jsonb_build_object(
    'task', coalesce(substring(outcome ->> 'title' from '^(.*) on [^ ]+: to be mended$'), ''),
    'gpu', coalesce(substring(outcome ->> 'title' from ' on ([^ ]+): to be mended$'), ''),
    'findings', coalesce((
        select jsonb_agg(jsonb_build_object(
            'level', case
                when lines.door = 'discord' then rtrim(left(words, 8))
                when tone = 'bad' then 'error'
                else 'warning' end,
            'file', split_part(remark, ': ', 1),
            'message', substr(remark, length(split_part(remark, ': ', 1)) + 3)) order by number)
        from lines where lines.id = stored.id
            and words not like 'its solutions were not run: %'), '[]'),
    'obstacle', coalesce((
        select substr(words, length('its solutions were not run: ') + 1)
        from lines where lines.id = stored.id
            and words like 'its solutions were not run: %' limit 1), '')
) as report
from stored where unsound;

-- Each GPU type on which the task was not run: Discord had it in its lines alone.
create temporary table obstacles on commit drop as
select id, jsonb_agg(jsonb_build_array(
    substring(words from '^not run on ([^:]+): '),
    substring(words from '^not run on [^:]+: (.*)$')) order by number) as checked
from lines where door = 'discord' and not unsound and words like 'not run on %: %'
group by id;

-- A step was the words for it; one that has ended keeps them as its finding.
create temporary table steps on commit drop as
select id, jsonb_agg(case
    when step ->> 'tone' is null then jsonb_build_object(
        'gpu', '', 'name', regexp_replace(step ->> 'words', ': [^:]*$', ''),
        'stage', case when (step ->> 'begun')::boolean
            then coalesce(substring(step ->> 'words' from ': ([^:]*)$'), '') end)
    else jsonb_build_object('gpu', '', 'name', '', 'finding', jsonb_build_object(
        'level', case step ->> 'tone' when 'bad' then 'error' else 'info' end,
        'file', '', 'message', step ->> 'words'))
    end order by number) as steps
from stored, jsonb_array_elements(coalesce(place -> 'steps', '[]')) with ordinality
    as listed (step, number)
group by id;

update releases set
    place = case when stored.door = 'discord'
        then (stored.place - 'publishing' - 'outcome')::text else '{}' end,
    state = jsonb_build_object(
        'begun', coalesce(stored.place -> 'begun', '[]'),
        'steps', coalesce(steps, '[]'),
        'publishing', coalesce(stored.place -> 'publishing', 'false'),
        'outcome', case when jsonb_typeof(outcome) = 'object' then
            (outcome - 'lines')
            || case when unsound then jsonb_build_object('report', report)
                else jsonb_build_object('message', coalesce((
                    select words from lines where lines.id = stored.id and number = 1), ''))
                end
            || case when checked is null then '{}' else jsonb_build_object('checked', checked) end
        end
    )::text
from stored
    left join reports on reports.id = stored.id
    left join obstacles on obstacles.id = stored.id
    left join steps on steps.id = stored.id
where releases.id = stored.id;

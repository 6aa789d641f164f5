-- name: unfinished
select task_version, gpu from confirmations where state = 'pending'
union
select task_version, gpu from finals where ended_at is null
order by task_version, gpu

-- name: lock
select pg_try_advisory_xact_lock($1::bigint # hashtextextended($2, 0)) as locked

-- name: hold
with unannounced as (
    delete from untold where job = $1
),
held as (
    delete from scores where job = $1 returning *
)
insert into confirmations (submission, task_version, gpu, place, score, created_at)
select submission, task_version, gpu, $2, to_jsonb(held), $3 from held

-- name: of_run
select confirmation as id from confirmation_runs where run = $1

-- name: of
select id from confirmations where submission = $1 and final is null

-- name: concerning
with standing as (
    select id, submission, rival, state from confirmations as met
    where final is null and (submission = any ($1::bigint[]) or rival = any ($1::bigint[]))
        and not exists (select from exclusions where exclusions.submission = met.submission)
)
select id from standing
where submission = any ($1::bigint[]) or state in ('confirmed', 'tied')
union
select id from confirmations
where submission = any ($1::bigint[]) and final is null and state <> 'pending'

-- name: pending
select id from confirmations where task_version = $1 and gpu = $2 and state = 'pending'

-- name: with_ratio
-- Those of a final count once it has ended. They replace what was compared before among its entries.
-- Those of a withdrawn run still say how its rivals compare, those of a disqualified one do not.
select submission, rival, ratio, half_width from confirmations as met
where task_version = $1 and gpu = $2 and ratio is not null and rival is not null
    and not exists (
        select from exclusions
        where exclusions.submission in (met.submission, rival) and kind = 'disqualified'
    )
    and not exists (
        select from finals
        where finals.task_version = $1 and finals.gpu = $2 and case
            when finals.id = met.final then ended_at is null
            else decided_at < ended_at and submission = any (entries) and rival = any (entries)
        end
    )
order by id

-- name: of_final
select id from confirmations where final = $1

-- name: read
select confirmations.*, submissions.person, own.name as person_name,
    submissions.created_at as submitted_at, coalesce(holder.name, '') as rival_name
from confirmations
join submissions on submissions.id = confirmations.submission
join shown_names as own on own.person = submissions.person
    and own.task_version = confirmations.task_version and own.gpu = confirmations.gpu
left join submissions as held_by on held_by.id = rival
left join shown_names as holder on holder.person = held_by.person
    and holder.task_version = confirmations.task_version and holder.gpu = confirmations.gpu
where confirmations.id = any ($1::bigint[])
order by confirmations.id

-- name: order
with home as (
    -- Locked, so that a change of its pins waits for this job, or this job for the change.
    select boards.pools, confirmations.submission, confirmations.gpu, submissions.person
    from confirmations
    join submissions on submissions.id = confirmations.submission
    join task_versions on task_versions.id = confirmations.task_version
    join boards on boards.id = task_versions.board
    where confirmations.id = $1 for share of boards
),
pool as (
    insert into pools (gpu) select gpu from home on conflict do nothing
),
-- In turn as a job of the person whose run it is, after that person's other comparisons: those of
-- many leaderboards do not wait for each other.
queued_before as (
    select max(turn) as turn
    from home join submissions using (person)
    join confirmations on confirmations.submission = submissions.id and state = 'pending'
    join jobs on jobs.submission = run
    where jobs.state = 'queued' and jobs.gpu = home.gpu and priority = $6
),
added as (
    insert into submissions (
        id, person, board, task_version, file_name, source, mode, gpus, created_at, judged_again
    )
    overriding system value
    select nextval('house_submissions'), $4, board, task_version,
        'confirmation of #' || home.submission, source, 'ranked', array[home.gpu], $5, true
    from home join submissions on submissions.id = coalesce($3::bigint, home.submission)
    returning *
),
queued as (
    insert into jobs (
        submission, person, gpu, mode, priority, turn, max_attempts, run_at, created_at, moved_at,
        pool
    )
    select id, added.person, home.gpu, mode, $6,
        greatest(next_turn(home.person, home.gpu, $6), 1 + queued_before.turn), $7,
        created_at, created_at, created_at, coalesce(home.pools ->> home.gpu, '')
    from added, home, queued_before
),
noted as (
    insert into confirmation_runs (run, confirmation) select id, $1 from added
)
update confirmations set rival = $2, alone = $3, run = (select id from added) where id = $1

-- name: count
update confirmations set attempts = $2, failures = $3 where id = $1

-- name: settle
update confirmations
set state = $2, ratio = $3, half_width = $4, reason = $5, decided_at = $6
where id = $1 and state = 'pending'
returning pg_notify('podium_progress', submission::text)

-- name: enter
with entered as (
    insert into scores (
        job, submission, task_version, gpu, time_ns, half_width_ns, resolution_ns, claimed_ns,
        reference_ratio, reference_half_width
    )
    select job, held.submission, held.task_version, held.gpu, $2, $3, $4, $5,
        held.reference_ratio, held.reference_half_width
    from confirmations, jsonb_populate_record(null::scores, score) as held
    where confirmations.id = $1 and score is not null
    returning job
)
insert into untold (job) select job from entered

-- name: follow
insert into confirmations (submission, task_version, gpu, place, score, created_at)
select submission, task_version, gpu, $6,
    score || jsonb_build_object(
        'time_ns', $2::float8, 'half_width_ns', $3::float8, 'resolution_ns', $4::float8,
        'claimed_ns', $5::float8),
    $7
from confirmations where id = $1
returning move_leaderboard(task_version, gpu)

-- name: refuse
with run_of as (
    select jobs.id as job, confirmations.task_version, confirmations.gpu, submissions.person,
        move_leaderboard(confirmations.task_version, confirmations.gpu)
    from confirmations join jobs on jobs.submission = run
    join submissions on submissions.id = confirmations.submission
    where confirmations.id = $1
)
insert into entrants (task_version, gpu, person, refused)
select task_version, gpu, person, job from run_of
on conflict (task_version, gpu, person) do update set refused = excluded.refused

-- name: compare
insert into confirmations (submission, task_version, gpu, final, place, created_at)
select $2, task_version, gpu, id, $3, $4 from finals where id = $1
returning id

-- name: start_final
insert into finals (board, task_version, gpu, top, actor, created_at)
select id, $2, $3, $4, $5, $6 from boards where id = $1 for key share
on conflict (board, gpu) where ended_at is null do nothing
returning *, 0 as compared, null::float8 as comparison_s

-- name: finals_of
select distinct on (gpu) finals.*, made.compared, made.comparison_s
from finals cross join lateral (
    select count(*) as compared,
        extract(epoch from max(decided_at) - min(created_at))::float8 / count(*) as comparison_s
    from confirmations where final = finals.id and state <> 'pending'
) as made
where board = $1 order by gpu, id desc

-- name: running_final
select finals.*, (
    select count(*) from confirmations where final = finals.id and state <> 'pending'
) as compared, null::float8 as comparison_s
from finals where task_version = $1 and gpu = $2 and ended_at is null

-- name: unjudged
select count(*) as jobs from jobs join submissions on submissions.id = submission
where task_version = $1 and gpu = $2 and submissions.mode = 'ranked' and submissions.id > 0
    and jobs.state in ('queued', 'running')

-- name: begin_final
update finals set entries = $2 where id = $1

-- name: rescore
update scores set time_ns = $3, half_width_ns = $4, resolution_ns = $5, claimed_ns = $6
where submission = $1 and gpu = $2
returning task_version

-- name: recount
-- Triggers do this for a score that is new or deleted, but not for one that a final has changed.
select recount(scores.task_version, scores.gpu, person),
    find_records(scores.task_version, scores.gpu, submission),
    keep_record(scores.task_version, scores.gpu, submission)
from scores join submissions on submissions.id = submission
where submission = $1 and gpu = $2

-- name: end_final
update finals set rows = $2, ended_at = $3 where id = $1 and ended_at is null

-- name: cancel_final
delete from finals where id = $1 and ended_at is null returning id

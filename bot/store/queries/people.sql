-- name: ensure
-- The name stays if an admin reset this one, or if the person has chosen another.
insert into people (identity, name, skeleton, handle, created_at) values ($1, $2, $3, $4, $5)
on conflict (identity) do update set (name, skeleton) = (
    select people.name, people.skeleton
    where people.named_at is not null or people.refused_skeleton = excluded.skeleton
    union all
    select excluded.name, excluded.skeleton
    limit 1
), handle = coalesce(excluded.handle, people.handle)
returning *

-- name: rename
update people set name = $2, skeleton = $5, named_at = $3
where id = $1 and (named_at is null or named_at <= $4) and not starts_with(identity, 'deleted:')
    and refused_skeleton is distinct from $5
returning *

-- name: reset_name
update people set name = $3, skeleton = $4, refused_skeleton = $5 where id = $1 and name = $2
returning *

-- name: offer_notifications
update people set notices_offered = coalesce(notices_offered, $2) where id = $1
returning notices_offered

-- name: without_skeleton
select id, name from people where skeleton is null limit 1000

-- name: set_skeleton
update people set skeleton = $3 where id = $1 and name = $2 and skeleton is null

-- name: get
select * from people where id = $1

-- name: find
select * from people where identity = $1

-- name: save_conversation
update people set conversation = $2 where id = $1 and conversation is distinct from $2
returning id

-- name: conversation
select conversation from people where id = $1

-- name: deleted
select id from people where starts_with(identity, 'deleted:')

-- name: lock_all
-- Locks whatever others may write for the person at the same moment.
select id from people where id = $1 for update

-- name: evaluations_of
select job, submission, evaluation from evaluations join submissions on submissions.id = submission
where person = $1 order by job

-- name: redact
update evaluations set evaluation = $2, message = '' where job = $1

-- name: final_rows_of
select finals.id, finals.rows from finals
where rows is not null and exists (select from submissions where person = $1 and submissions.board = finals.board)

-- name: set_final_rows
update finals set rows = $2 where id = $1

-- name: sources_of
select distinct source from submissions where person = $1 and source <> $2

-- name: empty_source
insert into sources (sha256, text) values ($1, '') on conflict do nothing

-- name: empty_submissions
update submissions set source = $2, file_name = 'deleted', warning = '', note = '', profile = null, consent = 'never'
where person = $1

-- name: delete_sources
delete from sources
where sha256 = any ($1::text[]) and not exists (select from submissions where source = sha256)

-- name: threads_of
select thread from board_threads where person = $1 and thread is not null

-- name: erase
with gone_files as (
    delete from evaluation_files using evaluations, submissions
    where evaluation_files.job = evaluations.job and submissions.id = evaluations.submission
        and submissions.person = $1
), gone_events as (
    delete from job_events using submissions
    where job_events.submission = submissions.id and submissions.person = $1
), gone_displays as (
    delete from displays using submissions
    where displays.submission = submissions.id and submissions.person = $1
), gone_prints as (
    delete from source_prints where person = $1
), gone_keys as (
    delete from submission_keys where person = $1
), gone_tokens as (
    delete from tokens where person = $1 and scope <> 'worker'
), gone_rights as (
    delete from rights where person = $1
), gone_threads as (
    delete from board_threads where person = $1
), gone_releases as (
    delete from releases where person = $1 and ended_at is not null
), gone_listeners as (
    delete from listeners where addressee = $2
), gone_outbox as (
    delete from outbox where addressee = $2
), gone_outcomes as (
    delete from unsent_outcomes where addressee = $2
), gone_alerts as (
    delete from alerts where once and $1::text = any (string_to_array(key, ' '))
), gone_invites as (
    delete from invite_links where creator = $1
), gone_guests as (
    update boards set guests = array_remove(guests, $2) where $2 = any (guests)
)
update people set identity = 'deleted:' || id, name = $3, conversation = null, handle = null,
    skeleton = $4, refused_skeleton = null, named_at = null
where id = $1

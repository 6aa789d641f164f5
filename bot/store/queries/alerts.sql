-- name: go_on
-- An alert that begins again soon after its end goes on.
update alerts set ended_at = null
where key = $1 and ended_at > $2 and not once
    and id = (select max(id) from alerts where key = $1)
    and not exists (select from alerts where key = $1 and ended_at is null)
returning id

-- name: begin
insert into alerts (key, text, began_at, once) values ($1, $2, $3, false)
on conflict do nothing

-- name: end_except
update alerts set ended_at = $2 where ended_at is null and not once and key <> all ($1::text[])
returning id

-- name: report_once
insert into alerts (key, text, began_at, once)
select $1, $2, $3, true where not exists (select from alerts where key = $1)
on conflict do nothing

-- name: add_messages
-- No message for alerts that have ended, or that were reported once and more than an hour ago.
insert into alert_messages (alert, addressee, due)
select alerts.id, addressee, $2
from alerts, unnest($1::text[]) as addressee
where ended_at is null and (not once or began_at > $2::timestamptz - interval '1 hour')
on conflict do nothing

-- name: claim
with due as (
    select alert, addressee from alert_messages join alerts on alerts.id = alert
    where addressee = any ($1) and due <= $3
        and (message is null or has_ended <> (ended_at is not null))
        and not (message is null and ended_at is not null and tries = 0)
    order by alert, addressee limit 5
    for update of alert_messages skip locked
)
update alert_messages set owner = $2, due = $4, tries = tries + 1
from due, alerts
where alert_messages.alert = due.alert and alert_messages.addressee = due.addressee
    and alerts.id = due.alert
returning alert_messages.alert, alert_messages.addressee, message, tries, text, began_at, ended_at

-- name: mark_sent
update alert_messages set message = $4, has_ended = $5, due = $6, tries = 1, owner = null
where alert = $1 and addressee = $2 and owner = $3
returning alert

-- name: retry_later
update alert_messages set due = $4, owner = null
where alert = $1 and addressee = $2 and owner = $3
returning alert

-- name: without_fingerprint
select submissions.id as submission, submissions.person, submissions.board,
    submissions.task_version, sources.text as source
from submissions
join sources on sources.sha256 = submissions.source
where mode = 'ranked' and submissions.id > 0 and created_at > $1
    and exists (select from scores where scores.submission = submissions.id)
    and not exists (select from source_prints where source_prints.submission = submissions.id)
order by submissions.id limit 20

-- name: fingerprints_of_others
-- The newest of each other person, if its length is similar: others cannot be near-identical.
select submission, person, prints, task_version
from (
    select distinct on (source_prints.person) submission, source_prints.person, prints, task_version
    from source_prints join submissions on submissions.id = submission
    where source_prints.board = $1 and source_prints.person <> $2
    order by source_prints.person, submission desc
) as newest
where cardinality(prints) between $3::int / 2 and $3::int * 2

-- name: save_fingerprint
insert into source_prints (submission, board, person, prints)
select id, board, person, $2 from submissions where id = $1
on conflict do nothing

-- name: delete_old
delete from alerts where not once and ended_at < $1

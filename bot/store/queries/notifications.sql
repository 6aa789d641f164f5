-- name: unlisten
delete from listeners where addressee = $1

-- name: listen
insert into listeners (addressee, kind) select $1, unnest($2::text[]) on conflict do nothing

-- name: kinds
select kind from listeners where addressee = $1

-- name: listeners
select addressee from listeners where kind = $1 order by addressee collate "C"

-- name: unannounced
select untold.job, submissions.id as submission, submissions.person, submissions.board, submissions.task_version,
    evaluations.gpu
from untold
join evaluations using (job)
join submissions on submissions.id = evaluations.submission
order by evaluations.at, untold.job limit $1

-- name: mark_announced
delete from untold where job = $1 returning job

-- name: put
-- The condition avoids conflicts, each of which would use up a number.
insert into outbox (key, kind, addressee, board, text, due)
select new.*, $6
from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[])
    as new (key, kind, addressee, board, text)
where not exists (select from outbox where outbox.key = new.key)
    and (new.board is null or exists (select from boards where boards.id = new.board))
on conflict (key) do nothing
returning id

-- name: claim
with due as (
    select id from outbox
    where done_at is null and due <= $3 and (lease_until is null or lease_until <= $3)
        and starts_with(addressee, $1)
    order by due, id limit $5
    for update skip locked
)
update outbox set owner = $2, lease_until = $4, tries = tries + 1
from due where outbox.id = due.id
returning outbox.*

-- name: finish
update outbox set owner = null, lease_until = null, done_at = $3, refusal = $4
where id = $1 and owner = $2
returning id

-- name: retry_later
update outbox set owner = null, lease_until = null, due = $3
where id = $1 and owner = $2
returning id

-- name: delete_finished
delete from outbox where done_at < $1 returning id

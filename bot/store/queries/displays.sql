-- name: claim
with due as (
    select submission from displays
    where door = $1 and finished_at is null and (lease_until is null or lease_until <= $3)
    order by submission limit $5
    for update skip locked
)
update displays set owner = $2, lease_until = $4, claims = claims + 1
from due, submissions
where displays.submission = due.submission and submissions.id = due.submission
returning displays.*, submissions.person

-- name: renew
update displays set lease_until = $3
where owner = $1 and finished_at is null and lease_until > $2
returning submission

-- name: save_state
update displays set place = $3 where submission = $1 and owner = $2 and finished_at is null
returning submission

-- name: finish
update displays set place = $3, owner = null, lease_until = null, finished_at = $4
where submission = $1 and owner = $2 and finished_at is null
returning submission

-- name: release_all
update displays set owner = null, lease_until = null where owner = $1
returning submission

-- name: find
select displays.*, person from displays join submissions on submissions.id = submission
where submission = $1

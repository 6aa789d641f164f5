-- name: claim
insert into interactions (id, door, request, token, asked_at, owner, lease_until)
values ($1, $2, $3, $4, $5, $6, $8)
on conflict (id) do update
set owner = excluded.owner, lease_until = excluded.lease_until, tries = interactions.tries + 1
where interactions.done_at is null and interactions.lease_until <= $7
returning id

-- name: claim_unfinished
with due as (
    select id from interactions
    where door = $1 and done_at is null and lease_until <= $3
    order by asked_at limit 10
    for update skip locked
)
update interactions set owner = $2, lease_until = $4
from due
where interactions.id = due.id
returning interactions.id, request, case when asked_at > $5 then token end as token, asked_at, tries

-- name: begin
update interactions set lease_until = $3, tries = tries + 1
where id = $1 and owner = $2 and done_at is null
returning id

-- name: renew
update interactions set lease_until = $3 where id = $1 and owner = $2 and done_at is null
returning id

-- name: release
update interactions set owner = null, lease_until = $3, tries = tries - 1
where id = $1 and owner = $2 and done_at is null
returning id

-- name: save_request
update interactions set request = $3 where id = $1 and owner = $2 and done_at is null
returning id

-- name: finish
update interactions
set request = null, token = case when $4 then token end, owner = null, lease_until = null,
    done_at = $3
where id = $1 and owner = $2 and done_at is null
returning id

-- name: answer_of
select done_at is not null as done, case when asked_at > $2 then token end as token
from interactions where id = $1

-- name: drop_token
update interactions set token = null
where id = $1 and token is not null and done_at is not null
returning id

-- name: ask
insert into questions (id, asked, action, request, content, asked_at, chosen)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do nothing

-- name: question
select id, asked, action, request, content, asked_at, chosen from questions
where id = $1 and asked_at > $2

-- name: choose
update questions
set chosen = array(
        select name from unnest(chosen) with ordinality as kept (name, place)
        where name <> all($2::text[]) order by place
    ) || $3::text[]
where id = $1

-- name: answer_question
update questions set answered_by = $2 where id = $1 and coalesce(answered_by, $2) = $2
returning id

-- name: delete_finished
with hidden as (
    update interactions set token = null where token is not null and asked_at <= $1
    returning id
), gone as (
    delete from interactions where done_at <= $2
    returning id
), expired as (
    delete from questions where asked_at <= $1
    returning id
)
select id from hidden union all select id from gone union all select id from expired

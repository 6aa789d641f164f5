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
with done as (
    update interactions
    set request = null, token = case when $4 then token end, owner = null, lease_until = null,
        done_at = $3
    where id = $1 and owner = $2 and done_at is null
    returning id
), told as (
    delete from unsent_outcomes using done where unsent_outcomes.teller = done.id and $5
), kept as (
    insert into unsent_outcomes (id, addressee, said, at)
    select id, $6, $7, $3 from done where $6::text is not null
    on conflict (id) do nothing
)
select id from done

-- name: take_untold
with next as (
    select id from unsent_outcomes
    where addressee = $1 and at > $3
        and (teller is null or teller = $2 or not exists (
            select from interactions
            where interactions.id = unsent_outcomes.teller and interactions.done_at is null
        ))
    order by (teller = $2) desc nulls last, at, id limit 1
    for update skip locked
)
update unsent_outcomes set teller = $2 from next where unsent_outcomes.id = next.id
returning said

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
), unread as (
    delete from unsent_outcomes where at <= $2
    returning id
)
select id from hidden union all select id from gone union all select id from expired
union all select id from unread

-- name: add
insert into releases (door, person, zip, wish, place) values ($1, $2, $3, $4, $5)
returning id

-- name: claim
with ranked as (
    select id, lease_until, row_number() over (
        partition by person order by coalesce(lease_until > $3, false) desc, id
    ) as place
    from releases where door = $1 and ended_at is null
),
due as (
    select id from releases
    where ended_at is null and (lease_until is null or lease_until <= $3)
        and id in (select id from ranked where place <= $6)
    order by id limit $5
    for update skip locked
)
update releases set owner = $2, lease_until = $4, tries = tries + 1
from due
where releases.id = due.id
returning releases.*

-- name: renew
update releases set lease_until = $3
where owner = $1 and lease_until > $2
returning id

-- name: save_state
update releases set state = coalesce($3, state), place = coalesce($4, place)
where id = $1 and owner = $2
returning id

-- name: cancel
-- Not if its check has passed: the board may already be stored.
update releases set cancelled = $3
where person = $1 and ($2::bigint is null or id = $2) and ended_at is null and cancelled is null
    and not coalesce((state::json ->> 'publishing')::boolean, false)
    and state::json ->> 'outcome' is null
returning id

-- name: cancellation
select cancelled from releases where id = $1

-- name: finish
delete from releases where id = $1 and owner = $2
returning id

-- name: end
with ended as (
    update releases
    set zip = case when $4 then zip else '' end, ended_at = $3, owner = null, lease_until = null
    where id = $1 and owner = $2
    returning id, person, door
),
checked as (
    delete from check_tasks using ended where release = ended.id
),
replaced as (
    update releases as older set zip = ''
    from ended
    where $4 and older.person = ended.person and older.door = ended.door
        and older.ended_at is not null and older.id <> ended.id and octet_length(older.zip) > 0
)
select id from ended

-- name: repeat
-- A second statement waits for the row and then finds no zip.
with kept as (
    select id, door, person, zip, place from releases
    where id = $1 and door = $2 and ended_at is not null and octet_length(zip) > 0
    for update
),
used as (
    update releases set zip = '' from kept where releases.id = kept.id
)
insert into releases (door, person, zip, wish, place)
select door, person, zip, $3, place from kept
returning id

-- name: kept_zip
select zip from releases
where id = $1 and door = $2 and ended_at is not null and octet_length(zip) > 0

-- name: summary
select id, person, wish, state, tries, ended_at, octet_length(zip) > 0 as has_zip
from releases where id = $1 and ($2::text is null or door = $2)

-- name: summaries_of
select id, person, wish, state, tries, ended_at, octet_length(zip) > 0 as has_zip from releases
where person = $1 and door = $2
order by id desc limit 100

-- name: delete_ended
-- Also deletes those of killed commands, which no engine takes over.
delete from releases where ended_at < $1 or (door like 'command-line-%' and lease_until < $1)
returning id

-- name: release_all
update releases set owner = null, lease_until = null, tries = tries - 1 where owner = $1
returning id

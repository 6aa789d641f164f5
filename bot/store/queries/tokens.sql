-- name: add
-- Serializes the tokens of one person: a count in the same transaction misses none.
insert into tokens (person, digest, label, created_at, scope, expires_at, begun_by)
select id, $2, $3, $4, $5, $6, $7 from people where id = $1 for no key update
returning *

-- name: find
select * from tokens
where digest = $1 and revoked_at is null and not exists (
    select 1 from tokens as parent
    where parent.id = tokens.begun_by and parent.revoked_at is not null
)

-- name: find_holder
-- One query instead of three, because every request with a token or from a signed-in browser needs it.
select tokens.*, people.identity, people.name, people.handle, people.created_at as joined_at,
    array(
        select distinct unnest(credentials) from rights where rights.person = people.id
    ) as credentials,
    exists (select from rights where rights.person = people.id and is_admin) as is_admin,
    exists (select from rights where rights.person = people.id and is_creator) as is_creator
from tokens join people on people.id = tokens.person
where digest = $1 and revoked_at is null and not exists (
    select 1 from tokens as parent
    where parent.id = tokens.begun_by and parent.revoked_at is not null
)

-- name: of
select * from tokens
where person = $1 and scope in ('read', 'person', 'admin') and revoked_at is null
    and (expires_at is null or expires_at > $2)
order by id

-- name: sessions_of
select * from tokens
where person = $1 and scope in ('session', 'admin-session') and revoked_at is null
    and not exists (
        select 1 from tokens as parent
        where parent.id = tokens.begun_by and parent.revoked_at is not null
    )
order by id desc

-- name: of_workers
select * from tokens where scope = 'worker' and revoked_at is null order by label collate "C"

-- name: revoke
update tokens set revoked_at = $3
where id = $2 and person = $1 and scope <> 'worker' and revoked_at is null
returning id

-- name: revoke_worker
update tokens set revoked_at = $2
where label = $1 and scope = 'worker' and revoked_at is null
returning id

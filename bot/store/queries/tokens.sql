-- name: add
insert into tokens (person, digest, label, created_at) values ($1, $2, $3, $4)
returning *

-- name: find
select * from tokens where digest = $1 and revoked_at is null

-- name: of
select * from tokens where person = $1 and revoked_at is null order by id

-- name: revoke
update tokens set revoked_at = $3 where id = $2 and person = $1 and revoked_at is null
returning id

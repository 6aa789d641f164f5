-- name: add
insert into tokens (person, digest, label, created_at, scope, expires_at)
values ($1, $2, $3, $4, $5, $6)
returning *

-- name: find
select * from tokens where digest = $1 and revoked_at is null

-- name: of
select * from tokens where person = $1 and scope = 'person' and revoked_at is null order by id

-- name: of_workers
select * from tokens where scope = 'worker' and revoked_at is null order by label collate "C"

-- name: revoke
update tokens set revoked_at = $3
where id = $2 and person = $1 and scope = 'person' and revoked_at is null
returning id

-- name: revoke_worker
update tokens set revoked_at = $2
where label = $1 and scope = 'worker' and revoked_at is null
returning id

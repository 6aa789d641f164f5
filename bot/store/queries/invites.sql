-- name: add
insert into invite_links (board, creator, digest, most, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6)
returning *

-- name: of
select * from invite_links where board = $1 and revoked_at is null and expires_at > $2 order by id

-- name: revoke
update invite_links set revoked_at = $3
where board = $1 and id = $2 and revoked_at is null and expires_at > $3
returning id

-- name: find
select * from invite_links where digest = $1 and revoked_at is null and expires_at > $2

-- name: use
update invite_links set uses = uses + $3
where digest = $1 and revoked_at is null and expires_at > $2 and uses + $3 <= most
returning id

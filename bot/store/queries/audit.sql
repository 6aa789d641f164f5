-- name: record
insert into audit (actor, action, subject, reason, at) values ($1, $2, $3, $4, $5)

-- name: rows
select * from audit where $3::bigint is null or id < $3 order by id desc limit $1 offset $2

-- name: record
insert into audit (actor, action, subject, reason, at, request) values ($1, $2, $3, $4, $5, $6)
on conflict (request, action, subject) where request is not null do nothing

-- name: rows
select * from audit where $3::bigint is null or id < $3 order by id desc limit $1 offset $2

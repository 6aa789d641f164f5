-- name: record
insert into audit (actor, action, subject, reason, at, request)
select $1, $2::text, $3::text, $4, $5, $6::text
where $6 is null or not exists (
    select from audit as same where request = $6 and action = $2 and subject = $3
        and not exists (select from audit where subject = $3 and id > same.id)
)

-- name: rows
select * from audit where $3::bigint is null or id < $3 order by id desc limit $1 offset $2

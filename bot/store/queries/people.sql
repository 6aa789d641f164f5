-- name: ensure
insert into people (identity, name, created_at) values ($1, $2, $3)
on conflict (identity) do update set name = excluded.name
returning *

-- name: get
select * from people where id = $1

-- name: find
select * from people where identity = $1

-- name: converse
update people set conversation = $2 where id = $1 and conversation is distinct from $2
returning id

-- name: conversation
select conversation from people where id = $1

-- name: replace
-- Autocompletion reports a person's rights with each letter typed: unchanged rights are written at
-- most once a minute.
insert into rights (person, source, credentials, is_admin, is_creator, seen_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (person, source) do update set
    credentials = excluded.credentials, is_admin = excluded.is_admin,
    is_creator = excluded.is_creator, seen_at = excluded.seen_at
where (rights.credentials, rights.is_admin, rights.is_creator)
        is distinct from (excluded.credentials, excluded.is_admin, excluded.is_creator)
    or rights.seen_at < excluded.seen_at - interval '1 minute'
returning person

-- name: remove
delete from rights where person = $1 and source = $2
returning person

-- name: of
select credentials, is_admin, is_creator from rights where person = $1

-- name: stale
select person, source from rights
where starts_with(source, $1) and seen_at < $2
order by seen_at, person, source
limit $3

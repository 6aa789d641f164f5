-- name: put
insert into competitions (name, creator, description, ranks, opens_at, created_at)
values ($1, $2, $3, $4, $5, $6)
returning id

-- name: change
update competitions set description = $2, ranks = $3, opens_at = $4 where id = $1
returning name

-- name: clear
delete from competition_boards where competition = $1

-- name: enter
insert into competition_boards (competition, board, position)
select $1, board, position from unnest($2::bigint[]) with ordinality as entered (board, position)

-- name: find
select * from competitions where name = $1

-- name: count_of
select count(*) as number from competitions where creator = $1

-- name: known_to
-- The rule is Competition.announced_to. It applies before `limit`: pages have no gaps.
select * from competitions
where ($1 or creator = $2 or exists (
        select from competition_boards join boards on boards.id = board
        where competition = competitions.id and (
            boards.creator = $2
            or (house is null or house = any ($3::text[]))
            and (visibility = 'public' or guests && $3::text[]))))
    and ($4::text is null or name collate "C" > $4)
order by case when $4::text is null then opens_at end desc, name collate "C" limit $5

-- name: unannounced
select * from competitions
where opens_at <= $1 and (opening_announced is null or exists (
    select from competition_boards join boards on boards.id = board
    where competition = competitions.id
    having bool_and(deadline is not null) and max(deadline) < $1
        and max(deadline) is distinct from closing_announced))
order by name collate "C"

-- name: lock
select id from competitions where id = $1 for update

-- name: drop_outbox
-- The keys are those of bot.domain.notifications.
delete from outbox
where kind = 'competition' and done_at is null
    and (starts_with(key, 'opening ' || $1::bigint || ' ')
        or starts_with(key, 'closing ' || $1::bigint || ' '))

-- name: drop
delete from competitions where id = $1

-- name: boards
select competition, boards.* from competition_boards join boards on boards.id = board
where competition = any ($1::bigint[])
order by competition, position

-- name: announce_opening
update competitions set opening_announced = $2 where id = $1 and opening_announced is null
returning id

-- name: announce_closing
update competitions set closing_announced = $2 where id = $1 and closing_announced is distinct from $2
returning id

-- name: drop_board
-- A competition is deleted with its last board.
with freed as (delete from competition_boards where board = $1 returning competition)
delete from competitions using freed
where id = freed.competition and not exists (
    select from competition_boards where competition = competitions.id and board <> $1)

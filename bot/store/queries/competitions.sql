-- name: put
insert into competitions (name, creator, description, ranks, opens_at, created_at)
values ($1, $2, $3, $4, $5, $6)
on conflict (name) do update
set description = excluded.description, ranks = excluded.ranks, opens_at = excluded.opens_at
returning id

-- name: clear
delete from competition_boards where competition = $1

-- name: enter
insert into competition_boards (competition, board, position)
select $1, board, position from unnest($2::bigint[]) with ordinality as entered (board, position)

-- name: find
select * from competitions where name = $1

-- name: all
select * from competitions order by name collate "C"

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
-- A competition ends with its last board.
with freed as (delete from competition_boards where board = $1 returning competition)
delete from competitions using freed
where id = freed.competition and not exists (
    select from competition_boards where competition = competitions.id and board <> $1)

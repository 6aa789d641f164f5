-- name: find
select thread from board_threads where door = $1 and guild = $2 and board = $3 and person = $4

-- name: claim
insert into board_threads (door, guild, board, person, used_at, owner, lease_until, claims)
values ($1, $2, $3, $4, $6, $5, $7, 1)
on conflict (door, guild, board, person) do update
set owner = excluded.owner, lease_until = excluded.lease_until, claims = board_threads.claims + 1
where (board_threads.thread is null or board_threads.thread = $8)
    and (board_threads.lease_until is null or board_threads.lease_until <= $6)
returning claims

-- name: renew
update board_threads set lease_until = $6
where door = $1 and guild = $2 and board = $3 and person = $4 and owner = $5
returning door

-- name: save
update board_threads set thread = $6, used_at = $7, owner = null, lease_until = null
where door = $1 and guild = $2 and board = $3 and person = $4 and owner = $5
returning thread

-- name: release
update board_threads set owner = null, lease_until = null
where door = $1 and guild = $2 and board = $3 and person = $4 and owner = $5
returning door

-- name: use
update board_threads set used_at = $5
where door = $1 and guild = $2 and board = $3 and person = $4
returning door

-- name: idle
select thread from board_threads
where door = $1 and guild = $2 and person <> 0 and thread is not null and not exists (
    select from displays
    join submissions on submissions.id = displays.submission
    where displays.finished_at is null and displays.door = $1
        and submissions.board = board_threads.board and submissions.person = board_threads.person
)
order by used_at

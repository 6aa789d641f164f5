-- name: lock_person
-- Serializes decisions about a person's submissions: each sees what the previous one committed.
select id from people where id = $1 for no key update

-- name: ban
insert into bans (person, reason, at, until) values ($1, $2, $3, $4)
on conflict (person) do update
set reason = excluded.reason, at = excluded.at, until = excluded.until

-- name: unban
delete from bans where person = $1 returning until is null or until > $2 as lasted

-- name: ban_of
select reason, until from bans where person = $1 and (until is null or until > $2)

-- name: bans
select person, reason, until from bans where until is null or until > $1
order by at desc, person

-- name: exclude
-- Excludes nothing if the submission's board was deleted at the same moment.
insert into exclusions (submission, kind, reason, at)
select id, $2, $3, $4 from submissions where id = $1 for key share
on conflict (submission) do update
set kind = excluded.kind, reason = excluded.reason, at = excluded.at

-- name: include
delete from exclusions where submission = $1 returning submission

-- name: exclusion_of
select * from exclusions where submission = $1

-- name: pause
insert into pause (notice, at) values ($1, $2)
on conflict (only_row) do update set notice = excluded.notice, at = excluded.at

-- name: resume
delete from pause returning notice

-- name: pause_notice
select notice from pause

-- name: pause_board
insert into board_pauses (board, notice, at) values ($1, $2, $3)
on conflict (board) do update set notice = excluded.notice, at = excluded.at

-- name: resume_board
delete from board_pauses where board = $1 returning notice

-- name: board_pauses
select board, notice from board_pauses

-- name: pause_gpu
insert into pools (gpu, paused, notice) values ($1, true, $2)
on conflict (gpu) do update set paused = true, notice = excluded.notice

-- name: resume_gpu
update pools set paused = false, notice = null where gpu = $1 and paused
returning pg_notify('podium_ready', gpu)

-- name: gpu_pauses
select gpu, coalesce(notice, '') as notice from pools where paused order by gpu collate "C"

-- name: set_limit
insert into rate_limits (board, mode, person, most, window_s, reason, until)
values ($1, $2, $3, $4, $5, $6, $7)
on conflict (board, mode, person) do update
set most = excluded.most, window_s = excluded.window_s, reason = excluded.reason,
    until = excluded.until

-- name: drop_limit
delete from rate_limits
where board is not distinct from $1::bigint and mode is not distinct from $2::text
    and person is not distinct from $3::bigint
returning until is null or until > $4 as lasted

-- name: limits
select * from rate_limits where until is null or until > $1
order by person nulls first, board nulls first, mode nulls first

-- name: limited_by
-- For each limit, the submission that must leave its window before one more can be accepted.
select limits.*, counted.created_at as counted_at
from rate_limits as limits
cross join lateral (
    select created_at from submissions
    where person = $1 and not judged_again
        and (limits.board is null or submissions.board = limits.board)
        and (limits.mode is null or submissions.mode = limits.mode)
        and created_at > $4::timestamptz - make_interval(secs => limits.window_s)
    order by id desc offset limits.most - 1 limit 1
) as counted
where (limits.board is null or limits.board = $2) and (limits.mode is null or limits.mode = $3)
    and (limits.person is null or limits.person = $1)
    and (limits.until is null or limits.until > $4)
order by counted.created_at + make_interval(secs => window_s) desc
limit 1

-- name: open_channel
insert into rooms (house, room) values ($1, $2) on conflict do nothing

-- name: close_channel
delete from rooms where house = $1 and room = $2 returning room

-- name: channels
select room from rooms where house = $1 order by room collate "C"

-- name: claim_part
insert into guild_parts (guild, kind, lease_until) values ($1, $2, $4)
on conflict (guild, kind) do update set lease_until = excluded.lease_until
where guild_parts.part is null and guild_parts.lease_until <= $3
returning kind

-- name: keep_part
insert into guild_parts (guild, kind, part, lease_until) values ($1, $2, $3, $4)
on conflict (guild, kind) do update set part = excluded.part

-- name: parts
select guild, kind, part from guild_parts where part is not null

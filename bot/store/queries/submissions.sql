-- name: add
with source as (
    insert into sources (sha256, text) values ($5, $6) on conflict do nothing
),
pool as (
    insert into pools (gpu) select unnest($8::text[]) on conflict do nothing
),
home as (
    -- Locked: a change of the board's pins waits until these jobs are stored, or the reverse.
    select pools from boards where id = $2 for share
),
added as (
    insert into submissions (
        person, board, task_version, file_name, source, mode, gpus, created_at, judged_again,
        profile, warning, consent
    )
    values ($1, $2, $3, $4, $5, $7, $8, $11, $14, $15, $16,
        coalesce($19, (select source_visibility from boards where id = $2)))
    returning *
),
queued as (
    insert into jobs (
        submission, person, gpu, mode, priority, turn, max_attempts, run_at, created_at, moved_at,
        pool, limit_s, cards
    )
    select id, person, gpu, mode, $9, next_turn(person, gpu, $9), $10,
        created_at, created_at, created_at,
        coalesce((select pools ->> gpu from home where mode = 'ranked'), ''),
        $17, case when gpu = 'CPU' then 1 else $18 end
    from added, unnest(gpus) as gpu
),
shown as (
    insert into displays (submission, door, place)
    select id, $12::text, $13::text from added where $12::text is not null
)
select *, array['queued'] as states from added

-- name: get
select *, array(select state from jobs where submission = submissions.id) as states
from submissions where id = $1

-- name: several
select *, array(select state from jobs where submission = submissions.id) as states
from submissions where id = any ($1::bigint[]) order by id

-- name: newest
select *, array(select state from jobs where submission = submissions.id) as states
from submissions
where board not in (select id from boards where name like '/%')
order by id desc limit $1

-- name: source
select text from sources join submissions on submissions.source = sha256 where id = $1

-- name: write_note
update submissions set note = $2 where id = $1

-- name: history
select *, array(select state from jobs where submission = submissions.id) as states
from submissions
where person = $1 and ($2::bigint is null or board = $2) and ($3::bigint is null or id < $3)
    and board not in (select id from boards where name like '/%')
order by id desc limit $4

-- name: to
select *, array(select state from jobs where submission = submissions.id) as states
from submissions where board = $1 and id > 0 order by id

-- name: first
select submissions.*, digest, array(select state from jobs where submission = submissions.id) as states
from submission_keys join submissions on submissions.id = submission
where submission_keys.person = $1 and key = $2 and made_at > $3

-- name: store_key
insert into submission_keys (person, key, digest, submission, made_at) values ($1, $2, $3, $4, $5)
on conflict (person, key) do update
set digest = excluded.digest, submission = excluded.submission, made_at = excluded.made_at

-- name: delete_expired_keys
delete from submission_keys where made_at <= $1 returning key

-- A run that would take one of the first places of a leaderboard is compared with their holder.

create table finals (
    id           bigint generated always as identity primary key,
    board        bigint not null references boards (id) on delete cascade,
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    top          int not null check (top >= 2),
    actor        bigint not null references people (id),
    entries      bigint[],
    rows         text,
    created_at   timestamptz not null,
    ended_at     timestamptz,
    check ((rows is null) = (ended_at is null))
);
comment on table finals is 'The first entries of a leaderboard, each compared with the one before';
comment on column finals.entries is 'The submissions as they were ranked at its start; null until it starts';
comment on column finals.rows is 'Its published table as JSON text of bot.domain.finals';
create unique index finals_running on finals (board, gpu) where ended_at is null;
create index finals_of_board on finals (board, id desc);

create table confirmations (
    id           bigint generated always as identity primary key,
    submission   bigint not null references submissions (id) on delete cascade,
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    final        bigint references finals (id) on delete cascade,
    state        text not null default 'pending' check (state in (
        'pending', 'confirmed', 'tied', 'slower', 'refused', 'undecided', 'dropped')),
    place        int not null check (place >= 1),
    score        jsonb,
    rival        bigint references submissions (id) on delete cascade,
    run          bigint references submissions (id) on delete set null,
    alone        bigint references submissions (id) on delete cascade,
    attempts     int not null default 0,
    failures     int not null default 0,
    ratio        double precision check (ratio > 0 and ratio < 'infinity'),
    half_width   double precision check (half_width >= 0 and half_width < 'infinity'),
    reason       text not null default '',
    created_at   timestamptz not null,
    decided_at   timestamptz,
    check ((state = 'pending') = (decided_at is null)),
    check ((ratio is null) = (half_width is null))
);
comment on table confirmations is 'One comparison of a submission with a rival on one GPU type';
comment on column confirmations.final is 'The final that it belongs to; null: a new run has to be confirmed';
comment on column confirmations.place is 'The place that the run would take';
comment on column confirmations.score is 'The row of scores that is held back while it is pending';
comment on column confirmations.rival is 'The holder of the place; null until the comparison starts';
comment on column confirmations.run is 'The system''s submission whose job compares both now, or did last';
comment on column confirmations.alone is 'The submission that failed, which the run judges again alone; null: it compares both';
comment on column confirmations.attempts is 'How many runs compared both';
comment on column confirmations.failures is 'How often it failed when it was judged again alone';
comment on column confirmations.ratio is 'Time of the submission by time of the rival, with half of its 95 % interval';
create index confirmations_of_submission on confirmations (submission, gpu);
create index confirmations_of_rival on confirmations (rival);
create index confirmations_of_final on confirmations (final);
create index confirmations_with_ratio on confirmations (task_version, gpu) where ratio is not null;
create index confirmations_pending on confirmations (task_version, gpu) where state = 'pending';

create table confirmation_runs (
    run          bigint primary key references submissions (id) on delete cascade,
    confirmation bigint not null references confirmations (id) on delete cascade
);
comment on table confirmation_runs is 'Every submission of the system that compared or judged again, for all attempts';
create index runs_of_confirmation on confirmation_runs (confirmation);

-- The runs of confirmations are counted apart.
create or replace function tally_evaluation() returns trigger language plpgsql as $$
declare
    its_mode text;
    queued_s double precision;
    judged_in int := 1 + bucket_of(new.wall_s);
    waited_in int;
begin
    select case
            when exists (select from confirmation_runs where run = submission) then 'confirmation'
            when submission < 0 then 'reference'
            else mode
        end,
        greatest(0, extract(epoch from started_at - created_at))
    into its_mode, queued_s from jobs where id = new.job;
    waited_in := 1 + bucket_of(queued_s);
    insert into tallies values (
        new.gpu, its_mode, new.verdict, 0, 0, 0,
        array_fill(0::bigint, array[13]), array_fill(0::bigint, array[13]))
    on conflict do nothing;
    update tallies set
        evaluations = evaluations + 1,
        judged_s = judged_s + new.wall_s,
        waited_s = waited_s + queued_s,
        judged[judged_in] = judged[judged_in] + 1,
        waited[waited_in] = waited[waited_in] + 1
    where gpu = new.gpu and mode = its_mode and verdict = new.verdict;
    return null;
end $$;

-- The result of the numbered migrations, for reading; tests/migrations checks that both are equal.

-- People, boards and task versions.

create table people (
    id         bigint generated always as identity primary key,
    identity   text not null unique,
    name       text not null,
    created_at timestamptz not null,
    conversation text,
    handle     text,
    skeleton   text,
    refused_skeleton text,
    notices_offered bigint,
    named_at   timestamptz
);
comment on column people.conversation is 'Where the front end and the person have exchanged direct messages; null if they have not';
comment on column people.handle is 'The user name at the front end, which is unique there; null where only the identity is known';
comment on column people.skeleton is 'Equal for names that look alike, see bot.domain.names; null until a process has computed it';
comment on column people.refused_skeleton is 'The skeleton of the name that an admin reset, which the person cannot choose again';
comment on column people.notices_offered is 'The submission below which notifications of results were offered; null: not offered yet';
comment on column people.named_at is 'When the person last chose their name; null: they have the name that the front end reports';
create index people_by_skeleton on people (skeleton);
comment on column people.identity is 'The door''s own name of the account, such as local:ada';

create table boards (
    id           bigint generated always as identity primary key,
    name         text not null unique,
    gpus         text[] not null,
    deadline     timestamptz,
    creator      bigint not null references people (id),
    task_version bigint,
    created_at   timestamptz not null,
    visibility   text not null default 'public' check (visibility in ('public', 'private')),
    house        text,
    source_visibility text not null default 'after-deadline'
                 check (source_visibility in ('after-deadline', 'always', 'never')),
    guests       text[] not null default '{}',
    pools        jsonb not null default '{}' check (jsonb_typeof(pools) = 'object'),
    opens_at     timestamptz,
    late_runs    boolean not null default false,
    grader       text check (grader in ('native', 'popcorn'))
);
comment on column boards.house is 'What everyone who sees the board must have, such as discord-guild:123; null asks for nothing';
comment on column boards.guests is 'Who sees a private board: doors'' own words, such as discord:17 or discord-role:5';
comment on column boards.pools is 'By GPU type the pool that alone times its ranked jobs, see bot.domain.pins';
comment on column boards.opens_at is 'Until then only its creator and admins see it; null: it was open from the beginning';
comment on column boards.late_runs is 'Whether it accepts submissions in unranked modes after its deadline';
comment on column boards.grader is 'Who grades tasks with an evaluation of their own, as the creator chose; null: the check decides';
comment on column boards.task_version is 'What new submissions are judged by; null only within the transaction that publishes';

create table task_versions (
    id         bigint generated always as identity primary key,
    board      bigint not null references boards (id),
    number     int not null check (number >= 1),
    digest     text not null,
    definition text not null,
    created_at timestamptz not null,
    unique (board, number),
    unique (board, digest),
    unique (board, id)
);
comment on column task_versions.definition is 'TaskDefinition as JSON text: jsonb would refuse an escaped NUL and forget the order of keys';

alter table boards
    add constraint boards_task_version_is_its_own
    foreign key (id, task_version) references task_versions (board, id);

-- Submissions and the queue of their jobs.

create table sources (
    sha256 text primary key check (sha256 ~ '^[0-9a-f]{64}$'),
    text   bytea not null
);
comment on column sources.text is 'The exact bytes of the submission, which may hold a NUL';

create table submissions (
    id           bigint generated always as identity primary key,
    person       bigint not null references people (id),
    board        bigint not null references boards (id),
    task_version bigint not null,
    file_name    text not null,
    source       text not null references sources (sha256),
    mode         text not null check (mode in ('test', 'benchmark', 'profile', 'ranked')),
    gpus         text[] not null check (cardinality(gpus) >= 1),
    created_at   timestamptz not null,
    judged_again boolean not null default false,
    profile      text,
    warning      text not null default '',
    consent      text not null default 'never'
                 check (consent in ('after-deadline', 'always', 'never')),
    note         text not null default '',
    foreign key (board, task_version) references task_versions (board, id)
);
comment on column submissions.consent is 'Who might read the source, as the board stated when it was submitted; a later change shows it to no more people';
comment on column submissions.judged_again is 'An admin asked for it, so no quota of its person counts it';
comment on column submissions.note is 'Markdown of its author, for those who may read the source; empty: none';
comment on column submissions.profile is 'ProfileOptions as JSON text; null where nothing was asked for';
comment on column submissions.warning is 'Why it may be no valid Python, where the door did not know for certain; empty where it did';
create index submissions_of_person on submissions (person, id desc);
create index submissions_of_version on submissions (board, task_version);
create index submissions_of_source on submissions (source);

create table pools (
    gpu         text primary key,
    max_running int check (max_running >= 0),
    paused      boolean not null default false,
    notice      text
);
comment on table pools is 'One row per GPU type; claims lock it, which makes the limit exact';
comment on column pools.notice is 'Why the pool is paused, for those who wait';

create table present_turns (
    gpu      text not null references pools (gpu),
    priority int not null,
    turn     bigint not null check (turn >= 1),
    primary key (gpu, priority)
);
comment on column present_turns.turn is 'The highest turn that was claimed so far';

create table jobs (
    id               bigint generated always as identity primary key,
    submission       bigint references submissions (id),
    person           bigint not null references people (id),
    gpu              text not null references pools (gpu),
    mode             text not null,
    priority         int not null,
    turn             bigint not null check (turn >= 1),
    state            text not null default 'queued'
                     check (state in ('queued', 'running', 'succeeded', 'failed', 'cancelled')),
    attempt          int not null default 0 check (attempt between 0 and max_attempts),
    max_attempts     int not null check (max_attempts >= 1),
    fence            bigint not null default 0,
    worker           text,
    call             text,
    lease_until      timestamptz,
    cancel_requested boolean not null default false,
    error            text,
    run_at           timestamptz not null,
    created_at       timestamptz not null,
    moved_at         timestamptz not null,
    started_at       timestamptz,
    finished_at      timestamptz,
    pool             text not null default '',
    unique (submission, gpu),
    check ((state = 'running') = (lease_until is not null)),
    check ((state in ('succeeded', 'failed', 'cancelled')) = (finished_at is not null))
);
comment on column jobs.turn is 'Its place in line, see next_turn; kept for good';
comment on column jobs.fence is 'Grows with every claim; a late worker names an old one and is refused';
comment on column jobs.moved_at is 'When the state last changed; the time of the event';
comment on column jobs.call is 'The runner''s own id of the evaluation, kept when a lease runs out';
comment on column jobs.pool is 'Whose workers alone may claim it; empty: everybody''s';

-- A claim reads it in order and takes the first rows that are due.
create index jobs_in_line on jobs (gpu, pool, priority desc, turn, id, run_at) where state = 'queued';
create index jobs_waiting on jobs (person, gpu, priority, turn) where state = 'queued';
create index jobs_running on jobs (gpu) where state = 'running';
create index jobs_leased on jobs (lease_until) where state = 'running';

-- The rule is that of Jobs.claim in bot/ports/queue.py. The person's row is locked, so that two
-- submissions at once get two turns. The function is volatile: each of its statements sees what was
-- stored before, also by the statement that calls it. Sorting is off as in a claim: a planner whose
-- statistics say that the queue is empty would read all of it.
create function next_turn(for_person bigint, at_gpu text, at_priority int) returns bigint
language plpgsql set enable_sort = off as $$
begin
    perform 1 from people where id = for_person for no key update;
    return 1 + greatest(
        (select turn from present_turns where gpu = at_gpu and priority = at_priority),
        (select turn from jobs
         where person = for_person and gpu = at_gpu and priority = at_priority and state = 'queued'
         order by turn desc limit 1),
        0);
end $$;

create table job_events (
    id         bigint generated always as identity primary key,
    job        bigint not null references jobs (id),
    submission bigint not null references submissions (id),
    kind       text not null,
    body       text not null,
    at         timestamptz not null
);
create index job_events_in_order on job_events (submission, id);

-- Notices have ids only: a subscriber reads the state from the tables.
create function tell_new_jobs() returns trigger language plpgsql as $$
begin
    insert into job_events (job, submission, kind, body, at)
    select id, submission, state, json_build_object('gpu', gpu, 'attempt', attempt)::text, created_at
    from jobs_after where submission is not null order by id;
    perform pg_notify('podium_ready', gpu) from (select distinct gpu from jobs_after) as pool;
    perform pg_notify('podium_progress', submission::text)
    from (select distinct submission from jobs_after where submission is not null) as moved;
    return null;
end $$;

-- The rows of the submissions are locked in order before their events get ids: otherwise an event
-- with a lower id could appear after a watcher has read past it.
create function tell_moved_jobs() returns trigger language plpgsql as $$
declare
    moved bigint[];
begin
    select array_agg(distinct a.submission) into moved
    from jobs_after a join jobs_before b using (id)
    where a.state <> b.state and a.submission is not null;
    if moved is not null then
        perform 1 from submissions where id = any (moved) order by id for no key update;
        insert into job_events (job, submission, kind, body, at)
        select a.id, a.submission, a.state,
            json_strip_nulls(
                json_build_object('gpu', a.gpu, 'attempt', a.attempt, 'error', a.error))::text,
            a.moved_at
        from jobs_after a join jobs_before b using (id)
        where a.state <> b.state and a.submission is not null order by a.id;
        perform pg_notify('podium_progress', submission::text) from unnest(moved) as submission;
    end if;
    perform pg_notify('podium_ready', gpu) from (
        select distinct a.gpu from jobs_after a join jobs_before b using (id)
        where a.state <> b.state and (a.state = 'queued' or b.state = 'running')) as pool;
    perform pg_notify('podium_cancel', a.id::text)
    from jobs_after a join jobs_before b using (id)
    where a.cancel_requested and not b.cancel_requested;
    return null;
end $$;

create trigger tell_new after insert on jobs
    referencing new table as jobs_after
    for each statement execute function tell_new_jobs();
create trigger tell_moved after update on jobs
    referencing old table as jobs_before new table as jobs_after
    for each statement execute function tell_moved_jobs();

-- Evaluations, scores and the audit log.

create table evaluations (
    job          bigint primary key references jobs (id),
    submission   bigint not null references submissions (id),
    task_version bigint not null references task_versions (id),
    gpu          text not null,
    verdict      text not null,
    stage        text,
    message      text not null,
    wall_s       double precision not null,
    evaluation   text not null,
    at           timestamptz not null,
    used_s       double precision not null,
    noisy        boolean not null default false,
    unique (submission, gpu)
);
comment on column evaluations.noisy is 'Whether it passed, but its time is too uncertain to be ranked; the rule is bot.domain.noise';
comment on column evaluations.used_s is 'Seconds for which it had its GPUs, times their number';
create index evaluations_recent on evaluations (at);
comment on column evaluations.evaluation is
    'Evaluation as JSON text, with every raw sample and the environment; verdict, stage, message and wall_s repeat it for queries';
create index evaluations_newest on evaluations (task_version, gpu, at desc, job desc);

create table evaluation_files (
    job    bigint not null references evaluations (job),
    name   text not null,
    zipped bytea not null,
    primary key (job, name)
);
alter table evaluation_files alter zipped set storage external;
comment on column evaluation_files.zipped is 'Its bytes, compressed by zlib';

create table scores (
    job           bigint primary key references evaluations (job),
    submission    bigint not null references submissions (id),
    task_version  bigint not null references task_versions (id),
    gpu           text not null,
    time_ns       double precision not null check (time_ns > 0 and time_ns < 'infinity'),
    half_width_ns double precision not null check (half_width_ns >= 0 and half_width_ns < 'infinity'),
    resolution_ns double precision check (resolution_ns >= 0 and resolution_ns < 'infinity'),
    claimed_ns    double precision,
    upper_ns      double precision not null
        generated always as (time_ns + (half_width_ns + coalesce(resolution_ns, 0))) stored,
    passes_ns     double precision not null generated always as (
        time_ns + (half_width_ns + coalesce(resolution_ns, 0)) + greatest(
            half_width_ns + coalesce(resolution_ns, 0),
            0.005 * (time_ns + (half_width_ns + coalesce(resolution_ns, 0))))
    ) stored,
    reference_ratio double precision check (reference_ratio > 0),
    reference_half_width double precision check (reference_half_width >= 0),
    unique (submission, gpu)
);
comment on column scores.time_ns is 'The time that counts: the judge''s own, or if there is none, as it was reported';
comment on column scores.resolution_ns is 'What the judge''s clock cannot see; null if it does not confirm the time';
comment on column scores.claimed_ns is 'What the submission''s own clock says; it decides nothing';
comment on column scores.upper_ns is 'The upper end of its interval, by which it is ordered; the rules are in bot.domain.scoring';
comment on column scores.passes_ns is 'It is ahead of those whose upper end is greater than this';
comment on column scores.reference_ratio is 'Its time / that of the reference, timed in turn; null if it was not';
comment on column scores.reference_half_width is 'Half of the 95 % interval of reference_ratio';
create index scores_in_order on scores (task_version, gpu, upper_ns);

create index submissions_ranked on submissions (task_version, id desc) where mode = 'ranked';

create table audit (
    id      bigint generated always as identity primary key,
    actor   bigint references people (id),
    action  text not null,
    subject text not null,
    reason  text not null,
    at      timestamptz not null,
    request text
);
comment on column audit.request is 'The command or click that was handled, if it may be handled again; null otherwise';
create index audit_requests on audit (request) where request is not null;

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'audit rows are never changed or removed' using errcode = 'restrict_violation';
end $$;

create trigger audit_stays before update or delete or truncate on audit
    for each statement execute function refuse_change();

-- Counts for monitoring. They only grow; triggers update them.

create function bucket_of(seconds double precision) returns int language sql immutable as $$
    select width_bucket(
        seconds, array[0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600]::double precision[])
$$;

create table tallies (
    gpu         text not null,
    mode        text not null,
    verdict     text not null,
    evaluations bigint not null,
    judged_s    double precision not null,
    waited_s    double precision not null,
    judged      bigint[] not null,
    waited      bigint[] not null,
    primary key (gpu, mode, verdict)
);
comment on table tallies is 'Evaluations since the first, those of deleted boards as well';
comment on column tallies.judged is 'How many took how long, by bucket_of, from 0';
comment on column tallies.waited is 'How many were queued for how long before their first attempt';

create table lost_leases (
    gpu  text primary key,
    jobs bigint not null
);
comment on table lost_leases is 'How many leases ran out so far';

-- Locks a row of tallies after all other rows, and only until its statement is committed.
create function tally_evaluation() returns trigger language plpgsql as $$
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

create trigger tally_each after insert on evaluations
    for each row execute function tally_evaluation();

-- The live workers, and an index to delete old events.

create table workers (
    name        text primary key,
    gpus        text[],
    lease_until timestamptz not null,
    offers      text,
    seen_at     timestamptz not null
);
comment on table workers is 'Who works through the queue now; a worker that is gone stays until its lease has run out';
comment on column workers.gpus is 'The GPU types it offers; null while its runners have not answered';
comment on column workers.offers is 'What each of its runners offers, as JSON of runners.contract.runner';
comment on column workers.seen_at is 'When it last gave a sign of life';

create index job_events_old on job_events (at);
create index job_events_of_job on job_events (job);

-- Where front ends show submissions, and which process shows each.

create table displays (
    submission  bigint primary key references submissions (id),
    door        text not null,
    place       text not null,
    owner       text,
    lease_until timestamptz,
    finished_at timestamptz,
    claims      integer not null default 0,
    check ((owner is null) = (lease_until is null))
);
comment on column displays.place is 'The door''s own words for where it shows the submission and what is shown already';
comment on column displays.claims is 'How often a process has taken it up; from before this was counted, 1';
create index displays_unfinished on displays (door, submission) where finished_at is null;

-- The threads in which a front end shows a board's runs.

create table board_threads (
    door        text not null,
    guild       text not null,
    board       bigint not null references boards (id) on delete cascade,
    person      bigint not null default 0,
    thread      text,
    used_at     timestamptz not null,
    claims      integer not null default 0,
    owner       text,
    lease_until timestamptz,
    primary key (door, guild, board, person),
    check ((owner is null) = (lease_until is null))
);
comment on table board_threads is 'One private thread per person and board, and one public thread per board, in each guild';
comment on column board_threads.person is 'Who reads the private thread; 0: it is the public thread';
comment on column board_threads.thread is 'The front end''s own name of the thread; null until it is created';
comment on column board_threads.claims is 'How often a process began to create it: who is not the first may find it created';

-- What admins decide: who may submit, how often, and what is not ranked.

create table bans (
    person bigint primary key references people (id),
    reason text not null,
    at     timestamptz not null,
    until  timestamptz
);
comment on column bans.until is 'When it ends by itself; null: not until it is lifted';

create table exclusions (
    submission bigint primary key references submissions (id),
    kind       text not null check (kind in ('withdrawn', 'disqualified')),
    reason     text not null,
    at         timestamptz not null
);
comment on table exclusions is 'Submissions that keep their results and are not ranked';

create table pause (
    only_row boolean primary key default true check (only_row),
    notice   text not null,
    at       timestamptz not null
);
comment on table pause is 'Has its row while no submissions are taken';

create table board_pauses (
    board  bigint primary key references boards (id) on delete cascade,
    notice text not null,
    at     timestamptz not null
);
comment on table board_pauses is 'Boards that take no submissions for the time being';

create table rate_limits (
    board    bigint references boards (id),
    mode     text check (mode in ('test', 'benchmark', 'profile', 'ranked')),
    most     int not null check (most >= 1),
    window_s double precision not null check (window_s > 0),
    person   bigint references people (id),
    reason   text not null default '',
    until    timestamptz,
    unique nulls not distinct (board, mode, person)
);
comment on column rate_limits.person is 'The only person whom it limits; null: each person';
comment on column rate_limits.reason is 'What that person is told';
comment on column rate_limits.until is 'When it ends by itself; null: not until it is removed';
comment on table rate_limits is 'Per person; null covers every board, or every mode';

create table rooms (
    house text not null,
    room  text not null,
    primary key (house, room)
);
comment on table rooms is 'Where a door takes submissions, such as channels of a guild; none named: where the door does by itself';

create table guild_parts (
    guild       text not null,
    kind        text not null,
    part        text,
    lease_until timestamptz not null,
    primary key (guild, kind)
);
comment on table guild_parts is 'The role or channel that a front end uses for a purpose in a server; its name may change, and it is made once';
comment on column guild_parts.part is 'The front end''s own id of it, kept when it is deleted; null while a process makes it';

-- Personal tokens, with which programs act for a person.

create table tokens (
    id         bigint generated always as identity primary key,
    person     bigint not null references people (id),
    digest     text not null unique check (digest ~ '^[0-9a-f]{64}$'),
    label      text not null,
    created_at timestamptz not null,
    revoked_at timestamptz,
    scope      text not null check (scope in ('read', 'person', 'admin', 'worker', 'session', 'admin-session')),
    expires_at timestamptz,
    begun_by   bigint references tokens (id)
);
comment on column tokens.digest is 'SHA-256 of the token, which is shown once and never kept';
comment on column tokens.scope is 'What it is good for: to read, to act or to administer for its person, to judge as a worker; or a browser that is signed in';
comment on column tokens.begun_by is 'The token by which a browser was signed in: the session ends with it';
create index tokens_of_person on tokens (person) where revoked_at is null;
create unique index tokens_of_workers on tokens (label) where scope = 'worker' and revoked_at is null;

-- Subscriptions to notifications, and notifications to deliver.

create table listeners (
    addressee text not null,
    kind      text not null check (kind in ('competition', 'deadline', 'lost-rank', 'record', 'result')),
    primary key (addressee, kind)
);
comment on table listeners is 'Nobody is told of anything without a row; an addressee is a door''s own word, such as discord:17';

create table untold (
    job bigint primary key references scores (job)
);
comment on table untold is 'Scores whose news is not worked out yet; the statement that stores a score writes it';

create table outbox (
    id          bigint generated always as identity primary key,
    key         text not null unique,
    kind        text not null,
    addressee   text not null,
    board       bigint references boards (id),
    text        text not null,
    due         timestamptz not null,
    tries       int not null default 0,
    owner       text,
    lease_until timestamptz,
    done_at     timestamptz,
    refusal     text,
    check ((owner is null) = (lease_until is null)),
    check (refusal is null or done_at is not null)
);
comment on column outbox.board is 'Only people who may see it get the notification; null: it is about the addressee''s account';
comment on column outbox.key is 'What makes two news the same; kept a while after delivery, so that none is told twice';
create index outbox_waiting on outbox (due, id) where done_at is null;

create table releases (
    id          bigint generated always as identity primary key,
    door        text not null,
    person      bigint not null references people (id),
    zip         bytea not null,
    wish        text not null,
    place       text not null,
    tries       int not null default 0,
    owner       text,
    lease_until timestamptz,
    ended_at    timestamptz,
    state       text not null default '{}',
    cancelled   text,
    check ((owner is null) = (lease_until is null))
);
comment on table releases is 'Kept while a task''s own solutions run, so that a restart goes on with it';
comment on column releases.wish is 'The request for the board';
comment on column releases.place is 'The door''s own words for where it shows it, and what is sent already';
comment on column releases.tries is 'How often a process has begun; one that takes its process with it is given up';
comment on column releases.ended_at is 'Since when only its outcome is kept, in place, for who comes to read it';
comment on column releases.state is 'The steps of its check and its outcome, of every door alike';
comment on column releases.cancelled is 'Why the check was cancelled, for its submitter';
create index releases_of_person on releases (person, id);

-- The runs of a task's check: jobs of the queue, so that any worker takes them.

create table check_tasks (
    release    bigint not null references releases (id) on delete cascade,
    digest     text not null,
    definition text not null,
    primary key (release, digest)
);
comment on table check_tasks is 'A task that is checked, once for all runs of its check';
comment on column check_tasks.definition is 'TaskDefinition as JSON text';

create table check_runs (
    id         bigint generated always as identity primary key,
    release    bigint not null,
    task       text not null,
    key        text not null,
    request    text not null,
    progress   text,
    evaluation text,
    unique (release, key),
    foreign key (release, task) references check_tasks (release, digest) on delete cascade
);
comment on table check_runs is 'One evaluation of a task that is checked before publication; deleted when its publication ends';
comment on column check_runs.key is 'A hash of what is run: a process that takes over finds the runs that were started before';
comment on column check_runs.request is 'EvaluationRequest without its task, as JSON text';
comment on column check_runs.progress is 'The last Progress as JSON text';
comment on column check_runs.evaluation is 'Evaluation as JSON text';

alter table jobs
    add check_run bigint unique references check_runs (id) on delete cascade,
    add check ((submission is null) <> (check_run is null));
comment on column jobs.check_run is 'The run of a check, in place of a submission';

alter table jobs add column used_s double precision not null default 0 check (used_s >= 0);
comment on column jobs.used_s is 'Seconds of evaluation in attempts that failed; lost ones do not count';

create sequence house_submissions increment by -1;
comment on sequence house_submissions is 'Numbers of the house''s own submissions: all below zero, so that people''s have no gaps';

create table reference_times (
    task_version  bigint not null references task_versions (id),
    gpu           text not null,
    submission    bigint unique references submissions (id),
    time_ns       double precision check (time_ns > 0 and time_ns < 'infinity'),
    half_width_ns double precision check (half_width_ns >= 0 and half_width_ns < 'infinity'),
    machine       text,
    at            timestamptz,
    noted         boolean not null default false,
    resolution_ns double precision check (resolution_ns >= 0 and resolution_ns < 'infinity'),
    claimed_ns    double precision,
    primary key (task_version, gpu),
    check ((time_ns is null) = (half_width_ns is null)),
    check ((time_ns is null) = (machine is null)),
    check ((time_ns is null) = (at is null))
);
comment on table reference_times is 'Once per task version and GPU type; written by the statement that accepts the evaluation';
comment on column reference_times.submission is 'The house''s own, whose job times it; null where the task has no reference';
comment on column reference_times.noted is 'Whether the audit has it that the reference could not be timed';

create table usual_references (
    task_version bigint primary key references task_versions (id) on delete cascade,
    times_ns     double precision[] not null
);
comment on table usual_references is 'The reference''s time in each benchmark, from the first ranked run on the CPU; never changed';

-- The people of each leaderboard with their best scores, updated by triggers: only as many rows are
-- read as the board has people, however many submissions it has.

create table leaderboards (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    moves        bigint not null,
    primary key (task_version, gpu)
);
comment on column leaderboards.moves is 'Grows with every change of what its standings show; whoever changes an entrant locks the row first';

create table entrants (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    person       bigint not null references people (id),
    attempts     int not null default 0,
    best         bigint,
    refused      bigint,
    primary key (task_version, gpu, person)
);
comment on column entrants.attempts is 'How many scores count: those of submissions that are not excluded';
comment on column entrants.best is 'Whose score has the lowest upper end of them, of equal ones the earlier; the rule is bot.domain.scoring';
comment on column entrants.refused is 'The newest submission''s of those whose ranked evaluation did not pass or was too noisy';
create index entrants_of_person on entrants (person);

create view shown_names as
select people.id as person, task_version, gpu, case
    when starts_with(people.identity, 'deleted:') then people.name
    when position('@' in people.skeleton) > 0 or exists (
        select from people as others join entrants on entrants.person = others.id
        where others.skeleton = people.skeleton and others.id <> people.id
            and entrants.task_version = leaderboards.task_version
            and entrants.gpu = leaderboards.gpu
    ) then people.name || ' (@' || coalesce(people.handle, people.identity) || ')'
    else people.name
end as name
from people cross join leaderboards;
comment on view shown_names is 'A person''s name on a leaderboard, with the handle if another person''s name there looks alike';

create function move_leaderboard(of_version bigint, at_gpu text) returns void language sql as $$
    insert into leaderboards values (of_version, at_gpu, 1)
    on conflict (task_version, gpu) do update set moves = leaderboards.moves + 1
$$;

create function enter_refusal() returns trigger language plpgsql as $$
declare
    whose bigint;
begin
    select person into whose from submissions where id = new.submission and mode = 'ranked';
    if whose is null then
        return null;
    end if;
    perform move_leaderboard(new.task_version, new.gpu);
    insert into entrants (task_version, gpu, person, refused)
    values (new.task_version, new.gpu, whose, new.job)
    on conflict (task_version, gpu, person) do update set refused = excluded.refused
    where entrants.refused is null
        or (select submission from evaluations where job = entrants.refused) < new.submission;
    return null;
end $$;

create function enter_score() returns trigger language plpgsql as $$
declare
    whose bigint;
    since timestamptz;
    counts boolean;
begin
    perform move_leaderboard(new.task_version, new.gpu);
    select person, created_at, not exists (select from exclusions where submission = submissions.id)
    into whose, since, counts from submissions where id = new.submission;
    insert into entrants (task_version, gpu, person) values (new.task_version, new.gpu, whose)
    on conflict do nothing;
    if counts then
        update entrants set attempts = attempts + 1, best = case when exists (
            select from scores join submissions on submissions.id = submission
            where job = entrants.best
                and (upper_ns, created_at, submission) < (new.upper_ns, since, new.submission)
        ) then best else new.job end
        where task_version = new.task_version and gpu = new.gpu and person = whose;
    end if;
    return null;
end $$;

create function recount(of_version bigint, at_gpu text, whose bigint) returns void
language sql as $$
    update leaderboards set moves = moves + 1 where task_version = of_version and gpu = at_gpu;
    update entrants set (attempts, best) = (
        select count(*), (array_agg(job order by upper_ns, created_at, submission))[1]
        from submissions join scores on submission = submissions.id and scores.gpu = at_gpu
        where submissions.person = whose and submissions.task_version = of_version
            and not exists (select from exclusions where exclusions.submission = submissions.id)
    )
    where task_version = of_version and gpu = at_gpu and person = whose;
$$;

create function enter_anew() returns trigger language plpgsql as $$
declare
    made record;
    at_gpu text;
begin
    select id, person, task_version, gpus into made from submissions
    where id = case tg_op when 'DELETE' then old.submission else new.submission end;
    for at_gpu in select gpu from unnest(made.gpus) as gpu order by gpu collate "C" loop
        if tg_op = 'INSERT' then
            perform move_leaderboard(made.task_version, at_gpu);
        end if;
        perform recount(made.task_version, at_gpu, made.person);
    end loop;
    return null;
end $$;

create function leave_score() returns trigger language plpgsql as $$
begin
    perform recount(old.task_version, old.gpu, person) from submissions where id = old.submission;
    return null;
end $$;

create function leave_refusal() returns trigger language plpgsql as $$
begin
    update leaderboards set moves = moves + 1
    where task_version = old.task_version and gpu = old.gpu;
    update entrants set refused = null from submissions
    where entrants.task_version = old.task_version and entrants.gpu = old.gpu
        and entrants.person = submissions.person and submissions.id = old.submission
        and refused = old.job;
    return null;
end $$;

create function move_reference() returns trigger language plpgsql as $$
begin
    perform move_leaderboard(new.task_version, new.gpu);
    return null;
end $$;

create function move_renamed() returns trigger language plpgsql as $$
begin
    perform from leaderboards join entrants using (task_version, gpu) where person = new.id
    order by task_version, gpu collate "C" for update of leaderboards;
    update leaderboards set moves = moves + 1 from entrants
    where person = new.id and entrants.task_version = leaderboards.task_version
        and entrants.gpu = leaderboards.gpu;
    return null;
end $$;

create trigger enter_refused after insert on evaluations
    for each row when ((new.verdict <> 'passed' or new.noisy) and new.submission > 0)
    execute function enter_refusal();
create trigger enter_scored after insert on scores for each row execute function enter_score();
create trigger leave_refused after delete on evaluations
    for each row when ((old.verdict <> 'passed' or old.noisy) and old.submission > 0)
    execute function leave_refusal();
create trigger leave_scored after delete on scores for each row execute function leave_score();
create trigger enter_counted after insert or delete on exclusions
    for each row execute function enter_anew();
create trigger enter_recounted after update on exclusions
    for each row when (old.kind <> new.kind) execute function enter_anew();
create trigger move_renamed after update on people
    for each row
    when ((old.name, old.handle, old.skeleton) is distinct from (new.name, new.handle, new.skeleton))
    execute function move_renamed();
create trigger move_timed after insert or update on reference_times
    for each row execute function move_reference();

-- The records of each leaderboard, so that its season is drawn without reading every score.

create table records (
    task_version bigint not null references task_versions (id) on delete cascade,
    gpu          text not null,
    submission   bigint not null,
    submitted_at timestamptz not null,
    upper_ns     double precision not null,
    primary key (task_version, gpu, submission)
);
comment on table records is 'The first score, and each that is ahead of the record before it; the rule is bot.domain.scoring.records';

create function find_all_records(of_version bigint, at_gpu text) returns void
language plpgsql as $$
declare
    each record;
    best double precision := 'infinity';
begin
    delete from records where task_version = of_version and gpu = at_gpu;
    for each in
        select submission, created_at, scores.upper_ns, passes_ns
        from scores join submissions on submissions.id = submission
        where scores.task_version = of_version and gpu = at_gpu
            and not exists (select from exclusions where exclusions.submission = submissions.id)
        order by created_at, submission
    loop
        if each.passes_ns < best then
            best := each.upper_ns;
            insert into records values (of_version, at_gpu, each.submission, each.created_at, best);
        end if;
    end loop;
end $$;

create function keep_record(of_version bigint, at_gpu text, which bigint) returns void
language plpgsql as $$
declare
    since timestamptz;
    upper_end double precision;
    passes double precision;
begin
    select created_at, scores.upper_ns, passes_ns into since, upper_end, passes
    from scores join submissions on submissions.id = submission
    where submission = which and gpu = at_gpu;
    if since is null or exists (
        select from records where task_version = of_version and gpu = at_gpu
            and (submitted_at, submission) < (since, which) and records.upper_ns <= passes
    ) then
        return;
    end if;
    if exists (
        select from records where task_version = of_version and gpu = at_gpu
            and (submitted_at, submission) > (since, which)
    ) then
        perform find_all_records(of_version, at_gpu);
    else
        insert into records values (of_version, at_gpu, which, since, upper_end)
        on conflict do nothing;
    end if;
end $$;

create function find_records(of_version bigint, at_gpu text, without bigint) returns void
language plpgsql as $$
begin
    if exists (
        select from records
        where task_version = of_version and gpu = at_gpu and submission = without
    ) then
        perform find_all_records(of_version, at_gpu);
    end if;
end $$;

-- These triggers run after those of the entrants, which have locked the row in leaderboards.
create function record_score() returns trigger language plpgsql as $$
begin
    if not exists (select from exclusions where submission = new.submission) then
        perform keep_record(new.task_version, new.gpu, new.submission);
    end if;
    return null;
end $$;

create function record_without() returns trigger language plpgsql as $$
begin
    perform find_records(old.task_version, old.gpu, old.submission);
    return null;
end $$;

create function record_anew() returns trigger language plpgsql as $$
declare
    which bigint := case tg_op when 'DELETE' then old.submission else new.submission end;
begin
    if tg_op = 'DELETE' then
        perform keep_record(task_version, gpu, which) from scores where submission = which
        order by gpu collate "C";
    else
        perform find_records(task_version, gpu, which) from scores where submission = which
        order by gpu collate "C";
    end if;
    return null;
end $$;

create trigger record_scored after insert on scores for each row execute function record_score();
create trigger record_unscored after delete on scores
    for each row execute function record_without();
create trigger record_counted after insert or delete on exclusions
    for each row execute function record_anew();

-- A range of this index has about the same share of any leaderboard's scores, of all people.
create index scores_at_random on scores (task_version, gpu, hashint8(job));

-- People's rights, as each source last reported them.

create table rights (
    person      bigint not null references people (id),
    source      text not null,
    credentials text[] not null,
    is_admin    boolean not null,
    is_creator  boolean not null,
    seen_at     timestamptz not null,
    primary key (person, source)
);
comment on table rights is 'What a person may; a door notes it where it meets the person, the rest is taken over';
comment on column rights.source is 'Who vouches for it, such as discord-guild:123, or machine for whoever sits at it';
comment on column rights.credentials is 'Doors'' own words by which boards are seen, such as discord-role:5';

-- Idempotency keys of submissions.

create table submission_keys (
    person     bigint not null references people (id),
    key        text not null check (length(key) between 1 and 200),
    digest     text not null,
    submission bigint not null references submissions (id),
    made_at    timestamptz not null,
    primary key (person, key)
);
comment on table submission_keys is 'What a person submitted with a key: who sends it again gets that submission, for a day';
comment on column submission_keys.digest is 'Of all that was asked for with the key: anything else with it is refused';
create index submission_keys_of_submission on submission_keys (submission);
create index submission_keys_made_at on submission_keys (made_at);

-- Requests of people to a front end, stored until they are done: a bot that is killed loses none.

create table interactions (
    id          text primary key,
    door        text not null,
    request     text,
    token       text,
    asked_at    timestamptz not null,
    tries       integer not null default 1,
    owner       text,
    lease_until timestamptz,
    done_at     timestamptz
);
comment on table interactions is 'Commands, clicks and forms, each claimed by one process before it is acknowledged';
comment on column interactions.request is 'The door''s own words for what was asked; null once that is done';
comment on column interactions.token is 'A secret by which the person is answered for 15 minutes; null once it is done or expired';
create index interactions_unfinished on interactions (door, lease_until) where done_at is null;
create index interactions_with_token on interactions (asked_at) where token is not null;
create index interactions_done on interactions (done_at) where done_at is not null;

-- Boards with one overall ranking.

create table competitions (
    id                bigint generated always as identity primary key,
    name              text not null unique,
    creator           bigint not null references people (id),
    description       text not null,
    ranks             double precision[] not null,
    opens_at          timestamptz not null,
    created_at        timestamptz not null,
    opening_announced timestamptz,
    closing_announced timestamptz
);
comment on column competitions.ranks is 'The points of the first places; empty: 100 x best / own time';
comment on column competitions.opening_announced is 'The opening date that was announced, so that it is announced once';
comment on column competitions.closing_announced is 'The closing date that was announced; a changed one is announced again';

create index competitions_of_creator on competitions (creator);
create index competitions_by_opening on competitions (opens_at);

create table competition_boards (
    competition bigint not null references competitions (id),
    board       bigint not null references boards (id),
    position    int not null check (position >= 1),
    primary key (competition, board)
);
create index competitions_of_board on competition_boards (board);

-- A run that would take one of the first places is compared with the holder of that place.

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

-- GPU time: what a job may use at most, what each attempt used, and quotas.

alter table jobs
    add column limit_s double precision not null default 0 check (limit_s >= 0),
    add column cards int not null default 1 check (cards >= 1),
    add column waits text not null default '';
comment on column jobs.limit_s is 'The most seconds that it may take; on all its cards, they are reserved while it runs';
comment on column jobs.cards is 'How many GPUs it uses';
comment on column jobs.waits is 'The quota of GPU time that it waits for, in words; empty: none';

create table gpu_quotas (
    unit        text not null check (unit in ('seconds', 'dollars')),
    each_person boolean not null,
    board       bigint references boards (id) on delete cascade,
    gpu         text,
    most        double precision not null check (most > 0 and most < 'infinity'),
    person      bigint references people (id),
    reason      text not null default '',
    unique nulls not distinct (unit, each_person, board, gpu, person)
);
comment on table gpu_quotas is 'The most GPU time of a day (UTC); null covers every board, or all GPU types together';
comment on column gpu_quotas.each_person is 'Whether each person has it, or all people together';
comment on column gpu_quotas.person is 'The only person whom it limits; null: everyone';
comment on column gpu_quotas.reason is 'What that person is told';

create table gpu_time (
    job        bigint not null,
    fence      bigint not null,
    person     bigint not null references people (id),
    board      bigint,
    board_name text not null,
    gpu        text not null,
    kind       text not null check (kind in (
        'submission', 'check', 'rejudge', 'reference', 'confirmation', 'fault')),
    seconds    double precision not null check (seconds >= 0 and seconds < 'infinity'),
    at         timestamptz not null,
    primary key (job, fence)
);
comment on table gpu_time is 'What each attempt used; it stays when its job and its board are deleted';
comment on column gpu_time.board_name is 'Empty for the check of a task';
comment on column gpu_time.kind is 'Why it was used, see bot.domain.costs.UsageKind';
comment on column gpu_time.seconds is 'Seconds for which it had its GPUs, times their number';
create index gpu_time_recent on gpu_time (at);

create function add_gpu_time(of_job bigint, spent_s double precision, by_fault boolean, at timestamptz)
returns void language sql as $$
    insert into gpu_time (job, fence, person, board, board_name, gpu, kind, seconds, at)
    select jobs.id, fence, jobs.person, boards.id, coalesce(boards.name, ''), gpu,
        case
            when exists (select from confirmation_runs where run = submission) then 'confirmation'
            when submission < 0 then 'reference'
            when by_fault then 'fault'
            when judged_again then 'rejudge'
            when submission is null then 'check'
            else 'submission'
        end,
        spent_s, at
    from jobs left join submissions on submissions.id = submission
        left join boards on boards.id = submissions.board
    where jobs.id = of_job
$$;

-- A running job is deleted with its check or its board: what it used is not forgotten.
create function keep_gpu_time() returns trigger language plpgsql as $$
begin
    perform add_gpu_time(
        old.id,
        old.cards * greatest(0, least(old.limit_s, extract(epoch from now() - old.moved_at))),
        old.check_run is null,
        now());
    return old;
end $$;

create trigger keep_deleted before delete on jobs
    for each row when (old.state = 'running') execute function keep_gpu_time();

-- What admins are told of: a worker that is gone, a stuck queue, a card out of service, similar sources.

create table alerts (
    id       bigint generated always as identity primary key,
    key      text not null,
    text     text not null,
    began_at timestamptz not null,
    ended_at timestamptz,
    once     boolean not null
);
comment on column alerts.key is 'What makes two alerts the same: at most one of them lasts';
comment on column alerts.once is 'It has no end, and is told once for ever';
create unique index alerts_lasting on alerts (key) where ended_at is null;

create table alert_messages (
    alert       bigint not null references alerts (id) on delete cascade,
    addressee   text not null,
    message     text,
    has_ended   boolean not null default false,
    tries       int not null default 0,
    due         timestamptz not null,
    owner       text,
    primary key (alert, addressee)
);
comment on column alert_messages.message is 'The front end''s own id of the message; null until it is sent';
comment on column alert_messages.has_ended is 'Whether the message says that the alert has ended';
comment on column alert_messages.due is 'Until then its owner has it, or it waits after a failure';

create table source_prints (
    submission bigint primary key references submissions (id) on delete cascade,
    board      bigint not null references boards (id) on delete cascade,
    person     bigint not null references people (id),
    prints     bigint[] not null
);
comment on table source_prints is 'Hashes of parts of the sources of ranked submissions, by which near-identical ones are found';
create index source_prints_of_board on source_prints (board, person, submission desc);

-- Links by which people join a private board.

create table invite_links (
    id         bigint generated always as identity primary key,
    board      bigint not null references boards (id) on delete cascade,
    creator    bigint not null references people (id),
    digest     text not null unique,
    most       int not null check (most > 0),
    uses       int not null default 0 check (uses between 0 and most),
    created_at timestamptz not null,
    expires_at timestamptz not null,
    revoked_at timestamptz
);
comment on table invite_links is 'Each has one code, which works in every front end';
comment on column invite_links.digest is 'A hash of the code, which is shown once and not stored';
comment on column invite_links.most is 'The most people who can join by it';
comment on column invite_links.uses is 'How many people have joined by it; people who were invited already do not count';
create index invite_links_of_board on invite_links (board, id);

-- What the Discord bot asked people, so that each of its processes can continue.

create table questions (
    id          text primary key,
    asked       text not null,
    action      text not null,
    request     text not null,
    content     bytea not null,
    asked_at    timestamptz not null,
    chosen      text[] not null,
    answered_by text
);
comment on table questions is 'Questions of commands, with the uploaded file; kept for 15 minutes';
comment on column questions.id is 'The interaction that asked';
comment on column questions.asked is 'The credential of the person who may answer';
comment on column questions.answered_by is 'The only interaction that may continue';
create index questions_by_time on questions (asked_at);

-- Outcomes that a person could not be sent, until the next answer to them begins with one.

create table unsent_outcomes (
    id        text primary key,
    addressee text not null,
    said      text not null,
    at        timestamptz not null,
    teller    text
);
comment on table unsent_outcomes is 'Outcomes of commands whose answer could not be sent; kept for a day, or until told';
comment on column unsent_outcomes.id is 'The interaction whose outcome it is';
comment on column unsent_outcomes.addressee is 'The credential of the only person who is told';
comment on column unsent_outcomes.teller is 'The interaction whose answer begins with it';
create index unsent_outcomes_by_addressee on unsent_outcomes (addressee, at);
create index unsent_outcomes_by_time on unsent_outcomes (at);

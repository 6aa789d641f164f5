-- A board may say which pool of machines alone times its ranked jobs on a GPU type.

alter table boards add column pools jsonb not null default '{}'
    check (jsonb_typeof(pools) = 'object');
comment on column boards.pools is 'By GPU type the pool that alone times its ranked jobs, see bot.domain.pins';

alter table jobs add column pool text not null default '';
comment on column jobs.pool is 'Whose workers alone may claim it; empty: everybody''s';

drop index jobs_in_line;
create index jobs_in_line on jobs (gpu, pool, priority desc, turn, id, run_at) where state = 'queued';

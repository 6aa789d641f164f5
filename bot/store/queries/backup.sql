-- name: tables
select relname as name, array(
    select attname from pg_attribute
    where attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = ''
    order by attnum
)::text[] as columns
from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace
order by relname

-- name: lock
select 'lock table ' || string_agg(oid::regclass::text, ', ' order by oid) || ' in access share mode'
from pg_class where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace

-- name: migrations
select number, name, sha256 from schema_migrations order by number

-- name: sequences
-- Leaves out sequences that have returned no value yet.
select sequencename::text as name, last_value as value from pg_sequences
where schemaname = current_schema() and last_value is not null order by sequencename

-- name: set_sequence
select setval(format('%I', $1::text)::regclass, $2)

-- name: users
select count(*) from pg_stat_activity
where datname = current_database() and application_name = 'podium' and pid <> pg_backend_pid()

-- name: foreign_keys
select format('alter table %s drop constraint %I', conrelid::regclass, conname) as without,
    format('alter table %s add constraint %I %s', conrelid::regclass, conname,
        pg_get_constraintdef(oid)) as again
from pg_constraint where contype = 'f' and connamespace = current_schema()::regnamespace
order by conrelid, conname

-- name: disable_triggers
do $$
declare
    found regclass;
begin
    for found in select oid from pg_class
        where relkind = 'r' and relnamespace = current_schema()::regnamespace
    loop execute format('alter table %s disable trigger user', found); end loop;
end $$

-- name: enable_triggers
do $$
declare
    found regclass;
begin
    for found in select oid from pg_class
        where relkind = 'r' and relnamespace = current_schema()::regnamespace
    loop execute format('alter table %s enable trigger user', found); end loop;
end $$

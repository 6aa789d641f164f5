-- When people chose their own names, which no front end then replaces.

alter table people add named_at timestamptz;
comment on column people.named_at is 'When the person last chose their name; null: they have the name that the front end reports';

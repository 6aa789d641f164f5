-- How often a display was taken up: who is not the first may find messages that nobody wrote down.

alter table displays add claims integer not null default 1;
alter table displays alter claims set default 0;
comment on column displays.claims is 'How often a process has taken it up; from before this was counted, 1';

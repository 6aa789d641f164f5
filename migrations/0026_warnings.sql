-- What the door that took a submission in had to say of it.

alter table submissions add warning text not null default '';
comment on column submissions.warning is 'Why it may be no valid Python, where the door did not know for certain; empty where it did';

-- The notes that authors write about their submissions.

alter table submissions add note text not null default '';
comment on column submissions.note is 'Markdown of its author, for those who may read the source; empty: none';

-- A check can be cancelled before anything is published.

alter table releases add cancelled text;
comment on column releases.cancelled is 'Why the check was cancelled, for its submitter';

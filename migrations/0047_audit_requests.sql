-- A request that is handled again after a kill leaves one row in the audit log.

alter table audit add request text;
create unique index audit_once on audit (request, action, subject) where request is not null;
comment on column audit.request is 'The command or click that was handled, if it may be handled again; null otherwise';

-- A request that is handled again after a kill leaves one row in the audit log.

alter table audit add request text;
create index audit_requests on audit (request) where request is not null;
comment on column audit.request is 'The command or click that was handled, if it may be handled again; null otherwise';

-- A job that is removed asks whether an event refers to it: without an index by reading every event,
-- so that a board with some thousands of jobs could not be deleted within a statement's time.
create index job_events_of_job on job_events (job);

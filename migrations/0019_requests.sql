-- Requests of the evaluation server are forgotten after a while, with their versions and sources.

create index submissions_of_version on submissions (board, task_version);
create index submissions_of_source on submissions (source);

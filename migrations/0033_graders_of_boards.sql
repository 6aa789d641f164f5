-- The grader that a board's creator chose, which later task versions keep; lists of competitions.

alter table boards add column grader text check (grader in ('native', 'popcorn'));
comment on column boards.grader is 'Who grades tasks with an evaluation of their own, as the creator chose; null: the check decides';

create index competitions_of_creator on competitions (creator);
create index competitions_by_opening on competitions (opens_at);

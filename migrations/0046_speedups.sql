-- How a run compares with the task's own reference, if both were timed in turn.

alter table scores
    add reference_ratio double precision check (reference_ratio > 0),
    add reference_half_width double precision check (reference_half_width >= 0);
comment on column scores.reference_ratio is 'Its time / that of the reference, timed in turn; null if it was not';
comment on column scores.reference_half_width is 'Half of the 95 % interval of reference_ratio';

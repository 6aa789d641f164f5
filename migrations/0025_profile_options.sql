-- What a profiled submission asked of the profiler: which benchmark, which kernels, how many.

alter table submissions add column profile text;
comment on column submissions.profile is 'ProfileOptions as JSON text; null where nothing was asked for';

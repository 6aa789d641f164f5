-- A submission that changes from withdrawn to disqualified changes its board's standings too.

create trigger enter_recounted after update on exclusions
    for each row when (old.kind <> new.kind) execute function enter_anew();

-- Outcomes that a person could not be sent, until the next answer to them begins with one.

create table unsent_outcomes (
    id        text primary key,
    addressee text not null,
    said      text not null,
    at        timestamptz not null,
    teller    text
);
comment on table unsent_outcomes is 'Outcomes of commands whose answer could not be sent; kept for a day, or until told';
comment on column unsent_outcomes.id is 'The interaction whose outcome it is';
comment on column unsent_outcomes.addressee is 'The credential of the only person who is told';
comment on column unsent_outcomes.teller is 'The interaction whose answer begins with it';
create index unsent_outcomes_by_addressee on unsent_outcomes (addressee, at);
create index unsent_outcomes_by_time on unsent_outcomes (at);

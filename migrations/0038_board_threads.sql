-- The threads in which a front end shows a board's runs, and the direct conversations with people.

create table board_threads (
    door        text not null,
    guild       text not null,
    board       bigint not null references boards (id) on delete cascade,
    person      bigint not null default 0,
    thread      text,
    used_at     timestamptz not null,
    claims      integer not null default 0,
    owner       text,
    lease_until timestamptz,
    primary key (door, guild, board, person),
    check ((owner is null) = (lease_until is null))
);
comment on table board_threads is 'One private thread per person and board, and one public thread per board, in each guild';
comment on column board_threads.person is 'Who reads the private thread; 0: it is the public thread';
comment on column board_threads.thread is 'The front end''s own name of the thread; null until it is created';
comment on column board_threads.claims is 'How often a process began to create it: who is not the first may find it created';

alter table people add conversation text;
comment on column people.conversation is 'Where the front end and the person have exchanged direct messages; null if they have not';

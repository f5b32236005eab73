-- Deploy jobq:table/transition to pg
-- The state machine: jobs reference these rows, so no other change can be stored.
begin;
set local role jobq_owner;

create table jobq_private.transition (
    from_state text collate "C" not null,
    to_state text collate "C" not null,
    cause text not null,
    constraint transition_pkey primary key (from_state, to_state)
);

comment on table jobq_private.transition is 'The legal changes of a job''s state; jobs hold a foreign key to them.';

insert into jobq_private.transition (from_state, to_state, cause)
values
('queued', 'running', 'claim'),
('retrying', 'running', 'claim'),
('running', 'succeeded', 'complete'),
('running', 'retrying', 'fail with attempts left, or an expired lease'),
('running', 'dead', 'permanent failure, attempts spent, or unknown kind'),
('running', 'cancelled', 'the worker saw the request to cancel'),
('running', 'queued', 'release: shutdown or snooze, the attempt is not counted'),
('queued', 'cancelled', 'cancel, or replaced by a job with the same dedup key'),
('retrying', 'cancelled', 'cancel, or replaced by a job with the same dedup key'),
('queued', 'dead', 'expired before it could start'),
('retrying', 'dead', 'expired before it could start'),
('dead', 'queued', 'redrive by an operator'),
('cancelled', 'queued', 'redrive by an operator');

commit;

-- Deploy jobq:grant_tables to pg
-- Which queues a role may use, once grants by queue are enforced, and which queue each
-- declared kind belongs to. No row-level security here: the policies read both.
begin;
set local role jobq_owner;

create table jobq_private.queue_grant (
    grantee regrole not null,
    queue text not null,
    privilege text not null,
    constraint queue_grant_pkey primary key (grantee, queue, privilege),
    constraint queue_grant_queue_check check (length(queue) between 1 and 128),
    constraint queue_grant_privilege_check check (privilege in ('enqueue', 'work'))
);

comment on table jobq_private.queue_grant is 'Which queues a role may use; * stands for all of them.';

create table jobq_private.kind_queue (
    kind text not null,
    queue text not null,
    constraint kind_queue_pkey primary key (kind)
);

insert into jobq_private.kind_queue (kind, queue)
select k.kind, k.queue
from jobq_private.kind as k
where k.queue is not null;

comment on table jobq_private.kind_queue is 'The queue of each declared kind: a copy that policies may read.';

commit;

-- What jobq.publish(), jobq.subscribe() and jobq.unsubscribe() promise.
begin;
select plan(19);

select is_empty('select * from jobq.publish(''order.paid'')', 'without subscribers there is no job');
select jobq.put_kind('send_receipt', queue => 'mail');
select jobq.subscribe('order.paid', 'send_receipt');
select jobq.subscribe('order.paid', 'book', 'slow');
select jobq.subscribe('order.sent', 'other');
create temporary table published as
select * from jobq.publish('order.paid', '{"order_id": 7}', '{"tenant": 1}');
select results_eq(
    'select j.kind, j.queue, j.payload, j.metadata
    from published as p join jobq.job as j on j.job_id = p.job_id and j.kind = p.kind order by j.kind',
    $$ values
        ('book', 'slow', '{"order_id": 7}'::jsonb, '{"tenant": 1, "event": "order.paid"}'::jsonb),
        ('send_receipt', 'mail', '{"order_id": 7}', '{"tenant": 1, "event": "order.paid"}') $$,
    'each subscriber gets a job, in its queue, with the payload'
);
select is((select count(*) from jobq.job), 2::bigint, 'and nobody else');
select results_eq(
    'select event, kind, queue from jobq_internal.list_subscriptions()',
    $$ values ('order.paid', 'book', 'slow'), ('order.paid', 'send_receipt', null), ('order.sent', 'other', null) $$,
    'subscriptions are listed'
);
create temporary table keyed as
select n, p.* from generate_series(1, 2) as n, lateral jobq.publish('order.paid', idempotency_key => 'order-' || n % 1) as p;
select is(
    (select count(distinct job_id) from keyed), 2::bigint,
    'with an idempotency key, publishing again creates no second job of a kind'
);
select jobq.subscribe('order.paid', 'book', 'fast');
select is(
    (select s.queue from jobq_internal.list_subscriptions() as s where s.kind = 'book'), 'fast',
    'subscribing again changes the queue'
);

-- All or none
select jobq.put_kind('strict', payload_schema => '{"required": ["n"]}');
select jobq.subscribe('order.paid', 'strict');
create temporary table before as select count(*) as jobs from jobq.job;
select is(
    refusal('select jobq.publish(''order.paid'')'), 'JQ006 PAYLOAD_INVALID',
    'a payload that does not suit a subscriber is refused'
);
select is((select count(*) from jobq.job), (select jobs from before), 'and nobody gets a job');
select is(
    detail('select jobq.publish(''order.paid'')'), 'job 3, kind strict: payload.n is missing',
    'the error names the subscriber'
);

select is(jobq.unsubscribe('order.paid', 'strict'), true, 'a subscription can be ended');
select is(jobq.unsubscribe('order.paid', 'strict'), false, 'once');
select is(
    (select array_agg(p.kind order by p.kind) from jobq.publish('order.paid') as p), '{book,send_receipt}'::text[],
    'then its kind gets no more jobs'
);
select results_eq(
    $$ select action, subject, reason from jobq.audit where action ~ 'subscribe' and subject = 'strict' order by audit_id $$,
    $$ values ('subscribe', 'strict', 'order.paid'), ('unsubscribe', 'strict', 'order.paid') $$,
    'the audit records both'
);

select is(refusal(v.statement), v.refusal, v.statement || ': ' || v.refusal)
from (
    values
    ('select jobq.publish(null)', '22004 NULL_ARGUMENT'),
    ('select jobq.publish(repeat(''e'', 257))', '22023 INVALID_ARGUMENT'),
    ('select jobq.publish(''e'', metadata => ''1'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.subscribe(''e'', null)', '22004 NULL_ARGUMENT'),
    ('select jobq.subscribe(''e'', ''k'', ''*'')', '22023 INVALID_ARGUMENT'),
    ('select jobq.unsubscribe(null, ''k'')', '22004 NULL_ARGUMENT')
) as v (statement, refusal);

select * from finish();
rollback;

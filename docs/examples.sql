-- Jobs and definitions for the examples of the reference. In psql: \i docs/examples.sql
select jobq.enqueue('send_email', '{"to": "ada@example.org"}') as waiting \gset
select jobq.enqueue('send_email', '{"to": "bob@example.org"}', queue => 'mail') as running \gset
select jobq.enqueue('send_email', '{"to": "eve@example.org"}', queue => 'mail') as dead \gset
select jobq.enqueue('send_email', '{"to": "joe@example.org"}', queue => 'mail') as cancelling \gset
select count(*) as claimed from jobq.claim('{mail}', 'worker-1', 10) \gset
select jobq.fail(:'dead', 1, 'no such user', 'RECIPIENT_REFUSED', false) as failed \gset
select jobq.cancel(:'cancelling') as answer \gset
select jobq.enqueue('refund', queue => 'money') as asking \gset
select count(*) as claimed from jobq.claim('{money}', 'worker-1', 1) \gset
select outcome from jobq.ask(:'asking', 1, 'refund', 'Refund 5 euro?') \gset
select jobq.create_schedule('weekly summary', 'summary', '0 9 * * MON') as schedule \gset
select jobq.put_payload_spec('unused', '{}') is null as is_put \gset
select jobq.put_config('unused', '{}') is null as is_put \gset
select jobq.put_secret('unused', decode(repeat('00', 44), 'hex'), 'key-1') is null as is_put \gset
select jobq.put_secret('api_key', decode(repeat('00', 44), 'hex'), 'key-1') is null as is_put \gset
select jobq.put_config('email-service', '{"api_base_url": "https://example.org"}') is null as is_put \gset
select jobq.put_endpoint('send-welcome', 'HTTP', '{"url": "https://example.org"}') is null as is_put \gset
select jobq.put_kind('send_email_v1') is null as is_put \gset
select jobq.put_queue('mail') is null as is_put \gset
select jobq.put_queue('unused') is null as is_put \gset
select jobq_http.create_api_key('web', sha256('another key'), 'jobq_b', '{read}') is null as is_put \gset
select jobq.put_limit('mail', 'customer-42', 10) is null as is_put \gset
select jobq.open_batch() as batch \gset
select jobq.put_shard(0, 'postgresql://one.example.org/jobq', true);
select jobq.put_shard(1, 'postgresql://two.example.org/jobq');

-- What jobq.maintain_in() promises.
-- Needs more than the core.
begin;
select plan(7);

select is(jobq.maintain_in(), null::interval, 'an empty database needs no maintenance soon');
select jobq.create_schedule(name => 'hourly', kind => 'work', every => '1 h') as hourly \gset
select ok(jobq.maintain_in() between '59 min' and '1 h', 'a schedule is due at its next slot');
select jobq.enqueue('a', expires_at => clock_timestamp() + interval '10 min') as expiring \gset
select ok(
    jobq.maintain_in() between '9 min' and '10 min', 'a job that waits ends when it expires'
);
select jobq.enqueue('b', priority => 1) as leased \gset
select from jobq.claim('{default}', 'me', 1);
select ok(jobq.maintain_in() between '25 s' and '30 s', 'a lease is looked at when it ends');
select from jobq.complete(:'leased', 1);
select ok(jobq.maintain_in() > '9 min', 'and no longer once the job has');
select jobq.pause_schedule('hourly');
select jobq.cancel(:'expiring');
select is(jobq.maintain_in(), null::interval, 'what is paused or has ended is left alone');

select jobq.seal_batch(jobq.open_batch());
select ok(jobq.maintain_in() <= '0', 'a batch that may have ended is looked at now');

select * from finish();
rollback;

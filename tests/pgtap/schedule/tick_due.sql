-- maintain_in() knows when the next slot is due.
begin;
select plan(5);

select is(jobq.maintain_in(), null::interval, 'without schedules there is nothing to tick');
select jobq.create_schedule(name => 'hourly', kind => 'work', every => '1 h') as hourly \gset
select ok(
    jobq.maintain_in() between '59 min' and '1 h', 'else one may sleep until the next slot is due'
);
update jobq_private.schedule set next_run_at = clock_timestamp() - interval '1 s';
select ok(jobq.maintain_in() <= '0', 'a slot that is due leaves no sleep');
select from jobq_internal.tick();
select ok(jobq.maintain_in() > '58 min', 'and once it has fired the one after counts');
select jobq.pause_schedule('hourly');
select is(jobq.maintain_in(), null::interval, 'a paused schedule is left alone');

select * from finish();
rollback;

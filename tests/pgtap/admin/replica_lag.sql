-- What jobq_internal.replica_lag() promises on a primary; what on a standby, tests/python/test_read_database.py.
begin;
select plan(1);

select is(jobq_internal.replica_lag(), null, 'a primary lies behind nobody');

select finish();
rollback;

-- Purpose: process ends of jobs and events: release or cancel children, end batches,
-- make jobs due that wait for an event or called jobs, cancel the children of cancelled jobs.
-- Invariant: waits for no lock. Runs three rounds, and more for up to 40 ms; the rest stays due.
-- Rows that are locked or not visible are postponed for 10 ms, later for up to a second. A row of
-- pending is deleted by the transaction that has processed it, so a killed session strands
-- nothing, and concurrent calls process it once. Returns the number of processed rows.
create or replace function jobq_private.resolve(max_rows integer default 1000)
returns bigint language plpgsql set plan_cache_mode = force_generic_plan set jit = off
set enable_seqscan = off set enable_mergejoin = off as $$
declare
    _queues constant text[] := jobq_private.worked_queues();
    _until constant timestamptz := clock_timestamp() + interval '40 ms';
    _pending jobq_private.pending[];
    _due bigint[];
    _put_off bigint[];
    _hidden bigint[];
    _done bigint := 0;
    _rounds integer := 0;
    _group record;
    _is_settled boolean;
begin
    -- A snapshot of the whole transaction is too old to show the remaining parents.
    if current_setting('transaction_isolation') <> 'read committed' then
        return 0;
    end if;
    loop
        _pending := array(
            select l
            from jobq_private.pending as l
            where l.due_at <= clock_timestamp()
            order by l.pending_id
            limit resolve.max_rows
            for update skip locked
        );
        exit when _pending = '{}';
        select s.due, s.put_off into _due, _put_off
        from jobq_private.settle_edges(_pending, _queues) as s;
        _hidden := jobq_private.hidden_pending(_pending, _queues);
        _put_off := _put_off || _hidden || jobq_private.release_waiters(
            array(select l from unnest(_pending) as l where l.pending_id <> all(_hidden)), _queues
        );
        for _group in
            select l.about, l.id, array_agg(l.pending_id) as pending_ids, row_number() over () as n
            from unnest(_pending) as l
            where l.about in ('batch', 'caller') and l.pending_id <> all(_hidden)
            group by l.about, l.id
        loop
            if _group.n > 20 and clock_timestamp() > _until then
                _due := _due || _group.pending_ids;
                continue;
            elsif _group.about = 'caller' then
                _is_settled := jobq_private.cancel_children(_group.id);
            else
                _is_settled := jobq_private.settle_batch(_group.id);
            end if;
            if not _is_settled then
                _put_off := _put_off || _group.pending_ids;
            end if;
        end loop;
        update jobq_private.pending as l
        set beyond = default, has_passed = default, due_at = clock_timestamp() + least(
            greatest(clock_timestamp() - l.created_at, interval '10 ms'), interval '1 s'
        )
        where l.pending_id = any(_put_off);
        delete from jobq_private.pending as l
        where l.pending_id = any(array(
            select d.pending_id from unnest(_pending) as d
            except all
            select u from unnest(_due || _put_off) as u
        ));
        _done := _done + cardinality(_pending) - cardinality(_put_off);
        _rounds := _rounds + 1;
        exit when _rounds > 2 and clock_timestamp() > _until;
    end loop;
    return _done;
end
$$;

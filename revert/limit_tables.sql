-- Revert jobq:limit_tables from pg
begin;

delete from jobq_private.maintenance_task where task in ('pruned_limits', 'opened_keys');
drop type jobq_private.queue_look, jobq_private.scope;
drop table jobq_private.limit_state, jobq_private.limit_hold, jobq_private.key_limit, jobq_private.limit_change, jobq_private.waiting_key;
drop index jobq_private.kind_limited_idx;
alter table jobq_private.queue
add constraint "limits and order require the features of jobq" check (num_nonnulls(
    max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget,
    ordered, on_dead
) = 0) not valid;
alter table jobq_private.kind
add constraint "limits and order require the features of jobq" check (num_nonnulls(
    max_running, rate_limit, budget, key_max_running, key_rate_limit, key_budget,
    ordered, on_dead
) = 0) not valid,
add constraint "keys, cost and run require the features of jobq"
check (num_nonnulls(concurrency_key, cost, run) = 0) not valid;

commit;

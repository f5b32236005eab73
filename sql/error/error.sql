-- Purpose: Every error of jobq: symbolic code, SQLSTATE, HTTP status, message and hint.
-- Invariant: the only list of errors; clients match sqlstate and code, never text.
-- Column message: the static text.
create or replace view jobq.error as
select e.code, e.sqlstate, e.http_status, e.message, e.hint
from jobq_private.error as e;

grant select on jobq.error to jobq_producer, jobq_worker, jobq_operator, jobq_reader;

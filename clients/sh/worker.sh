#!/bin/sh
# A worker for jobq in sh and psql: DATABASE_URL=… worker.sh QUEUE HANDLERS [POLL [GRACE]]
# For each job it runs the program HANDLERS/KIND: the payload is its input, what it prints is the result, both JSON.
# It ends with 0 when the job is done, with 65 when it cannot be done, with anything else to be tried again;
# the last line of its standard error is the error, "CODE: message". It is sent SIGTERM when it should stop.
queue=$1 handlers=$2 poll=${3:-5} grace=${4:-30} me=$(hostname):$$ stop=0
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && trap 'stop=1' TERM INT
sql() { # run standard input as SQL, again while there is no answer; 3 is a refusal
    cat >"$dir/sql"
    while :; do
        PGCONNECT_TIMEOUT=5 psql -XqAt -v ON_ERROR_STOP=1 -v queue="$queue" -v me="$me" -v id="$id" -v n="$n" -v unknown="{$unknown}" "$@" -f "$dir/sql" "$DATABASE_URL"
        status=$?; [ $status -ne 2 ] && return $status; sleep 0.5
    done
}
id='' n='' unknown='' # unknown: the kinds that have no program here; others do their jobs
while [ $stop = 0 ]; do
    sql >"$dir/job" <<'SQL'
select count(*) as n from jobq.heartbeat(:'me', '{}', '{}', array[:'queue'], :'unknown') \gset
select count(*) as n from jobq.maintain() \gset
select job_id, attempt, (extract(epoch from lease) * 10 / 3)::int, extract(epoch from timeout), kind, payload from jobq.claim(array[:'queue'], :'me', except_kinds => :'unknown');
SQL
    IFS='|' read -r id n beat timeout kind payload <"$dir/job" || { id='' n=''; sleep "$poll" & wait $!; continue; }
    program=$handlers/$kind
    case $kind in */* | .*) program=/ ;; esac # none outside the folder
    printf %s "$payload" | JOBQ_JOB_ID=$id JOBQ_ATTEMPT=$n timeout --foreground "$timeout" "$program" >"$dir/out" 2>"$dir/err" &
    pid=$! ticks=0 late=0 end=
    while kill -0 $pid 2>/dev/null; do # until it ends, or it is to be stopped
        sleep 0.1; ticks=$((ticks + 1)) late=$((late + stop))
        [ $late -gt "$((${grace%.*} * 10 + 3))" ] && end=${end:-release} && kill $pid 2>/dev/null
        [ $((ticks % beat)) = 0 ] || continue
        case $(echo "select count(*) as c from jobq.maintain() \gset
            select outcome from jobq.heartbeat(:'me', array[:'id']::uuid[], array[:n]);" | sql) in
            lost) end=lost; kill $pid ;; cancel_requested) end=confirm_cancel; kill $pid ;;
        esac
    done
    wait $pid; status=$?; error=$(tail -n 1 "$dir/err" | tr -d '\000'); [ -s "$dir/out" ] || echo null >"$dir/out"
    case $end$status in
        lost*) continue ;; release* | confirm_cancel[1-9]*) ;; *0) end=complete ;; *124) end=true error='TIMEOUT: it took too long' ;;
        *65) end=false ;; *126 | *127) end=release unknown="${unknown:+$unknown,}\"$kind\"" ;; *) end=true ;;
    esac
    call="jobq.fail(:'id', :n, :'message', :'code', retryable => $end)"
    case $end in complete) call="jobq.complete(:'id', :n, :'result')" ;; release | confirm_cancel) call="jobq.$end(:'id', :n)" ;; esac
    code=$(expr "X$error" : 'X\([A-Z_]*\): ') && error=${error#*: }
    echo "select $call;" | sql -v result="$(cat "$dir/out")" -v message="$error" -v code="${code:-ERROR}" >/dev/null ||
        [ $end != complete ] || # the result was refused, or the lease is lost
        echo "select jobq.fail(:'id', :n, 'the result is refused', 'RESULT_REFUSED', retryable => false);" | sql >/dev/null
    id='' n=''
done
echo "select jobq.retire_worker(:'me');" | sql

#!/bin/sh
# Connects the worker to the conformance suite, level worker: docs/contributing/conformance.md.
here=$(cd "$(dirname "$0")" && pwd)
JOBQ_ORDERS=$(mktemp -d) && export JOBQ_ORDERS
exec 3<&0 4>&1 # the handlers speak on 4
member() { printf '%s\n' "$1" | sed -n "s/.*\"$2\": *\"\{0,1\}\([^\",}]*\).*/\1/p"; }
read -r work <&3
printf '{"id": %s}\n' "$(member "$work" id)"
while IFS= read -r order <&3; do # each order lies in a file, for the handler to find
    printf '%s\n' "$order" >"$JOBQ_ORDERS/new"
    mv "$JOBQ_ORDERS/new" "$JOBQ_ORDERS/$(member "$order" job_id).$(member "$order" attempt)"
done &
exec sh "$here/worker.sh" conformance "$here/conformance.d" "$(member "$work" poll)" "$(member "$work" grace)" </dev/null

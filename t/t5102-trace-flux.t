#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5102-trace-flux.t - flux module trace and flux overlay trace work with brokers of idtree
test_description='the trace commands of Flux show messages of idtree'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs flux
test_under_idtree 3

until_seen() { # FILE, pattern, command...
    file=$1 pattern=$2
    shift 2
    wait_until "$file has $pattern" holds "{ $* ; } >/dev/null 2>&1; grep -qE -- '$pattern' $file"
}
# The same, and then once more: the trace may have begun in the middle of the first exchange.
until_whole() { # FILE, pattern, command...
    until_seen "$@" && file=$1 pattern=$2 && seen=$(grep -c -- "$pattern" "$file") && shift 2 &&
    { "$@" >/dev/null 2>&1 || :; } &&
    wait_until "$file has $pattern once more" holds "test \$(grep -c -- '$pattern' $file) -gt $seen"
}
end() { kill $tracer && { wait $tracer || :; }; }

test_expect_success 'flux module trace shows the requests, responses and events of a module' '
    flux module trace fluid >log & tracer=$! &&
    until_whole log "fluid tx < fluid.ping .* success" flux ping -c 1 fluid && end &&
    grep -E "fluid rx > fluid.ping \[[0-9]+\]" log
'
test_expect_success 'flux module trace --full shows payloads and error messages' '
    flux module trace --full >log & tracer=$! &&
    until_seen log "nosuch" flux getattr nosuch && until_seen log "\"userid\"" flux ping -c 1 fluid && end
'
test_expect_success 'flux overlay trace shows links, and only those of one rank with -r' '
    flux overlay trace -r 2 >log & tracer=$! &&
    until_seen log "rx 2 < fluid.ping .* success" flux ping -r 2 -c 1 fluid &&
    until_seen log "rx 2 c heartbeat 0" : && end && ! grep -vE " [rt]x 2 " log
'
test_done

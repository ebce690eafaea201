#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5100-trace.t - idtree trace shows messages that pass a broker
test_description='idtree trace shows messages when they pass a broker'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3 --topology kary:1 -o fluid.max-generators=1

# Start idtree trace in the background on a rank, with some options, and write its output to FILE.
trace() { # FILE, rank, option...
    file=$1 at=$2
    shift 2
    : >"$file"
    idtree trace -r "$at" "$@" >"$file" 2>&1 &
    tracer=$!
}
# Repeat a command until FILE has a pattern: a trace gives no other sign that it has started.
until_seen() { # FILE, pattern, command...
    file=$1 pattern=$2
    shift 2
    wait_until "$file has $pattern" holds "{ $* ; } >/dev/null 2>&1; grep -q -- '$pattern' $file"
}
# The same, and then once more: the trace may have begun in the middle of the first exchange.
until_whole() { # FILE, pattern, command...
    until_seen "$@" && file=$1 pattern=$2 && seen=$(grep -c -- "$pattern" "$file") && shift 2 &&
    { "$@" >/dev/null 2>&1 || :; } &&
    wait_until "$file has $pattern once more" holds "test \$(grep -c -- '$pattern' $file) -gt $seen"
}
end() { kill $tracer && { wait $tracer || :; }; }

test_expect_success 'trace shows a request when it arrives, on its way to the module, and on its way back' '
    trace log 0 "fluid.ping" && until_whole log "to *client.*response fluid.ping" idtree ping -c 1 fluid && end &&
    grep -E "^[0-9:.]{15} from client [0-9a-f]{8}  *request  fluid.ping  [0-9]+ bytes$" log &&
    grep -E "to   module fluid  *request  fluid.ping" log && grep -E "from module fluid  *response fluid.ping" log
'
test_expect_success 'trace of another rank shows the messages of that rank' '
    trace log 1 --peer client --peer parent "fluid.block" && until_seen log "to *rank 0.*request" idtree id new -r 2 && end &&
    ! grep -v "rank 0" log
'
test_expect_success 'trace can filter by kind of peer, module, link, type, text and topic' '
    trace modules 1 --peer fluid && trace_modules=$tracer && trace links 1 --peer 2 -t request,response &&
    trace_links=$tracer && trace text 1 -g "rank 0" "*.ping" &&
    until_seen text . idtree ping -c 1 2 && until_seen modules . idtree id new -r 2 &&
    until_seen links fluid.block idtree id new -r 2 && kill $tracer $trace_modules $trace_links &&
    { wait $tracer $trace_modules $trace_links || :; } &&
    ! grep -v "module fluid" modules && ! grep -v " rank 2 " links && ! grep control links && ! grep -v "rank 0" text &&
    ! grep -v "[.]ping" text
'
test_expect_success 'trace shows control messages and events on links' '
    trace log 1 -t control,event && until_seen log "to   rank 2 .* event *news" idtree event pub news &&
    wait_until "a heartbeat passes" holds "grep -q \"from rank 2 .* control  heartbeat 0\" log" && end &&
    grep "from rank 0 .* event *news" log && ! grep -E "request|response" log
'
test_expect_success 'trace shows an event that is sent to a client' '
    idtree event sub tell. >sub & subscriber=$! &&
    trace log 0 --peer client -t event && until_seen log "to *client .* event *tell.me" idtree event pub tell.me && end &&
    kill $subscriber && { wait $subscriber || :; }
'
test_expect_success 'trace shows payloads only with --full' '
    trace plain 0 "attr.get" && plain=$tracer && trace full 0 -F "attr.get" &&
    until_seen plain attr.get idtree getattr nosuch && until_whole full "error 2: No such" idtree getattr nosuch && kill $plain $tracer && { wait $plain $tracer || :; } &&
    grep "{\"name\": *\"nosuch\"}" full && ! grep nosuch plain
'
test_expect_success 'trace shows binary payloads in hexadecimal' '
    trace full 0 -F "fluid.block" && until_seen full "^    00000003[0-9a-f]*$" idtree id new -n 3 && end
'
test_expect_success 'trace -c ends after a number of messages' '
    trace log 0 -c 3 && until_seen log "" idtree ping -c 1 fluid && wait_until "it ends" holds "! kill -0 $tracer" &&
    test $(wc -l <log) = 3
'
test_expect_success 'trace --json prints objects' '
    trace log 0 --json -c 4 -F "*.ping" && until_seen log response idtree ping -c 1 fluid &&
    wait_until "it ends" holds "! kill -0 $tracer" &&
    python3 -c "
import json
for line in open(\"log\"):
    o = json.loads(line)
    assert o[\"topic\"] == \"fluid.ping\" and o[\"way\"] in (\"from\", \"to\") and o[\"bytes\"] > 0, o
    assert isinstance(o[\"payload\"], dict), o
"
'
test_expect_success 'trace does not show the messages of traces, even if there are several traces' '
    trace a 0 && a=$tracer && trace b 0 && until_seen a fluid.ping idtree ping -c 1 fluid && kill $a $tracer &&
    { wait $a $tracer || :; } && ! grep "[.]trace" a
'
test_expect_success 'trace reports wrong arguments' '
    test_expect_code 2 idtree trace -t requests 2>err && grep "requests. is not a type of messages" err &&
    test_expect_code 1 idtree trace -r 3 2>err && grep "there is no rank 3" err
'
test_expect_success 'trace refuses a peer that can never have a link' '
    test_expect_code 1 idtree trace --peer 2 2>err && grep "rank 2 is not a neighbour of rank 0, which has links with ranks: 1 " err &&
    test_expect_code 1 idtree trace -r 1 --peer 1 2>err && grep "rank 1 is the traced rank itself.*: 2, 0$" err &&
    test_expect_code 1 idtree trace --peer 3 2>err && grep "there is no rank 3" err &&
    test_expect_code 1 idtree trace --peer parent 2>err && grep "rank 0 has no parent" err &&
    test_expect_code 1 idtree trace -r 2 --peer child 2>err && grep "rank 2 has no children" err
'
test_expect_success 'trace waits for a module that is not loaded, and says so' '
    idtree module remove -r 1 fluid && trace log 1 --peer fluid && wait_until "it is said" grep "no module .fluid. is loaded at rank 1 now" log &&
    idtree module load -r 1 fluid && until_seen log "to   module fluid .*fluid.ping" idtree ping -c 1 "1!fluid" && end
'
test_expect_success 'trace prints a hint if a topic is the name of a service, except for events' '
    trace log 0 fluid && wait_until "it is told" grep "shows only the topic .fluid.; the topics of a service are .fluid[.][*]." log && end &&
    trace log 0 -t event news && until_seen log "event *news" idtree event pub news && end
'
test_expect_success 'trace waits for a neighbour without a link, and says so; a rank that is attached in place of the neighbour counts as one' '
    idtree startctl kill 1 && wait_attached 2 0 && idtree trace --peer 2 -t control -c 1 &&
    trace log 0 --peer 1 && wait_until "it is said" grep "rank 1 has no link with rank 0 now: waiting for one" log &&
    idtree startctl run 1 && wait_until "it is back" grep "from rank 1 " log && end
'
test_done

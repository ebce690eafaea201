#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5103-trace-way.t - idtree id new --trace and fluid.trace: which brokers a request for ids passed, and for how long
test_description='a request for ids reports which ranks it passed, and what each did'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3
test_under_idtree 3 --topology kary:1 -o fluid.max-generators=1 -o fluid.share=off

client() { python3 "$IDTREE_SRCDIR/t/trace_client.py" "$@"; }

test_expect_success 'each broker that a traced request passes reports what it did' '
    client way
'
test_expect_success 'traced requests that are forwarded together keep separate traces' '
    client combined
'
test_expect_success 'invalid traced requests are refused, and an invalid traceparent starts a new trace' '
    client malformed
'
test_expect_success 'id new --trace prints the path of the request on stderr, and the ids on stdout' '
    idtree id new -r 2 -n 3 --trace >ids 2>way && test $(wc -l <ids) = 3 && idtree id show $(cat ids) >/dev/null &&
    grep -E "^trace [0-9a-f]{32}: 3 ids in [0-9]+ us$" way && grep -E "^ +2  idle " way && grep -E "^ +1  idle " way &&
    grep -E "^ +0  active .* 3  -$" way && test $(wc -l <way) = 6
'
test_expect_success 'id new --trace --json prints the path of the request as one more object' '
    idtree id new -r 1 --trace --json >out && test $(wc -l <out) = 2 && python3 -c "
import json
_, way = [json.loads(line) for line in open(\"out\")]
hops = way[\"hops\"]
assert [h[\"rank\"] for h in hops] == [1, 0] and hops[0][\"parent\"] == way[\"span\"], way
"
'
test_expect_success 'id new writes spans as lines of JSON, as children of the span in TRACEPARENT' '
    for i in 1 2; do
        TRACEPARENT=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 idtree id new -r 2 --spans spans >out 2>err &&
        test $(wc -l <out) = 1 && test_must_be_empty err || return 1
    done && client spans spans
'
test_expect_success 'id new reports a file to which spans cannot be written' '
    test_expect_code 1 idtree id new --spans /nosuch/spans 2>err && grep "/nosuch/spans: No such file" err
'
test_expect_success 'a traced request that bypasses a rank without the fluid module reports the rank that served it' '
    idtree module remove -r 1 fluid && idtree id new -r 2 --trace 2>way && ! grep -E "^ +1  " way &&
    grep -E "^ +0  active" way &&
    idtree module load -r 1 fluid && idtree id new -r 2 --trace 2>way && grep -E "^ +1  idle" way
'
test_expect_success 'requests that cannot be traced are refused with a message' '
    for o in --follow --local "-s flax" "-n 65537"; do
        test_expect_code 2 idtree id new --trace $o 2>err && grep -e "--trace needs one request" err || return 1
    done
'
test_done

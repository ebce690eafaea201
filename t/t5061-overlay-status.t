#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5061-overlay-status.t - missing ranks, for people, scripts and probes
test_description='overlay status waits, filters, uses color, and reports the state in its exit status'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:2 -o log-stderr-level=2 -o fluid.lease=2s # a killed rank's generator is free when its lease is over

escape=$(printf '\033')
status() { idtree overlay status "$@"; }

test_expect_success 'in a full instance overlay status --down prints no rank, and --check succeeds' '
    status --check >out && grep -c " full " out && status --down --check >out && test "$(wc -l <out)" -le 1 &&
    status --summary --down --check >out && ! grep full out
'
test_expect_success 'overlay status --wait waits for a state; missing ranks are printed and determine the exit status' '
    idtree startctl kill 3 && test_expect_code 1 status --wait=degraded --check --down >out && cat out &&
    grep -E "^0 .* degraded " out && grep -E "3 .* lost " out && ! grep -E "2 .* full" out &&
    test_expect_code 1 status --summary --down --check >out && grep -E "^degraded +2  0-1$" out &&
    grep -E "^lost +1  3$" out && ! grep full out &&
    status --check -r 2 && test_expect_code 2 status --check -r 3 >out && grep -E "^3 +lost" out
'
test_expect_success 'overlay status --wait gives up after --timeout, and names the state' '
    test_expect_code 1 status --wait=full --timeout 0.2 2>err >out && ! test -s out &&
    grep "^idtree overlay status: rank 0 is degraded, not full, after 0.2 s" err &&
    test_expect_code 2 status --wait=best 2>err && grep "not a state to wait for: full, partial, degraded or lost" err
'
test_expect_success 'overlay status prints color only on terminals by default' '
    status >out && ! grep "$escape" out && status --color=always >out && grep "$escape" out &&
    status --color=always --summary >out && grep "$escape\[31mlost" out &&
    status --color=always --json >out && ! grep "$escape" out &&
    test_expect_code 2 status --color=blue 2>err && grep "color .blue.: auto, always or never" err
'
test_expect_success 'on a terminal overlay status prints color, unless color is disabled' '
    on_terminal() { TERM=xterm script -qec "$1" /dev/null </dev/null; } &&
    on_terminal "idtree overlay status --summary" >out && grep "$escape\[31mlost" out &&
    for c in "NO_COLOR=1 idtree overlay status" "TERM=dumb idtree overlay status" \
        "idtree overlay status --color=never" "idtree overlay status --no-color"; do
        on_terminal "$c --summary" >out && grep lost out && ! grep "$escape\[31m" out || return 1
    done
'
test_expect_success 'overlay status --wait waits for a rank that reconnects' '
    idtree startctl run 3 && status --wait=full --check --summary >out && grep -E "^full +4  0-3$" out
'
# Who generates: ranks, and of which subtree.  On a busy machine a lease of 2 s may be over before the next one is there.
generate() { want=$1 && shift && status --fluid --json "$@" >out && jq -e ".fluid.active.ranks == \"$want\"" out; }
until_generate() { wait_until "$1 generate" generate "$@"; }

test_expect_success 'overlay status sends one request, which reports the generators of all ranks, or of a subtree' '
    until_generate 0-3 && jq -e ".size == 4 and .status.full.ranks == \"0-3\"" out &&
    until_generate "[1,3]" -r 1 && jq -e ".size == 2" out && until_generate 2 -r 2 --uri "${IDTREE_URI%0}3"
'
test_expect_success 'overlay status reports ranks below a lost rank, and the subtree of the lost rank itself' '
    idtree startctl kill 1 && wait_attached 3 0 && until_generate "[0,2-3]" && jq -e ".status.lost.ranks == \"1\"" out &&
    until_generate 3 -r 1 && jq -e ".status.lost.ranks == \"1\"" out &&
    idtree startctl run 1 && status --wait=full --check --fluid >out && grep -E "^full +4  0-3$" out &&
    until_generate 0-3
'
test_expect_success 'overlay status reports the ranks of a subtree that does not answer in time, and shows the other ranks' '
    idtree startctl stop 1 && status --fluid --timeout 1 --json >out && cat out && idtree startctl cont 1 &&
    jq -e "(.status[\"no answer\"].ranks // .status.lost.ranks) | contains (\"1\")" out &&
    jq -e ".fluid.active.ranks | contains (\"2\")" out && status --wait=full --check && until_generate 0-3
'
if command -v python3 >/dev/null; then
    test_set_prereq PYTHON
fi
# The same broker, but that it has never heard of the request.
older() { IDTREE_URI=local://$PWD/older status --fluid --json; }
test_expect_success PYTHON 'overlay status sends a request to each broker that does not know the request for subtrees' '
    { python3 "$IDTREE_SRCDIR/t/older_broker.py" "${IDTREE_URI#local://}" "$PWD/older" metrics.get & } &&
    cleanup "kill $!" && wait_until "the older broker is there" test -S older &&
    same() { older >old && status --fluid --json >new && test "$(jq -S . old)" = "$(jq -S . new)"; } &&
    wait_until "they tell the same" same && cat old &&
    idtree startctl kill 3 && status --wait=degraded >out &&
    others() { older >old && jq -e ".status.lost.ranks == \"3\" and .fluid.active.ranks == \"0-2\"" old; } &&
    wait_until "the others are told" others && cat old
'
test_done

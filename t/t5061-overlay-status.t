#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5061-overlay-status.t - who is missing, for people, scripts and probes
test_description='overlay status waits, leaves out, has color, and an exit status'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:2 -o log-stderr-level=2

escape=$(printf '\033')
status() { idtree overlay status "$@"; }

test_expect_success 'where all are there, nothing is down, and the check is passed' '
    status --check >out && grep -c " full " out && status --down --check >out && test "$(wc -l <out)" -le 1 &&
    status --summary --down --check >out && ! grep full out
'
test_expect_success 'a state is waited for; who is missing is shown, and told by the exit status' '
    idtree startctl kill 3 && test_expect_code 1 status --wait=degraded --check --down >out && cat out &&
    grep -E "^0 .* degraded " out && grep -E "3 .* lost " out && ! grep -E "2 .* full" out &&
    test_expect_code 1 status --summary --down --check >out && grep -E "^degraded +2  0-1$" out &&
    grep -E "^lost +1  3$" out && ! grep full out &&
    status --check -r 2 && test_expect_code 2 status --check -r 3 >out && grep -E "^3 +lost" out
'
test_expect_success 'a state that does not come about is given up, by name' '
    test_expect_code 1 status --wait=full --timeout 0.2 2>err >out && ! test -s out &&
    grep "^idtree overlay status: rank 0 is degraded, not full, after 0.2 s" err &&
    test_expect_code 2 status --wait=best 2>err && grep "no state to wait for: full, partial, degraded or lost" err
'
test_expect_success 'color is for terminals' '
    status >out && ! grep "$escape" out && status --color=always >out && grep "$escape" out &&
    status --color=always --summary >out && grep "$escape\[31mlost" out &&
    status --color=always --json >out && ! grep "$escape" out &&
    test_expect_code 2 status --color=blue 2>err && grep "color .blue.: auto, always or never" err
'
test_expect_success 'on one there is, unless it is not wanted' '
    on_terminal() { TERM=xterm script -qec "$1" /dev/null </dev/null; } &&
    on_terminal "idtree overlay status --summary" >out && grep "$escape\[31mlost" out &&
    for c in "NO_COLOR=1 idtree overlay status" "TERM=dumb idtree overlay status" \
        "idtree overlay status --color=never" "idtree overlay status --no-colour"; do
        on_terminal "$c --summary" >out && grep lost out && ! grep "$escape\[31m" out || return 1
    done
'
test_expect_success 'one that is back is waited for, too' '
    idtree startctl run 3 && status --wait=full --check --summary >out && grep -E "^full +4  0-3$" out
'
test_done

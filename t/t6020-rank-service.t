#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t6020-rank-service.t - the example of a service on each rank: requests, refusals, deadlines, lost ranks
test_description='rank-service, an example program, offers a service on its rank, and calls the service on other ranks'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:1 -o log-stderr-level=0

PATH=$IDTREE_BUILDDIR/examples/rank-service:$PATH
uri_of() { echo "${IDTREE_URI%0}$1"; }
ask() { "$IDTREE_BUILDDIR/t/ask" "$@"; }

serve() { # rank
    rm -f "ready.$1" && mkfifo "ready.$1" || return 1
    IDTREE_URI=$(uri_of "$1") rank-service serve >"ready.$1" 2>"err.$1" &
    eval "pid_$1=$!"
    exec 7<"ready.$1" && wait_line 7
}
# Wait until a request is pending for the program on a rank.
wait_asked() { wait_until "rank $1 has a request" is_asked "$1"; }
is_asked() { idtree module stats --json -r "$1" broker | grep -q '"pending": *1[,}]'; }
pid_of() { eval "echo \$pid_$1"; }
cleanup 'for r in 0 1 2 3; do kill -CONT $(pid_of $r); kill $(pid_of $r); done 2>/dev/null'

test_expect_success 'a request for rank-service on a rank without it gets an error that says so' '
    test_must_fail rank-service load 1 2>err && cat err && grep "rank-service: rank 1: .*rank-load" err
'
test_expect_success 'each rank offers rank-service, and the other ranks call it' '
    for r in 0 1 2 3; do serve $r || return 1; done &&
    for r in 0 1 2 3; do for of in 0 1 2 3; do
        IDTREE_URI=$(uri_of $r) rank-service load $of >out && grep "^$of	[0-9.]*$" out || return 1
    done; done
'
test_expect_success 'a second program that offers rank-service on the same rank is refused' '
    test_must_fail rank-service serve 2>err && cat err && grep "service rank-load: " err
'
test_expect_success 'a call of rank-service on a rank that does not exist fails immediately, whatever the deadline' '
    test_must_fail rank-service load -t 3600000 4 2>err && cat err && grep "rank 4: " err
'
test_expect_success 'rank-service sends requests to all ranks while it handles a request, and responds once' '
    rank-service least -t 60000 >out && cat out && grep "4 of 4 ranks answered" out &&
    IDTREE_URI=$(uri_of 3) rank-service least -t 60000 >out && grep "4 of 4" out
'
test_expect_success 'rank-service refuses invalid requests with a message' '
    test_must_fail ask 1 rank-load.least "{}" 2>err && grep "EPROTO: .*wait" err &&
    test_must_fail ask 1 rank-load.least "{\"wait\":0}" 2>err && grep "EINVAL: wait: must be" err &&
    test_must_fail ask 1 rank-load.most 2>err && cat err && grep "ENOSYS" err
'
cat >guest.py <<'END'
# A user who is not the owner asks; our connection is the owner's, which may say so.
import errno, os, sys
sys.path.insert(0, os.path.join(os.environ["IDTREE_SRCDIR"], "t"))
from flux_client import *
with Client() as c:
    assert c.ask("rank-load.get", {}, 2, userid=4711, roles=USER)["rank"] == 2
    c.refuse(errno.EPERM, "rank-load.least", {"wait": 1000}, 2, userid=4711, roles=USER)
END
test_expect_success 'all users may request a load from rank-service, and only the instance owner may request the rank with the least' '
    FLUX_URI=$IDTREE_URI python3 guest.py
'
test_expect_success 'a rank that does not respond delays a request to rank-service until its deadline, and the other ranks respond' '
    kill -STOP $(pid_of 2) && test_must_fail rank-service load -t 50 2 2>err && grep "rank 2: .*timed out" err &&
    wait_until "three have answered in time" holds "rank-service least -t 200 | grep \"3 of 4 ranks answered\""
'
test_expect_success 'a suspended rank-service responds again as soon as it continues' '
    kill -CONT $(pid_of 2) && rank-service load -t 300000 2 && rank-service least -t 300000 >out && grep "4 of 4" out
'
test_expect_success 'a client that waits for rank-service gets an error when the program dies' '
    kill -STOP $(pid_of 1) && { rank-service load -t 3600000 1 2>err & } && pid=$! &&
    wait_asked 1 && kill -9 $(pid_of 1) && ! wait $pid && grep "rank 1: the service ended before it answered" err &&
    rank-service least -t 60000 >out && grep "3 of 4 ranks answered" out
'
test_expect_success 'a client of rank-service gets an error when the broker of the rank dies, and the program ends with a message' '
    kill -STOP $(pid_of 3) && { rank-service load -t 3600000 3 2>err & } && pid=$! &&
    wait_asked 3 && idtree startctl kill 3 && ! wait $pid && cat err && grep "rank 3: " err &&
    kill -CONT $(pid_of 3) && ! wait $(pid_of 3) && cat err.3 && grep "the broker is gone" err.3 &&
    rank-service least -t 60000 >out && grep "2 of 4 ranks answered" out
'
test_expect_success 'when a rank reconnects, rank-service on it is available again' '
    idtree startctl run 3 && serve 3 && rank-service load 3 && serve 1 &&
    rank-service least -t 60000 >out && grep "4 of 4" out
'
test_expect_success 'rank-service prints the cost of a call for each rank, next to the cost of an echo' '
    rank-service cost -n 20 0 1 3 >out && cat out && test "$(cut -f1 out | tr "\n" ,)" = "echo,rank 0,rank 1,rank 3,"
'
test_expect_success 'rank-service refuses invalid arguments' '
    for args in "" "nosuch" "load" "load 1 2" "cost" "serve 1" "least -t 0" "load -x 1"; do
        test_expect_code 2 rank-service $args 2>err && grep "^usage" err || return 1
    done && test_must_fail env -u IDTREE_URI -u FLUX_URI rank-service load 0 2>err && grep "cannot connect" err
'
test_done

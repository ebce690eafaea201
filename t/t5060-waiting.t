#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5060-waiting.t - each command has a time limit, and its error names the broker or service that did not answer
test_description='commands that get no answer end, and name the broker or service that did not answer'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3 --topology kary:1 -o log-stderr-level=2 -o tbon.timeout=60s \
    -o broker.modules=fluid,flake,compressor,job-ingest
command -v python3 >/dev/null && test_set_prereq PYTHON

# Commands that send a request to the local broker; none changes anything if it is answered after all.
local_commands='getattr size
setattr log-level 7
lsattr -v
module list
module load --timeout 0.1 nosuch
module remove nosuch
module stats fluid
overlay status
overlay status --summary
info
watermark
ping -c 1 0
event pub a.b
event sub -c 1 a.b
dmesg
dmesg -f
dmesg -C
logger text
id new
id show 1234567
id range --from 2026-11-21 --to 2026-11-22
doc list
doc new d
doc open d
doc close d
doc ids d
doc show d
doc rename d e
doc delete d
doc export d
job list
job show 1
job watch -n 1
job ack 1
job stats
shutdown
version'

each() { # commands on stdin, what their complaint has
    while IFS= read -r c; do
        # shellcheck disable=SC2086
        test_expect_code 1 idtree $c --timeout 0.1 </dev/null >out 2>err && grep "$1" err >/dev/null ||
            { echo "idtree $c:"; cat out err; return 1; }
    done
}
stopped() { idtree startctl stop "$1"; }
goes_on() { idtree startctl cont "$1"; }

test_expect_success '--timeout accepts a number of seconds, or 0' '
    idtree getattr --timeout 0 size && idtree getattr --timeout 0.0 size && idtree getattr --timeout 86400 size &&
    for t in x "" -1 1s 86401 nan; do
        test_expect_code 2 idtree getattr --timeout="$t" size 2>err && grep "a number of seconds up to" err || return 1
    done
'
test_expect_success 'every command names a suspended broker by its URI' '
    stopped 0 && echo "$local_commands" |
        each "no answer within 0.1 s: the broker at $IDTREE_URI does not answer"
    rc=$?; goes_on 0 && test $rc = 0
'
test_expect_success 'if the first broker of a list does not answer, the next one is tried within the same timeout' '
    stopped 0 && idtree getattr --uri "$IDTREE_URI ${IDTREE_URI%0}1" --timeout 4 rank >out 2>err
    rc=$?; goes_on 0 && cat out err && test $rc = 0 && grep -x 1 out
'
test_expect_success 'job submit names a suspended broker by its URI' '
    stopped 0 && test_expect_code 1 idtree job submit --timeout 0.1 -- true 2>err; rc=$?
    goes_on 0 && cat err && test $rc = 0 && grep "the broker at $IDTREE_URI does not answer" err
'
test_expect_success 'a command that waits for a suspended rank names that rank, and the local broker as one that answers' '
    is_named() { # where the broker was not quick enough it is named itself
        echo "$1 -r 2" | each "rank 2 or a broker on the way to it does not answer; the broker at $IDTREE_URI does"
    } &&
    all_name() { for c in info "dmesg -f" "doc ids d" "id new"; do wait_until "$c names it" is_named "$c" || return 1; done; } &&
    stopped 2 && all_name; rc=$?; goes_on 2 && test $rc = 0
'
test_expect_success 'overlay status ends although a rank is suspended, and shows that rank as having no answer' '
    tells() { idtree overlay status --timeout 0.1 >out; cat out; grep -E "^ +.*2 .*no answer" out; } && # where those above it were quick enough
    stopped 2 && wait_until "it is told" tells; rc=$?; goes_on 2 && test $rc = 0
'
test_expect_success 'a command that waits for a service that does not answer names the service, and says that its broker answers' '
    idtree module load -r 1 "$IDTREE_BUILDDIR/t/modules/.libs/echo.so" &&
    "$IDTREE_BUILDDIR/t/ask" 1 echo.echo "{}" &&
    { "$IDTREE_BUILDDIR/t/ask" 1 echo.ask "{\"topic\":\"echo.hold\"}" </dev/null >/dev/null 2>&1 & asker=$!; } &&
    is_stuck() { # where the broker was not quick enough it is named itself
        ! idtree module stats -r 1 --timeout 0.1 echo 2>err &&
            grep "^idtree module stats: echo.stats-get: no answer within 0.1 s: the service echo of rank 1 does not answer, its broker does" err
    } && wait_until "it is stuck, which is told" is_stuck
'
test_expect_success 'a stream whose start was answered does not time out, however long no event arrives' '
    mkfifo lines && exec 6<>lines &&
    subscribe() { idtree event sub --timeout 0.1 -c 1 late. </dev/null >lines 2>err 6<&- & sub=$!; } &&
    lasts() { # where the broker was not quick enough there is another try
        kill -0 $sub || subscribe
        wait_has_subscribers 0 1 && idtree ping -c 4 -i 0.1 0 >/dev/null && kill -0 $sub
    } && subscribe && wait_until "it lasts" lasts &&
    idtree event pub late.a && wait_line 6 | grep "^late.a" && wait $sub && exec 6<&-
'
test_expect_success 'a command reports a lost rank immediately, with the rank number' '
    idtree startctl kill 2 && test_expect_code 1 idtree getattr -r 2 size 2>err &&
    grep "^idtree getattr: size: rank 2 is not connected" err
'
kill $asker 2>/dev/null; wait $asker 2>/dev/null
idtree startctl kill 1 # which would wait for what is stuck
# Run a shutdown through a broker that ends when TEXT is sent to it. The messages of the shutdown are in err.
stop_ending() { # TEXT, order|crash
    rm -f ends && { python3 "$IDTREE_SRCDIR/t/ending_broker.py" "${IDTREE_URI#local://}" "$PWD/ends" "$1" "$2" & } &&
        wait_until "it is served" test -S ends && idtree shutdown --timeout 20 --uri "local://$PWD/ends" 2>err
}
test_expect_success PYTHON 'a shutdown through a broker that ends in an orderly way between two requests succeeds' '
    for text in router.max-pending shutdown.start; do
        stop_ending $text order && cat err && grep "another user or program stopped the broker at local://$PWD/ends" err || return 1
    done
'
test_expect_success PYTHON 'a shutdown through a broker that crashes before rank 0 answers fails, and connects to no other broker' '
    for text in router.max-pending shutdown.start; do
        test_expect_code 1 stop_ending $text crash && cat err && grep "closed the connection before rank 0 answered" err || return 1
    done
'
test_done

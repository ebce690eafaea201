#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t9001-flux-clients.t - the installed Flux commands and Flux's Python as clients of an idtree instance
test_description='FLUX_URI connects stock Flux clients to brokers of idtree'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs flux
test_under_idtree 3

SQ="'"

flux python -c 'import flux' 2>/dev/null && test_set_prereq FLUX_PYTHON
command -v python3 >/dev/null && test_set_prereq PYTHON

at() { # RANK command...: the command talks to that rank
    (FLUX_URI=${FLUX_URI%0}$1 IDTREE_URI=${IDTREE_URI%0}$1 && export FLUX_URI IDTREE_URI && shift && "$@")
}

test_expect_success 'commands that idtree start runs find their broker by FLUX_URI' '
    test "$FLUX_URI" = "$IDTREE_URI" && test "$(flux getattr local-uri)" = "$FLUX_URI"
'
test_expect_success PYTHON 'each recorded Flux command prints what it printed with flux-core' '
    vectors=${IDTREE_VECTORS:-$IDTREE_SRCDIR/t/vectors} &&
    python3 "$IDTREE_SRCDIR/t/flux_live.py" "$vectors/flux-client.json" >live || { grep -v ^ok live; false; }
'

# --- attributes

test_expect_success 'flux getattr and flux lsattr print what idtree prints, on each rank' '
    for r in 0 1 2; do
        test "$(at $r flux getattr rank)" = $r && at $r flux lsattr >names && at $r idtree lsattr >ours &&
        test_cmp ours names || return 1
        for a in size hostlist security.owner instance-level local-uri rundir tbon.topo broker.uuid log-level; do
            test "$(at $r flux getattr $a)" = "$(at $r idtree getattr $a)" || return 1
        done
    done
'
test_expect_success 'flux setattr changes the attribute of its own rank only' '
    at 1 flux setattr log-forward-level 3 && test "$(at 1 idtree getattr log-forward-level)" = 3 &&
    test "$(idtree getattr log-forward-level)" != 3 && at 1 idtree setattr log-forward-level 6 &&
    test_must_fail flux setattr log-level loud 2>err && grep "0 .* 7" err
'

# --- ping, overlay

test_expect_success 'flux ping reaches any rank and its modules from any rank' '
    for from in 0 1 2; do
        for to in 0 1 2; do
            at $from flux ping -c2 -i0.001 $to >out && test $(grep -c "^$to!broker.ping .*seq=[01] " out) = 2 &&
            at $from flux ping -c1 --rank=$to fluid >out && grep "^$to!fluid.ping" out || return 1
        done
    done
'
test_expect_success 'a batch of large flux pings is answered, and shows the user id and roles of the requester' '
    flux ping -c20 -i0.001 -b -u -p 100000 2 >out && test $(grep -c "pad=100000 userid=$(id -u) rolemask=0x1 " out) = 20
'
test_expect_success 'flux overlay status shows a lost rank, and waits until it has returned' '
    idtree startctl kill 2 && flux overlay status --wait=degraded >out && grep "2 .*: lost" out &&
    test "$(flux overlay status --summary)" = degraded &&
    idtree startctl run 2 && flux overlay status --wait=full >out && ! grep lost out
'
test_expect_success 'Flux commands for job managers fail with a message, because no job manager is loaded' '
    for c in "jobs" "queue list" "resource list" "cancel f1" "job wait f1" "exec -r 0 true" "submit true"; do
        test_must_fail timeout "$WAIT_S" flux $c >out 2>err &&
        grep "No service matching .* is registered" err || return 1
    done
'
test_expect_success 'flux config finds an empty configuration' '
    test "$(flux config get)" = "{}" && test_must_fail flux config get tbon.topo
'

# --- modules

module_state() { flux module list | awk -v m="$1" '$1 == m { print $3 }'; }

test_expect_success 'flux module removes and reloads a module, and ids continue in order' '
    before=$(idtree id new --to dec) && flux module remove fluid && test -z "$(module_state fluid)" &&
    ! idtree module list | grep fluid && flux module load fluid && test "$(module_state fluid)" = R &&
    flux module reload fluid && flux module list -l | grep "^fluid .* R .*/fluid.so$" &&
    test "$(idtree id new --to dec)" -gt "$before"
'
test_expect_success 'flux module refuses to load a module that does not exist or is loaded already' '
    test_must_fail flux module load nosuch 2>err && grep "module not found in search path" err &&
    test_must_fail flux module load fluid 2>err && grep "a module fluid is loaded already" err &&
    test_must_fail flux module remove nosuch && flux module remove -f nosuch
'
test_expect_success 'flux module stats shows counters and clears them' '
    flux module stats --clear fluid && test "$(flux module stats --parse ids fluid)" = 0 && idtree id new -n 5 >ids &&
    test "$(flux module stats --type int --parse ids fluid)" = 5 && flux module stats --clear-all fluid &&
    wait_until "an event clears what is counted" holds "test \$(flux module stats --parse ids fluid) = 0" &&
    test "$(flux module stats -R --parse maxrss fluid)" -gt 0
'

test_expect_success 'flux module remove and reload accept the path of a file' '
    file=$IDTREE_BUILDDIR/t/modules/.libs/echo.so &&
    flux module load "$file" && flux module reload "$file" && test "$(module_state echo)" = R &&
    flux module remove "$file" && test -z "$(module_state echo)" && test_must_fail flux module remove "$file" &&
    test_must_fail flux module load "$file" fail 2>err && grep "Invalid argument" err && test -z "$(module_state echo)"
'
test_expect_success 'flux module stats shows resource usage and counters of each service, and flux setattr accepts level -1' '
    for who in self children thread; do flux module stats --rusage=$who fluid || return 1; done &&
    test_must_fail flux module stats --rusage=badopt fluid 2>err && grep "must be self, children or thread" err &&
    for name in attr broker event log module overlay service; do flux module stats $name || return 1; done &&
    flux setattr log-stderr-level -1 && test "$(flux getattr log-stderr-level)" = -1 &&
    test_must_fail flux setattr log-stderr-level 8 && flux setattr log-stderr-level 4
'
test_expect_success 'flux module refuses a module of Flux, and the broker keeps running' '
    test_must_fail flux module load "$IDTREE_BUILDDIR/t/flux-core/.libs/idtree-flux.so" 2>err &&
    grep "is a module for Flux.s broker" err &&
    for real in "$(dirname "$(command -v flux)")"/../lib/flux/modules/heartbeat.so; do
        test ! -f "$real" || { test_must_fail flux module load "$real" 2>err && grep "heartbeat.so is a" err; } || return 1
    done && flux getattr rank && idtree id new
'

# --- events

test_expect_success 'flux event sub receives the events that flux and idtree commands publish, on any rank, in order' '
    at 2 flux event sub -c 6 ev. >got & sub=$! &&
    wait_subscribers 2 1 && flux event pub ev.a "{\"n\":1}" && at 1 idtree event pub ev.b "{\"n\":2}" &&
    at 1 flux event pub other && at 2 flux event pub -p -s ev.c "{\"n\":3}" && flux event pub -r ev.d raw &&
    at 1 flux event pub -s ev.e && at 1 flux event pub -l ev.f && wait $sub &&
    printf "ev.%s\n" a b c d e f >want && cut -f1 got >topics && test_cmp want topics &&
    grep "^ev.b.*\"n\": *2" got && grep "^ev.d.*raw" got
'
test_expect_success 'idtree event sub receives the events that flux event publishes' '
    at 1 idtree event sub -c 2 ev. >got & sub=$! &&
    wait_subscribers 1 1 && at 2 flux event pub ev.x "{\"n\":1}" && flux event pub ev.y && wait $sub &&
    test "$(cut -f1 got | tr "\n" " ")" = "ev.x ev.y "
'

# --- the log

test_expect_success 'flux and idtree commands write and read the same log' '
    at 1 flux logger -s warning --appname=me "from flux" && at 1 idtree logger -n us "from idtree" &&
    at 1 flux dmesg >log && grep "me.warning\[1\]: from flux" log && grep "us.*\[1\]: from idtree" log &&
    at 1 idtree dmesg | grep "me.*from flux" &&
    wait_until "rank 0 has the line, too" holds "flux dmesg | grep -q \"me.warning\[1\]: from flux\"" &&
    flux dmesg -H | grep "from flux" && flux dmesg -c | grep "from flux" && ! flux dmesg | grep "from flux"
'
# Read descriptor 7 up to a line with that text.
until_line() { # text
    while line=$(wait_line 7); do
        case $line in *"$1"*) return 0 ;; esac
    done
    return 1
}
test_expect_success 'flux dmesg --follow prints the existing lines, then new ones' '
    flux logger "the first" && mkfifo lines && { flux dmesg --follow >lines & } && exec 7<lines &&
    until_line "the first" && at 0 idtree logger "the second" && until_line "the second" &&
    flux logger "the third" && until_line "the third" && kill $! && exec 7<&-
'

# --- ids

test_expect_success 'Flux reads the ids that idtree writes, and idtree reads those of Flux, in all forms' '
    idtree id new -n 50 >ids && at 2 idtree id new -n 50 >>ids &&
    for form in dec hex dothex words; do
        flux job id --to=$form <ids >theirs && idtree id convert --to $form - <ids >ours && test_cmp ours theirs &&
        idtree id convert --to f58 - <theirs >again && test_cmp ids again || return 1
    done &&
    flux job id --to=f58 <ids >theirs && idtree id convert --to f58 - <theirs >again && test_cmp ids again &&
    idtree id convert --to words - <ids | tr a-z A-Z >capitals && flux job id --to=dec <capitals >theirs &&
    idtree id convert --to dec - <capitals >ours && test_cmp ours theirs
'

# --- programs

cat >rpc.py <<\EOF
import errno
import sys

import flux
import flux.job

h = flux.Flux()
assert h.get_rank() == int(sys.argv[1]), h.get_rank()
assert h.attr_get("size") == "3" and h.conf_get("nosuch", default=7) == 7
last = 0
for nodeid in [flux.constants.FLUX_NODEID_ANY, 0, 1, 2]:
    info = h.rpc("fluid.info", nodeid=nodeid).get()
    assert nodeid > 2 or info["rank"] == nodeid, info
    futures = [h.rpc("fluid.generate", {"count": 10}, nodeid=nodeid) for _ in range(300)]
    ids = [flux.job.JobID(first) + i for f in futures for first, n in f.get()["runs"] for i in range(n)]
    assert len(ids) == 3000 and ids == sorted(set(ids)), ids
errors = {("nosuch.x", 0): errno.ENOSYS, ("fluid.nosuch", 0): errno.ENOSYS, ("fluid.generate", -1): errno.EINVAL}
for (topic, count), errnum in errors.items():
    try:
        h.rpc(topic, {"count": count}).get()
        raise AssertionError(topic)
    except OSError as e:
        assert e.errno == errnum and str(e), e
EOF
test_expect_success FLUX_PYTHON 'Flux in Python sends requests to and from any rank, many concurrently; errors have a number and a message' '
    for r in 0 1 2; do at $r flux python rpc.py $r || return 1; done
'
cat >serve.py <<\EOF
import flux
from flux.constants import FLUX_MSGTYPE_EVENT, FLUX_MSGTYPE_REQUEST

h = flux.Flux()


def double(h, watcher, msg, arg):
    h.respond(msg, {"n": 2 * msg.payload["n"]})


def end(h, watcher, msg, arg):
    print(msg.payload["why"])
    h.service_unregister("double").get()
    h.reactor_stop()


watchers = [h.msg_watcher_create(double, FLUX_MSGTYPE_REQUEST, "double.it"),
            h.msg_watcher_create(end, FLUX_MSGTYPE_EVENT, "double.end")]
h.event_subscribe("double.end")
h.service_register("double").get()
with watchers[0], watchers[1]:
    h.reactor_run()
EOF
test_expect_success FLUX_PYTHON 'Flux in Python: clients of either library use a service on rank 1, and an event ends the service' '
    { at 1 flux python serve.py >end & } && server=$! &&
    wait_until "the service is there" holds "at 1 \"$IDTREE_BUILDDIR/t/ask\" 1 double.it \"{\\\"n\\\":1}\"" &&
    test "$("$IDTREE_BUILDDIR/t/ask" 1 double.it "{\"n\":21}")" = "{\"n\": 42}" &&
    at 1 flux python -c "import flux; print(flux.Flux().rpc(\"double.it\", {\"n\": 4}).get())" >out &&
    test "$(cat out)" = "{${SQ}n${SQ}: 8}" &&
    idtree event pub double.end "{\"why\":\"enough\"}" && wait $server && test "$(cat end)" = enough &&
    test_must_fail "$IDTREE_BUILDDIR/t/ask" 1 double.it "{}"
'
test_expect_success 'flux proxy forwards commands if --force allows different versions' '
    test "$(flux proxy --force "${FLUX_URI%0}2" flux getattr rank)" = 2
'

# --- the end

cat >shutdown.sh <<\EOF
. "$IDTREE_SRCDIR/t/wait.sh"
flux shutdown "$@" && wait_until "the brokers have ended" holds "! flux getattr size"
EOF
test_expect_success 'flux shutdown stops an instance of idtree' '
    for i in 1 2 3 4 5; do
        idtree start -s 3 sh shutdown.sh && idtree start -s 3 sh shutdown.sh --background || return 1
    done
'
test_done

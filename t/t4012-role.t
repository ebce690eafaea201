#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4012-role.t - several candidates of rank 0 over a real PostgreSQL with a synchronous copy, on one host
test_description='one candidate leads, the others stand by, and one of them takes over when the leader is gone'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
T=/tmp/idtree-t4012.$$
mkdir -m 700 $T && cd $T && idtree keygen cert || exit 1
cleanup "end_all; pgs_end; rm -rf $T"
port=$((30000 + $$ % 2500 * 4))
pgs_start || exit 1
store=$(pgs_uri)
file() { # additional lines of the table root
    cat <<END
broker.modules = ""
tbon.timeout = "2s"

[root]
store = "$store"
takeover = "1s"

[cluster]
hosts = "root,127.0.0.9:$port"
root = "127.0.0.1,127.0.0.2,127.0.0.3:$port"
certificate = "$T/cert"
END
}
file >conf
options() { echo "-c $T/conf --rank=0 --host=127.0.0.$1 -o cluster.interface=127.0.0.$1 -o rundir=$T/run.$1"; }
candidate() { # number, option...
    n=$1 && shift
    : >"$T/err.$n"
    # shellcheck disable=SC2046
    idtree-broker $(options "$n") "$@" 2>>"$T/err.$n" >>"$T/out.$n" </dev/null &
    echo $! >"$T/pid.$n"
}
pid() { cat "$T/pid.$1"; }
end_all() { for n in 1 2 3; do kill -CONT "$(pid $n)"; kill -9 "$(pid $n)"; done 2>/dev/null; }
is_gone() { ! kill -0 "$(pid "$1")"; }
role() { pgs_sql "${primary:-0}" "SELECT $1 FROM idtree.role"; }
is() { test "$(role "$1")" = "$2"; }
leads() { is "host" "127.0.0.$1" && is state leads && is term "$2" && idtree getattr --uri "local://$T/run.$1/local-0" root.term | grep -qx "$2"; } # number, term
await_leader() { wait_until "candidate $1 leads in term $2" leads "$1" "$2"; }
stand_by() { test "$(pgs_sql "${primary:-0}" "SELECT count (*) FROM pg_stat_activity WHERE application_name = 'idtree role' AND query LIKE 'SELECT term%'")" -ge "$1"; }
await_standbys() { wait_until "$1 candidates stand by" stand_by "$1"; }
listens() { grep -hi "0${1}00007F:$(printf %04X $port) 0*:0000 0A" /proc/net/tcp /proc/net/tcp6; } # number
leader_of() { for n in 1 2 3; do ! leads $n "$(role term)" || echo $n; done; }
has_leader() { test -n "$(leader_of)"; }
others() { for n in 1 2 3; do test $n = "$lead" || echo $n; done; }
await_term() { wait_until "one leads in term $1" leads_in "$1" && lead=$(leader_of); }
leads_in() { is term "$1" && has_leader; }
beats() { test "$(role beat)" -gt "$1"; }
await_beat() { wait_until "the leader gives a sign of life" beats "$(role beat)"; }
left() { wait "$(pid "$1")"; }

test_expect_success 'a database without a state is refused, as an empty folder is' '
    candidate 1 && test_expect_code 3 left 1 && cat err.1 && grep "has no state of idtree: check its name in root.store" err.1
'
test_expect_success 'rank 0 refuses what it cannot use, each with a sentence' '
    idtree init --store "$store" --name standby &&
    refused() { want=$1 && shift && test_expect_code 2 idtree-broker $(options 1) "$@" 2>err && cat err && grep -e "$want" err; } &&
    refused "attribute root.store=.*: the connection string has a password" -o root.store=postgresql://u:secret@db/x &&
    refused "attribute root.store=no words" -o "root.store=no words" &&
    refused "attribute root.store-sync=maybe: must be check .* or trust" -o root.store-sync=maybe &&
    refused "attribute root.takeover=1ms: must be a time from 500ms to 60s" -o root.takeover=1ms &&
    refused "attribute root.term=7: the broker sets it itself" -o root.term=7 &&
    refused "attribute statedir=$T: the state of rank 0 is in root.store: leave statedir out" -o statedir=$T &&
    refused "several hosts can be rank 0 only if its state is in PostgreSQL: set root.store" -o root.store= &&
    refused "this host, 127.0.0.7, is not among the 3 of cluster.root" --host=127.0.0.7 &&
    refused "attribute root.takeover=x" -o root.takeover=x --check &&
    idtree-broker $(options 1) --check && is term 0
'
test_expect_success 'the first candidate leads in term 1, and the others stand by without an open port' '
    candidate 1 && await_leader 1 1 && candidate 2 && candidate 3 && await_standbys 2 && await_beat &&
    leads 1 1 && ! test -e run.2/local-0 && ! test -e run.3/local-0 && idtree getattr --uri local://$T/run.1/local-0 instance.name | grep standby &&
    listens 1 && ! listens 2 && ! listens 3
'
test_expect_success 'a candidate whose attributes differ from those of the leader says which, once' '
    kill "$(pid 2)" && left 2 && candidate 2 -o fluid.lease=20s -o root.takeover=2s -o fluid.recover-horizon=2026-01-01 && await_standbys 2 && await_beat && await_beat &&
    grep "attributes are others on 127.0.0.1, the newest root: fluid.lease (20s here, not set there), root.takeover (2s here, 1s there): the configuration should be the same on all hosts" err.2 &&
    test "$(grep -c "attributes are others" err.2)" = 1 && ! grep "attributes are others" err.3 && kill "$(pid 2)" && left 2
'
test_expect_success 'the first root decides uid.drift; a candidate with another value is refused, and says which' '
    test "$(pgs_sql 0 "SELECT uid_drift FROM idtree.instance")" = 8 && candidate 2 -o uid.drift=9 && test_expect_code 2 left 2 && cat err.2 &&
    grep "uid.drift=9 on this host, but the uids of this instance have uid.drift=8, and must keep it" err.2 &&
    candidate 2 -o uid.drift=4 && test_expect_code 2 left 2 && grep "attribute uid.drift=4: must be a number from 5 to 10" err.2 &&
    candidate 2 -o uid.drift=8 && await_standbys 2 && kill "$(pid 2)" && left 2 && candidate 2 && await_standbys 2 && is term 1
'
test_expect_success 'when the leader is killed, another candidate leads' '
    kill -9 "$(pid 1)" && await_term 2 && test $lead != 1 && candidate 1 && await_standbys 2
'
test_expect_success 'a leader that is stopped is replaced; when it continues, it ends with 76' '
    old=$lead && kill -STOP "$(pid $old)" && await_term 3 && test $lead != $old && kill -CONT "$(pid $old)" && test_expect_code 76 left $old && grep "another host has become rank 0" err.$old &&
    await_beat && leads $lead 3 && candidate $old && await_standbys 2
'
test_expect_success 'SIGTERM gives the role back: another candidate leads, and the old one ends with 0' '
    old=$lead && kill "$(pid $old)" && left $old && await_term 4 && candidate $old && await_standbys 2
'
test_expect_success 'SIGTERM ends a candidate that stands by with 0, and nothing else changes' '
    set -- $(others) && kill "$(pid $1)" && left $1 && await_beat && leads $lead 4 && candidate $1 && await_standbys 2
'
test_expect_success 'idtree root status shows the leader, with and without a broker, and idtree root release makes another one lead' '
    uri=local://$T/run.$lead/local-0 && idtree root status --uri $uri && idtree root status --uri $uri --json >got && jq -e ".term == 4 and .host == \"127.0.0.$lead\" and .why == \"\" and .takeover_ms == 1000" got &&
    idtree root status --store "$store" --json >got && cat got && jq -e ".term == 4 and .host == \"127.0.0.$lead\" and .state == \"leads\" and .standbys == 2 and .name == \"standby\"" got &&
    idtree root release --uri $uri && test_expect_code 76 left $lead && grep "gives the role of rank 0 back: a request" err.$lead && old=$lead && await_term 5 && candidate $old && await_standbys 2
'
figures() { idtree metrics --uri $uri >metrics && for f in "$@"; do grep -xF "idtree_root_$f" metrics || { grep idtree_root metrics; return 1; }; done; }
test_expect_success 'idtree info, idtree metrics and idtree health show the role, its host, the takeovers, and the candidates that stand by' '
    uri=local://$T/run.$lead/local-0 && await_standbys 2 && await_beat && await_beat && idtree info --uri $uri --json >got && cat got &&
    jq -e ".root | .term == 5 and .takeovers == 4 and .host == \"127.0.0.$lead\" and .candidates == 3 and .standbys == 2 and .why == \"\"" got &&
    idtree info --uri $uri >got && grep "^root term  *5$" got && grep "^root standbys  *2$" got &&
    figures "term 5" "takeovers_total 4" "candidates 3" "standbys 2" "store_failing 0" "host{host=\"127.0.0.$lead\"} 1" &&
    { idtree health --uri $uri --json >got || :; } && jq -e "[.reasons[].what] | index (\"root\") == null" got &&
    grep -o "idtree_root_[a-z_]*" "$IDTREE_SRCDIR/etc/monitoring/idtree.rules.yml" | sort -u >used && test -s used && for f in $(cat used); do grep "^$f " metrics || return 1; done
'
says() { idtree health --uri $uri >health || :; grep "$1" health; }
test_expect_success 'idtree health says when no candidate stands by, and idtree metrics count none' '
    set -- $(others) && kill "$(pid $1)" "$(pid $2)" && left $1 && left $2 &&
    wait_until "it says so" says "no host can take over: rank 0 is 127.0.0.$lead in term 5, and of the other 2 of cluster.root none stands by" && figures "standbys 0" &&
    candidate $1 && candidate $2 && await_standbys 2
'
test_expect_success 'without root.store there is no role to show or to release' '
    idtree-broker --standalone sh -c "! idtree root status 2>err && grep root.store err && ! idtree root release 2>err && grep root.store err && idtree info --json >info && idtree health --json >health" &&
    jq -e "has (\"root\") | not" info && jq -e ".reasons == []" health
'
test_expect_success 'if all candidates are stopped, and the leader continues first, it keeps the role' '
    set -- $(others) && kill -STOP "$(pid $1)" "$(pid $2)" && kill -STOP "$(pid $lead)" &&
    kill -CONT "$(pid $lead)" && await_beat && kill -CONT "$(pid $1)" "$(pid $2)" && await_beat && await_beat && leads $lead 5
'
test_expect_success 'a store that stands still makes no takeover, and the leader goes on' '
    uri=local://$T/run.$lead/local-0 && pgs_stop 0 && for n in 1 2 3; do wait_until "$n misses the store" grep "root.store: " err.$n || return 1; done &&
    says "root.store: " && figures "store_failing 1" &&
    pgs_continue 0 && await_beat && await_beat && await_beat && leads $lead 5 &&
    for n in 1 2 3; do wait_until "$n has the store" grep "root.store: it works again" err.$n || return 1; done
'
test_expect_success 'a store that is killed and started again makes no takeover' '
    : >err.$lead && pgs_kill 0 && wait_until "the leader misses it" grep "root.store: " err.$lead && pgs_run 0 && await_beat && await_beat && leads $lead 5
'
test_expect_success 'two candidates that claim at once: one leads, in one term' '
    await_standbys 2 && old=$lead && set -- $(others) && kill -STOP "$(pid $1)" "$(pid $2)" && kill "$(pid $old)" && left $old && is state released &&
    kill -CONT "$(pid $1)" "$(pid $2)" && await_term 6 && await_beat && is term 6 && candidate $old && await_standbys 2
'
test_expect_success 'idtree shutdown ends the candidates that stand by, too, and none claims' '
    idtree shutdown --uri "local://$T/run.$lead/local-0" && for n in 1 2 3; do left $n || return 1; done &&
    is term 6 && is state stopped && set -- $(others) && grep "the instance was shut down" err.$1 && grep "the instance was shut down" err.$2
'
test_expect_success 'a candidate that is started after a shutdown leads' '
    candidate 3 && await_leader 3 7 && kill "$(pid 3)" && left 3
'
test_expect_success 'only in term 1 the leader runs its command' '
    candidate 1 -o broker.quorum=1 touch $T/ran && wait_until "it leads" is state leads && await_beat && test ! -e ran && kill "$(pid 1)" && left 1 &&
    pgs_sql 0 "UPDATE idtree.role SET term = 0, state = '"'nobody'"'" && idtree-broker $(options 1) -o broker.quorum=1 touch $T/ran && test -e ran && is state stopped && is term 1
'
test_expect_success 'in an instance with one candidate rank 0 runs its command in each term' '
    for n in 2 3; do timeout 60 idtree-broker --standalone -o broker.modules= -o root.store="$(pgs_uri)" touch $T/ran.$n </dev/null && test -e ran.$n && is term $n || return 1; done &&
    pgs_sql 0 "UPDATE idtree.role SET term = 1"
'
test_expect_success 'without a second copy nobody leads, and the reason is said' '
    pgs_names 0 "" && candidate 2 && wait_until "it says why" grep "a commit would not be on a second server.*root.store-sync=trust" err.2 &&
    is term 1 && pgs_names 0 "ANY 1 (*)" && await_leader 2 2 && kill "$(pid 2)" && left 2
'
test_expect_success 'root.store-sync=trust does not ask' '
    pgs_names 0 "" && candidate 2 -o root.store-sync=trust && await_leader 2 3 && kill "$(pid 2)" && left 2 && pgs_names 0 "ANY 1 (*)"
'
test_expect_success 'a read-only store is not led; when it can be written, the candidate leads' '
    pgs_read_only 0 && candidate 1 && wait_until "it says why" grep "root.store: .*read-only" err.1 && is term 3 &&
    pgs_read_write 0 && await_leader 1 4
'
test_expect_success 'the copy is promoted: the leader keeps the role there' '
    await_beat && pgs_kill 0 && pgs_promote 1 "" && pgs_add_copy 0 1 && pgs_names 1 "ANY 1 (*)" && primary=1 && await_beat && is term 4 && is host 127.0.0.1 &&
    kill "$(pid 1)" && left 1 && is state released
'
has_new() { test "$(grep -c 'starts again' err.2)" -ge 1 && stand_by 1; }
test_expect_success 'SIGHUP makes a candidate that stands by start again with the files as they are now, if they are correct' '
    candidate 1 && wait_until "1 leads" is state leads && candidate 2 && await_standbys 1 &&
    sed "s/127.0.0.3:/127.0.0.4:/;s/^takeover.*/takeover = \"never\"/" conf >new && mv new conf && kill -HUP "$(pid 2)" && wait_until "2 refuses" grep "reload: .*root.takeover=never" err.2 &&
    file | sed "s/127.0.0.3:/127.0.0.4:/" >conf && kill -HUP "$(pid 2)" && wait_until "2 has the new files" has_new && kill "$(pid 2)" && left 2 && kill "$(pid 1)" && left 1
'
notify() { exec python3 "$IDTREE_SRCDIR/t/notify.py" "$@"; }
command -v python3 >/dev/null && grep -q "define HAVE_LIBSYSTEMD 1" "$IDTREE_BUILDDIR/config.h" && test_set_prereq NOTIFY
test_expect_success NOTIFY 'a candidate that stands by is ready for the service manager, names the leader, and feeds the watchdog' '
    candidate 1 && wait_until "it leads" is state leads && { WATCHDOG_USEC=200000 notify $T/told idtree-broker $(options 2) 2>err.2 & echo $! >pid.2; } &&
    wait_until "it is ready" grep -x "READY=1" told && grep -x "STATUS=stands by; 127.0.0.1 leads" told && wait_until "the watchdog is fed" holds "test \$(grep -c WATCHDOG=1 told) -ge 3" &&
    kill "$(pid 1)" && left 1 && wait_until "it serves" grep -q "STATUS=leads in term [0-9]*; rank 0 of 2 serves" told && test "$(grep -c READY=1 told)" = 1 && kill "$(pid 2)" && left 2
'
test_expect_success NOTIFY 'a candidate that cannot reach the store is not ready, and says why' '
    { notify $T/told.3 idtree-broker $(options 2) -o root.store=postgresql://idtree@127.0.0.1:1/idtree 2>err.2 & echo $! >pid.2; } &&
    wait_until "it says why" grep "STATUS=stands by; connection to server at .127.0.0.1.* failed: Connection refused" told.3 && ! grep READY=1 told.3 && kill "$(pid 2)" && left 2
'

# Leave nothing behind, even if a test failed.
end_all; pgs_end; rm -rf $T

test_done

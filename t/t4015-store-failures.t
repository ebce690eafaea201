#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4015-store-failures.t - a PostgreSQL that is full, refuses the password, has lost commits, or is that of another
# instance, under an instance with two candidates for rank 0 and a rank 1

# The test has its own mounts, which end with it, however it ends.
if test -z "$TEST_OWN_MOUNTS" && unshare -m true 2>/dev/null; then
    TEST_OWN_MOUNTS=1
    export TEST_OWN_MOUNTS
    exec unshare -m /bin/sh "$0" "$@"
fi
test_description='rank 0 reports what is wrong with its database, goes on as long as it may, and recovers by itself'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
T=/tmp/idtree-t4015.$$
mkdir -m 711 $T && cd $T && idtree keygen cert && mkdir disk || exit 1
cleanup "end_all; pgs_end; umount -l $T/disk 2>/dev/null; rm -rf $T"
test -z "$TEST_OWN_MOUNTS" || ! mount -t tmpfs -o size=1g,mode=755 tmpfs disk 2>/dev/null || test_set_prereq MOUNT
port=$((40000 + $$ % 2500 * 4))
TMPDIR=$T/disk pgs_start || exit 1
PGPASSFILE=$T/passwords
export PGPASSFILE
passwords() { (umask 077 && echo "*:*:*:idtree:$1" >passwords); }

conf() { # file, connection string, additional lines of the table root
    cat >"$1" <<END
broker.modules = "fluid,job-ingest"
rundir = "$T/run"
tbon.timeout = "2s"
fluid.lease = "5s"
fluid.forward-timeout = "30s"

[root]
store = "$2"
takeover = "1s"
$3

[cluster]
hosts = "root,127.0.0.9:$port"
root = "127.0.0.1,127.0.0.2:$port"
certificate = "$T/cert"
END
}
broker() { # number of the host, rank, file
    idtree-broker -c "$T/${3:-conf}" --rank="$2" --host="127.0.0.$1" -o "cluster.interface=127.0.0.$1" -o "rundir=$T/run.$1" 2>>"$T/err.$1" >>"$T/out.$1" </dev/null &
    echo $! >"$T/pid.$1"
}
pid() { cat "$T/pid.$1"; }
is_gone() { ! kill -0 "$(pid "$1")" 2>/dev/null; }
end() { kill -9 "$(pid "$1")"; wait "$(pid "$1")" 2>/dev/null || :; rm "$T/pid.$1"; }
end_all() { for n in 1 2 9; do kill -9 "$(pid $n)"; done 2>/dev/null; }
uri() { echo "local://$T/run.$1/local-$(test "$1" = 9 && echo 1 || echo 0)"; } # number of the host
ids() { idtree id new --uri "$(uri "$1")" --to dec >>made; }
serves() { wait_until "host $1 makes ids" ids "$1"; }
says() { idtree health --uri "$(uri "$1")" >health 2>&1 || :; grep -e "$2" health; }         # host, words
await_says() { wait_until "health says $2" says "$1" "$2"; }                                 # host, words
logs() { wait_until "host $1 says $2" grep -e "$2" "err.$1"; }                               # host, words
role() { pgs_sql "${primary:-0}" "SELECT $1 FROM idtree.role" "${db:-ids}"; }                # column
is() { test "$(role "$1")" = "$2"; }                                                         # column, value
leads() { is "host || state || term" "127.0.0.${1}leads$2" && idtree getattr --uri "$(uri "$1")" root.term | grep -qx "$2"; } # host, term
await() { wait_until "host $1 leads in term $2" leads "$1" "$2"; }
beats() { test "$(role beat)" -gt "$1"; }
await_beat() { wait_until "the leader gives a sign of life" beats "$(role beat)"; }
pgs_sql() { # number, statement, database
    PGOPTIONS='-c synchronous_commit=local -c default_transaction_read_only=off' \
        psql -qXAt -v ON_ERROR_STOP=1 "postgresql:///${3:-postgres}?user=postgres&host=$PGS&port=$(pgs_port "$1")" -c "$2"
}
stand_by() { test "$(pgs_sql 0 "SELECT count (*) FROM pg_stat_activity WHERE application_name = 'idtree role' AND query LIKE 'SELECT term%'")" -ge "$1"; } # number
await_standby() { wait_until "a candidate stands by" stand_by 1; }
no_id_twice() { test -z "$(sort made | uniq -d)"; }

# --- the password -----------------------------------------------------------------------------------

store() { pgs_uri | sed "s|/postgres?user=postgres|/${1:-ids}?user=idtree|"; } # database
# End all sessions of brokers, so that they log in again.
log_out() { pgs_sql 0 "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE usename = 'idtree'" >/dev/null; }

test_expect_success 'with a wrong password a candidate waits and says why; when the password is right, it leads' '
    pgs_sql 0 "CREATE USER idtree PASSWORD '\''right'\''" && pgs_sql 0 "CREATE DATABASE ids OWNER idtree" && pgs_sql 0 "CREATE DATABASE other OWNER idtree" &&
    for s in 0 1; do sed -i "1i local all idtree scram-sha-256" "$PGS/$s/pg_hba.conf" && pgs_sql $s "SELECT pg_reload_conf ()" || return 1; done &&
    passwords right && wait_until "the user may log in" idtree init --store "$(store)" --name ids && idtree init --store "$(store other)" --name other &&
    conf conf "$(store)" && conf conf.other "$(store other)" && conf conf.trust "$(store)" "store-sync = \"trust\"" &&
    passwords wrong && broker 1 0 && logs 1 "root.store: .*password authentication failed" && is term 0 && is state nobody && ! is_gone 1 &&
    passwords right && await 1 1 && logs 1 "it works again" && broker 9 1 && serves 9
'
test_expect_success 'if the password of a leader becomes wrong, it goes on and says so; no standby leads; when it is right, nothing has changed' '
    broker 2 0 && await_standby && await_beat && passwords wrong && log_out && await_says 1 "root.store: .*password authentication failed" && logs 2 "password authentication failed" &&
    serves 1 && serves 9 && leads 1 1 && passwords right && await_beat && leads 1 1 && wait_until "it says so no longer" holds "! says 1 password" && no_id_twice
'

test_expect_success 'fluid is loaded again at the leader: the leader keeps the role, and all ranks make ids' '
    for verb in remove load; do idtree module $verb --uri "$(uri 1)" fluid || return 1; done && serves 1 && serves 9 && await_beat && leads 1 1 && no_id_twice
'

# --- a full disk -------------------------------------------------------------------------------------

submit() { idtree job submit --uri "$(uri 1)" --key "$1" -- true "$2" >>jobs 2>err.submit; } # key, argument
long=$(head -c 100000 /dev/zero | tr '\0' x)
no_room() { mount -o "remount,size=$(df --output=used -k "$T/disk" | tail -n 1 | tr -d " ")k" "$T/disk"; }
room() { mount -o remount,size=1g "$T/disk"; }
stored() { pgs_sql 0 "SELECT count (*) FROM idtree.jobs WHERE key = '$1'" ids; }
ends() { test -e "$PGS/ended.0" || { pgs_sql 0 "SELECT pg_switch_wal ()" >/dev/null 2>&1; false; }; }
test_expect_success MOUNT 'on a full disk jobs are not stored, and health says so; ids are made, and the leader stays; with room jobs are stored' '
    submit small x && test "$(stored small)" = 1 && no_room && ! submit large $long && cat err.submit && grep "No space left on device" err.submit &&
    await_says 1 "jobs are not stored: .*No space left on device" && serves 1 && serves 9 && leads 1 1 &&
    room && wait_until "a job is stored" submit large $long && test "$(stored large)" = 1 && wait_until "health says so no longer" holds "! says 1 \"No space\"" && leads 1 1
'
test_expect_success MOUNT 'without room for its log the server ends: no standby leads; with room, and started again, the server has a leader by itself' '
    : >err.2 && no_room && wait_until "the server ends" ends && end 1 && logs 2 "root.store: .*failed" && serves 9 && room &&
    for s in 0 1; do test ! -e "$PGS/ended.$s" || pgs_run $s || return 1; done && await 2 2 && serves 9 && test "$(stored large)" = 1 && no_id_twice &&
    broker 1 0 && await_standby
'

# --- the wrong database ------------------------------------------------------------------------------

test_expect_success 'a candidate whose database is that of another instance ends when a rank comes; with the right one it leads' '
    end 1 && : >err.2 && end 2 && broker 2 0 conf.other && test_expect_code 3 wait "$(pid 2)" && grep "is of the instance .* (ids), rank 0 of .* (other)" err.2 &&
    broker 1 0 && wait_until "host 1 leads" holds "is host 127.0.0.1 && is state leads" && serves 9 && serves 1 && no_id_twice
'
peak() { pgs_sql 0 "SELECT peak_ms FROM idtree.horizon" ids; }
grown() { test "$(peak)" -gt "$1"; } # milliseconds
test_expect_success 'a copy that was behind is made the primary (root.store-sync=trust): rank 0 stores nothing there, and says so' '
    pgs_names 0 "" && end 1 && broker 1 0 conf.trust && await 1 "$(($(role term) + 1))" && serves 9 && pgs_kill 1 && wait_until "the copy is behind" grown "$(peak)" &&
    pgs_kill 0 && pgs_run 1 && pgs_promote 1 "" && primary=1 && await_says 1 "has lost commits that it had acknowledged" && no_id_twice
'
end_all; pgs_end; umount -l $T/disk 2>/dev/null; rm -rf $T
test_done

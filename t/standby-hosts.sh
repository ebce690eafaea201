# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# standby-hosts.sh - hosts for an instance whose rank 0 has three candidates, and whose state is in PostgreSQL
#
# Hosts 0 to 2 have a candidate and a rank each, host 3 has a rank, host 4 the primary and host 5 its synchronous copy.
# Before a script sources this file, it must source wait.sh and change to an empty folder $T that all users can search.
# It may set $lease (fluid.lease), $takeover (root.takeover) and $topo (tbon.topo), and replace more (), which prints more lines of the
# configuration, and on_candidate (), which runs a command on a host with a candidate.
# $T/root.HOST is the process id of a candidate; out.root.HOST and err.root.HOST contain its output.

# shellcheck disable=SC2034 # hosts.sh uses N and SPARES
N=5 SPARES=1
. "$IDTREE_SRCDIR/t/hosts.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

CANDIDATES='0 1 2' RANKS='1 2 3 4' LAST=3 # LAST is the host without a candidate
primary=0 copy=1                          # servers of PostgreSQL
lead=0                                    # the host of the leader, as last known
PGS_AUTOVACUUM=on                         # jobs that are deleted would fill the disk

standby_lack() {
    hosts_lack
    pgs_lack
}
host_of() { echo $(($1 - 1)); } # rank
pgs_address() { echo "10.77.0.$((14 + $1))"; }
pgs_in() { pgs_on=$1 && shift && on_host $((4 + pgs_on)) "$@"; }
more() { :; }
write_file() { # host
    {
        cat <<END
rundir = "$T/host$1/run"
statedir = "$T/host$1/disk"
broker.modules = "fluid,compressor,job-ingest"
tbon.topo = "${topo:-kary:3}"
tbon.timeout = "2s"
fluid.lease = "${lease:-60s}"
log-stderr-level = 5
END
        more
        cat <<END

[root]
store = "$([ -z "$PGS" ] || pgs_uri)"
takeover = "${takeover:-1s}"

[cluster]
hosts = "root,node[0-3]"
root = "node[0-2]:8061"
certificate = "$T/cert"
interface = "eth0"
END
    } >"$T/host$1/idtree.toml"
}

# --- processes ------------------------------------------------------------------------------------

on_candidate() { become_host "$@"; } # host, command...
candidate() {                        # host
    on_candidate "$1" idtree-broker --config "$T/host$1/idtree.toml" --rank=0 -o "rundir=$T/host$1/root" -o statedir= \
        >>"$T/out.root.$1" 2>>"$T/err.root.$1" </dev/null 6>&- &
    echo $! >"$T/root.$1"
}
start() { # host: start its rank
    on_candidate "$1" idtree-broker --config "$T/host$1/idtree.toml" >>"$T/out.$1" 2>>"$T/err.$1" </dev/null 6>&- &
    echo $! >"$T/pid.$1"
}
root() { cat "$T/root.$1"; }
root_uri() { echo "local://$T/host$1/root/local-0"; }
others() { for h in $CANDIDATES; do [ "$h" = "$1" ] || echo "$h"; done; } # host
start_all() {
    for h in $CANDIDATES; do candidate "$h"; done
    for h in $CANDIDATES $LAST; do start "$h"; done
    wait_whole && all_serve
}
all_serve() { for r in $RANKS; do wait_until "rank $r serves" serves "$r" || return 1; done; }

# --- the role -------------------------------------------------------------------------------------

role() { pgs_sql "$primary" "SELECT $1 FROM idtree.role"; }                     # column
leads() { timeout 10 idtree getattr --uri "$(root_uri "$1")" root.term >term; } # host
is_led() { [ "$(role state)" = leads ] && lead=$(role "substr (host, 5)") && leads "$lead"; }
stand_by() {
    [ "$(pgs_sql "$primary" "SELECT count (*) FROM pg_stat_activity WHERE application_name = 'idtree role' AND query LIKE 'SELECT term%'")" -ge 2 ]
}
wait_whole() { wait_until "one candidate leads" is_led && wait_until "two candidates stand by" stand_by; }

# --- begin and end --------------------------------------------------------------------------------

# The disk of the servers is small, so that it can be filled.
standby_make() {
    mkdir disk && mount -t tmpfs -o size=2g,mode=755 none disk && hosts_make && TMPDIR=$T/disk pgs_start && write_files &&
        on_host 0 idtree init --store "$(pgs_uri)" --name standby --epoch 2020-01-01T00:00:00Z && start_all
}
standby_end() {
    for f in "$T"/root.* "$T"/pid.*; do kill -CONT "$(cat "$f")"; kill -9 "$(cat "$f")"; done 2>/dev/null
    pgs_end
    hosts_end
    umount "$T/disk" 2>/dev/null
    rm -rf "$T"
}

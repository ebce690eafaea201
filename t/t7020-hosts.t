#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7020-hosts.t - a configured instance on 20 hosts: network namespaces, each with a name, an address, and a unit's command line
test_description='20 hosts from one file: started in any order, killed, replaced; no id comes twice'
. "$(dirname "$0")/idtree-sharness.sh"

if test "$(id -u)" != 0 || ! command -v ip >/dev/null || ! ip netns add idtree-try-$$ 2>/dev/null; then
    skip_all='only root can make network namespaces here'
    test_done
fi
ip netns del idtree-try-$$

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
N=20 SPARES=2
T=/tmp/idtree-t7020.$$
mkdir -m 700 $T && cd $T || exit 1
cleanup 'end_all'
bridge=idt$$

# --- hosts: node0 ... node21, of which the last two are spare ---------------------------------------

ns() { echo "idtree-$$-$1"; }
end_all() {
    for f in $T/pid.*; do kill -9 "$(cat "$f")"; done 2>/dev/null
    for i in $(seq 0 $((N + SPARES - 1))); do ip netns del "$(ns "$i")"; rm -rf /etc/netns/"$(ns "$i")"; done 2>/dev/null
    ip link del $bridge 2>/dev/null
    rm -rf $T
}
make_host() { # number
    ip netns add "$(ns "$1")" && mkdir -p /etc/netns/"$(ns "$1")" && mkdir -m 700 $T/host"$1" $T/host"$1"/run &&
        cp hosts /etc/netns/"$(ns "$1")"/hosts &&
        ip link add "$bridge-$1" type veth peer name eth0 netns "$(ns "$1")" && ip link set "$bridge-$1" master $bridge up &&
        ip -n "$(ns "$1")" addr add "10.77.0.$((10 + $1))/24" dev eth0 && ip -n "$(ns "$1")" link set eth0 up &&
        ip -n "$(ns "$1")" link set lo up
}
# What a host's unit runs, there: it is the same command line on all.
on_host() { (become_host "$@"); } # number, command...
become_host() {
    name=node$1 space=$(ns "$1")
    shift
    exec ip netns exec "$space" unshare --uts sh -c 'hostname "$1" && shift && exec "$@"' sh "$name" "$@"
}
start() { # number of a host
    become_host "$1" idtree-broker --config $T/host"$1"/idtree.toml >>$T/out."$1" 2>>$T/err."$1" </dev/null 6>&- &
    echo $! >$T/pid."$1"
}
pid() { cat $T/pid."$1"; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }
kill_host() { kill -9 "$(pid "$1")" && wait_until "host $1 is dead" is_gone "$(pid "$1")"; }

# --- the file, which is the same everywhere but for what is of a folder -----------------------------

list="node[0-$((N - 1))]"
write_file() { # host: its own folder stands for what is at one path on real hosts
    cat >$T/host"$1"/idtree.toml.new <<END
statedir = "$T/disk"
rundir = "$T/host$1/run"
tbon.topo = "kary:3"
tbon.timeout = "2s"
fluid.lease = "5s"

[cluster]
hosts = [ $(echo "$list" | sed 's/[^ ]*/"&",/g') ]
certificate = "$T/cert"
interface = "eth0"
END
    mv $T/host"$1"/idtree.toml.new $T/host"$1"/idtree.toml
}
write_files() { for i in $(seq 0 $((N + SPARES - 1))); do write_file "$i"; done; }
reload_all() { for f in $T/pid.*; do kill -HUP "$(cat "$f")" 2>/dev/null; done; true; }

# A socket in a folder is reached from any namespace.  Host of a rank: in $T/rank.RANK.
host_of() { cat $T/rank."$1"; }
uri() { echo "local://$T/host$(host_of "$1")/run/local-$1"; }
serves() { idtree id new --uri "$(uri "$1")" >>$T/ids; }
is_full() { test "$(idtree overlay status --uri "$(uri 0)" --json | jq -r ".overlay[0].status")" = full; }
wait_full() { wait_until "all $N are there" is_full; }
all_serve() { for r in $(seq 0 $((N - 1))); do wait_until "rank $r serves" serves "$r" || return 1; done; }

# Ids are asked for throughout, wherever a rank is: links lead to its socket.
follow() { ln -sfn "$T/host$(host_of "$1")/run/local-$1" $T/at/"$1"; }
load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" -c 20 "local://$T/at/" $(seq 0 $((N - 1))) <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() { exec 6>&-; wait $load_pid; load_rc=$?; echo "status $load_rc"; cat result; test $load_rc = 0 && ! grep "ids 0 " result; }

test_expect_success 'there are 22 hosts with names on one network' '
    mkdir -m 700 disk at && ip link add $bridge type bridge && ip link set $bridge up &&
    for i in $(seq 0 $((N + SPARES - 1))); do echo "10.77.0.$((10 + i)) node$i"; done >hosts &&
    for i in $(seq 0 $((N + SPARES - 1))); do make_host $i || return 1; done &&
    for r in $(seq 0 $((N - 1))); do echo $r >rank.$r && follow $r || return 1; done &&
    on_host 3 hostname >out && test "$(cat out)" = node3
'
test_expect_success 'started in random order they become one instance' '
    idtree keygen cert && write_files &&
    idtree init --statedir $T/disk &&
    for h in $(seq 0 $((N - 1)) | shuf); do start $h; done && wait_until "rank 0 serves" serves 0 && wait_full && all_serve &&
    idtree getattr --uri "$(uri 7)" hostlist >out && test "$(cat out)" = "node[0-19]" &&
    test "$(idtree getattr --uri "$(uri 7)" tbon.parent-endpoint)" = tcp://node2:8060
'
test_expect_success 'a host in no line of the file is told so' '
    test_expect_code 2 on_host 20 idtree-broker --config $T/host20/idtree.toml 2>err </dev/null &&
    grep "this host, node20, is not among the 20 of cluster.hosts" err
'
test_expect_success 'leaves, inner hosts and rank 0 are killed and come back, each to its place' '
    load_start && for h in 17 1 0; do kill_host $h && start $h && wait_until "rank $h serves" serves $h || return 1; done &&
    wait_full && wait_is_below() { IDTREE_URI=$(uri "$1") && export IDTREE_URI && wait_attached "$1" "$2"; } &&
    (wait_is_below 4 1) && (wait_is_below 17 5)
'
test_expect_success 'a host whose parent is down comes back below another, which nobody told of it' '
    kill_host 5 && kill_host 16 && start 16 && wait_until "rank 16 serves" serves 16 && start 5 && wait_full
'
test_expect_success 'a host is replaced: another name in its line, and the others read the file again' '
    kill_host 2 && list="node[0-1,20,3-19]" && write_files && reload_all && echo 20 >rank.2 && follow 2 && start 20 &&
    wait_until "rank 2 serves" serves 2 && wait_full && all_serve &&
    test "$(idtree getattr --uri "$(uri 7)" tbon.parent-endpoint)" = tcp://node20:8060 &&
    idtree getattr --uri "$(uri 0)" hostlist >out && test "$(cat out)" = "node[0-1,20,3-19]"
'
test_expect_success 'the old one of that line, started again, is told that it is in none' '
    test_expect_code 2 on_host 2 idtree-broker --config $T/host2/idtree.toml 2>err </dev/null && grep "node2, is not among" err
'
test_expect_success 'the host of rank 0 is replaced, with its disk moved' '
    kill_host 0 && list="node[21,1,20,3-19]" && write_files && reload_all && mv disk moved && mkdir -m 700 disk && mv moved/* disk && echo 21 >rank.0 && follow 0 && start 21 && wait_until "rank 0 serves" serves 0 && wait_full && all_serve
'
test_expect_success 'all are killed at once, and come back' '
    for h in 21 1 20 $(seq 3 19); do kill -9 $(pid $h) || return 1; done &&
    for h in 21 1 20 $(seq 3 19); do wait_until "host $h is dead" is_gone $(pid $h) || return 1; done &&
    for h in $(shuf -e 21 1 20 $(seq 3 19)); do start $h; done && wait_until "rank 0 serves" serves 0 && wait_full && all_serve
'
test_expect_success 'no id came twice, of any rank, throughout' '
    load_end && sort ids | uniq -d >twice && test ! -s twice
'
test_expect_success 'idtree shutdown ends them all' '
    idtree shutdown --uri "$(uri 0)" && for h in 21 1 20 $(seq 3 19); do wait_until "host $h ends" is_gone $(pid $h) || return 1; done
'

# Whatever failed: nothing is left behind.
end_all

test_done

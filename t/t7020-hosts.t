#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7020-hosts.t - a configured instance on 20 hosts: network namespaces, each with a name, an address, and the command
# line of a unit
test_description='20 hosts that share one file are started in any order, killed and replaced; no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"

N=20 SPARES=2
. "$IDTREE_SRCDIR/t/hosts.sh"

skip_all=$(hosts_lack)
test -z "$skip_all" || test_done
PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7020.$$
mkdir -m 700 $T && cd $T || exit 1
cleanup hosts_end

test_expect_success 'for the test 22 hosts with names are connected to one network' '
    hosts_make && on_host 3 hostname >out && test "$(cat out)" = node3
'
test_expect_success 'hosts that start in random order become one instance' '
    for h in $(all_ranks | shuf); do start $h; done && wait_until "rank 0 serves" serves 0 && wait_full && all_serve &&
    idtree getattr --uri "$(uri 7)" hostlist >out && test "$(cat out)" = "node[0-19]" &&
    test "$(idtree getattr --uri "$(uri 7)" tbon.parent-endpoint)" = tcp://node2:8060
'
test_expect_success 'the broker of a host that is not in the file is refused with a message' '
    test_expect_code 2 on_host 20 idtree-broker --config $T/host20/idtree.toml 2>err </dev/null &&
    grep "this host, node20, is not among the 20 of cluster.hosts" err
'
test_expect_success 'leaves, inner hosts and rank 0 are killed, restart, and return to their places in the tree' '
    load_start && for h in 17 1 0; do kill_host $h && start $h && wait_until "rank $h serves" serves $h || return 1; done &&
    wait_full && wait_is_below() { IDTREE_URI=$(uri "$1") && export IDTREE_URI && wait_attached "$1" "$2"; } &&
    (wait_is_below 4 1) && (wait_is_below 17 5)
'
test_expect_success 'a host whose parent is down attaches to the next ancestor when it restarts, without prior notice to that ancestor' '
    kill_host 5 && kill_host 16 && start 16 && wait_until "rank 16 serves" serves 16 && start 5 && wait_full
'
test_expect_success 'a host is replaced: its line in the file names another host, and the other brokers reload the file' '
    kill_host 2 && echo 20 >rank.2 && write_files && reload_all && start 20 &&
    wait_until "rank 2 serves" serves 2 && wait_full && all_serve &&
    test "$(idtree getattr --uri "$(uri 7)" tbon.parent-endpoint)" = tcp://node20:8060 &&
    idtree getattr --uri "$(uri 0)" hostlist >out && test "$(cat out)" = "node[0-1,20,3-19]"
'
test_expect_success 'the broker of a host that was replaced is refused when it starts again, because the file no longer names its host' '
    test_expect_code 2 on_host 2 idtree-broker --config $T/host2/idtree.toml 2>err </dev/null && grep "node2, is not among" err
'
test_expect_success 'the host of rank 0 is replaced, and its disk is moved' '
    kill_host 0 && echo 21 >rank.0 && write_files && reload_all && move_disk 0 21 && start 21 && wait_until "rank 0 serves" serves 0 && wait_full && all_serve
'
test_expect_success 'after a reload rank 0 sends no hello, because it has no parent' '
    ! grep "hello is refused" err.*
'
test_expect_success 'all hosts are killed at the same time and restart' '
    for h in 21 1 20 $(seq 3 19); do kill -9 $(pid $h) || return 1; done &&
    for h in 21 1 20 $(seq 3 19); do wait_until "host $h is dead" is_gone $(pid $h) || return 1; done &&
    for h in $(shuf -e 21 1 20 $(seq 3 19)); do start $h; done && wait_until "rank 0 serves" serves 0 && wait_full && all_serve
'
test_expect_success 'no rank has issued an id twice during the whole test' '
    test_when_finished "cat result" && load_end && ! grep "ids 0 " result && no_id_twice
'
test_expect_success 'idtree shutdown ends all brokers' '
    idtree shutdown --uri "$(uri 0)" && for h in 21 1 20 $(seq 3 19); do wait_until "host $h ends" is_gone $(pid $h) || return 1; done
'

# Leave nothing behind, even if a test failed.
hosts_end

test_done

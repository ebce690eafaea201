#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7023-ipv6.t - brokers at IPv6 addresses, and at one of several addresses of a name
test_description='brokers find each other by IPv6, and try each address of a name'
. "$(dirname "$0")/idtree-sharness.sh"

if ! grep -q "^00000000000000000000000000000001 " /proc/net/if_inet6 2>/dev/null; then
    skip_all='this machine has no ::1'
    test_done
fi
PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7023.$$
mkdir -m 700 $T $T/run $T/state && idtree init --statedir $T/state >$T/init && cd $T && idtree keygen cert || exit 1
cleanup "end_all; rm -rf $T"
port=$((20000 + $$ % 2500 * 4)) # of a process beside this one: others

file() { # three hosts, interface
    cat >$T/conf <<END
statedir = "$T/state"
rundir = "$T/run"
tbon.topo = "kary:1"

[cluster]
hosts = [ "$1", "$2", "$3" ]
certificate = "$T/cert"
interface = "$4"
END
}
# Only the started broker sees the names in $T/hosts.
start() { # rank
    if test -e $T/hosts; then
        unshare -m sh -c "mount --bind $T/hosts /etc/hosts && exec idtree-broker -c $T/conf --rank $1" 2>>$T/err."$1" >>$T/out."$1" </dev/null &
    else
        idtree-broker -c $T/conf --rank "$1" 2>>$T/err."$1" >>$T/out."$1" </dev/null &
    fi
    echo $! >$T/pid."$1"
}
end_all() { for r in 2 1 0; do kill -9 "$(cat $T/pid.$r)"; done 2>/dev/null; }
is_full() { test "$(idtree overlay status --json | jq -r ".overlay[0].status")" = full; }
all_make_ids() { for r in 0 1 2; do idtree id new --uri local://$T/run/local-$r || return 1; done; }
begin() { for r in 2 1 0; do start $r; done && wait_until "all are there" is_full && all_make_ids; }
end() { idtree shutdown && for r in 2 1 0; do wait "$(cat $T/pid.$r)" || return 1; done; }
at() { idtree getattr --uri local://$T/run/local-"$1" "$2"; }
IDTREE_URI=local://$T/run/local-0 && export IDTREE_URI

test_expect_success 'the hosts in the file may be IPv6 addresses' '
    file "[::1]:$port" "[0:0::1]:$((port + 1))" "[::1]:$((port + 2))" ::1 && begin &&
    test "$(at 2 tbon.parent-endpoint)" = "tcp://[::1]:$((port + 1))" && test "$(at 0 hostlist)" = "::[1,1,1]"
'
test_expect_success 'a reload recognizes another address of this host, and an address of another host' '
    file "[::1]:$port" "127.0.0.1:$((port + 1))" "[::1]:$((port + 2))" ::1 && idtree reload --uri local://$T/run/local-1 >out &&
    grep "^1: changed cluster.hosts" out && file "[::1]:$port" "[2001:db8::7]:$((port + 1))" "[::1]:$((port + 2))" ::1 &&
    test_must_fail idtree reload --uri local://$T/run/local-1 2>err && grep "rank 1 is now 2001:db8::7, and no longer 127.0.0.1" err &&
    { end_all; wait; } # the next ones have the same ports
'
printf "127.0.0.1 localhost\n::1 six\n::1 both\n127.0.0.1 both\n" >hosts.all
unshare -m sh -c "mount --bind $T/hosts.all /etc/hosts && getent ahosts six" >/dev/null 2>&1 && test_set_prereq NAMES
test_expect_success NAMES 'the name of a host may have only an IPv6 address' '
    cp hosts.all hosts && file "six:$port" "six:$((port + 1))" "six:$((port + 2))" "*" && begin &&
    test "$(at 1 tbon.parent-endpoint)" = "tcp://six:$port" && end
'
test_expect_success NAMES 'if the name of a host has several addresses, each is tried' '
    for listens in 127.0.0.1 ::1; do
        file "both:$port" "both:$((port + 1))" "both:$((port + 2))" $listens && begin && end || return 1
    done && rm hosts
'
test_expect_success 'brokers of idtree start listen at IPv6 addresses and announce them' '
    for at in "[::1]" "[::]" "*"; do
        idtree start -s 3 --topology kary:1 -o tbon.endpoint="tcp://$at:*" -- sh -c "idtree getattr -r 2 tbon.parent-endpoint && idtree id new" >out &&
        cat out && test "$(wc -l <out)" = 2 || return 1
        test "$at" != "[::1]" || grep "^tcp://.::1.:[0-9]*$" out || return 1
    done
'

# Leave nothing behind, even if a test failed.
end_all; rm -rf $T

test_done

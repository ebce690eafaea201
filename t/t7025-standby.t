#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7025-standby.t - a configured instance on hosts of its own whose rank 0 has three candidates and its state in
# PostgreSQL, with failures of hosts and of the network
test_description='when the host of rank 0 is lost, or cut off, another candidate becomes rank 0, and no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

# Hosts 0 to 2 have a candidate and a rank each, hosts 3 and 4 the database.
PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7025.$$ N=4 SPARES=1 candidates='0 1 2'
mkdir -m 711 $T && cd $T || exit 1
. "$IDTREE_SRCDIR/t/hosts.sh"
missing=$(hosts_lack)$(pgs_lack)
test -z "$missing" || { rm -rf $T; skip_all="$missing"; test_done; }
cleanup "end_all"
end_all() { for f in "$T"/root.*; do kill -CONT "$(cat "$f")"; kill -9 "$(cat "$f")"; done 2>/dev/null; hosts_end; pgs_end; }

pgs_address() { echo "10.77.0.$((13 + $1))"; }
pgs_in() { pgs_on=$1 && shift && on_host $((3 + pgs_on)) "$@"; }
roots() { echo "$candidates" | sed 's/[0-9]/node&/g; s/ /,/g'; }
write_file() { # host
    cat >"$T/host$1/idtree.toml" <<END
rundir = "$T/host$1/run"
statedir = "$T/host$1/disk"
broker.modules = "fluid"
tbon.topo = "kary:3"
tbon.timeout = "2s"
fluid.lease = "10s"

[root]
store = "$(test -z "$PGS" || pgs_uri)"
takeover = "1s"

[cluster]
hosts = "root,node[0-2]"
root = "$(roots):8061"
certificate = "$T/cert"
interface = "eth0"
END
}
host_of() { echo $(($1 - 1)); }
candidate() { # host, option...
    at=$1 && shift && mkdir -p -m 700 "$T/host$at/root"
    set -- "$at" idtree-broker --config "$T/host$at/idtree.toml" --rank=0 -o "rundir=$T/host$at/root" -o statedir= "$@"
    become_host "$@" >>"$T/out.root.$1" 2>>"$T/err.root.$1" </dev/null 6>&- &
    echo $! >"$T/root.$1"
}
root() { cat "$T/root.$1"; }
role() { pgs_sql 0 "SELECT $1 FROM idtree.role"; }
is() { test "$(role "$1")" = "$2"; }
leads_in() { is term "$1" && is state leads; }
await_term() { wait_until "one leads in term $1" leads_in "$1" && lead=$(role host) && lead=${lead#node}; }
beats() { test "$(role beat)" -gt "$1"; }
await_beat() { wait_until "the leader gives a sign of life" beats "$(role beat)"; }
stand_by() { test "$(pgs_sql 0 "SELECT count (*) FROM pg_stat_activity WHERE application_name = 'idtree role' AND query LIKE 'SELECT term%'")" -ge "$1"; }
await_standbys() { wait_until "$1 candidates stand by" stand_by "$1"; }
others() { for i in $candidates; do test $i = "$lead" || echo $i; done; }
sees() { idtree getattr --uri "$(uri "$1")" -r 0 root.term | grep -qx "$2"; } # rank, term
all_see() { for r in ${2:-1 2 3}; do wait_until "rank $r is below the root of term $1" sees "$r" "$1" && wait_until "rank $r serves" serves "$r" || return 1; done; }
cut() { for i in $2; do ip -n "$(ns "$1")" route "${3:-add}" blackhole "10.77.0.$((10 + i))/32" || return 1; done; } # host, from hosts, add or del

processes() { ip netns pids "$(ns "$1")"; }
is_empty() { test -z "$(processes "$1")"; }
power_off() { # host: nothing of it is left that could answer, or end a connection
    link "$1" down && processes "$1" | xargs -r kill -9 && wait_until "host $1 has no process" is_empty "$1" &&
        ip netns del "$(ns "$1")" && ip link del "$bridge-$1"
}
power_on() { # host: its disk is as it was
    mv "$T/host$1" "$T/off" && rm -r "/etc/netns/$(ns "$1")" && make_host "$1" && rm -r "$T/host$1" && mv "$T/off" "$T/host$1"
}

test_expect_success 'hosts, a primary with a copy on another host, three candidates and three ranks start' '
    hosts_make >made && pgs_start && on_host 0 idtree init --store "$(pgs_uri)" --name standby && write_files &&
    for i in 0 1 2; do candidate $i || return 1; done && await_term 1 && for i in 0 1 2; do start $i || return 1; done &&
    await_standbys 2 && all_see 1
'
test_expect_success 'rank 0 is killed: another host becomes rank 0, and all ranks are below it' '
    old=$lead && kill -9 "$(root $old)" && await_term 2 && test $lead != $old && all_see 2 && candidate $old && await_standbys 2
'
test_expect_success 'rank 0 is stopped: the same; when it continues, it ends with 76' '
    old=$lead && kill -STOP "$(root $old)" && await_term 3 && test $lead != $old && all_see 3 && kill -CONT "$(root $old)" && test_expect_code 76 wait "$(root $old)" && candidate $old && await_standbys 2
'
test_expect_success 'the host of rank 0 is cut off from all others: the same; its rank returns when the host does' '
    old=$lead && set -- $(others) && link $old down && await_term 4 && test $lead != $old && all_see 4 "$(($1 + 1)) $(($2 + 1))" && link $old up && test_expect_code 76 wait "$(root $old)" &&
    all_see 4 && candidate $old && await_standbys 2
'
test_expect_success 'the host of rank 0 loses its power: the same; when it has power, it has a rank and a candidate again' '
    old=$lead && set -- $(others) && power_off $old && await_term 5 && test $lead != $old && all_see 5 "$(($1 + 1)) $(($2 + 1))" &&
    power_on $old && candidate $old && start $old && await_standbys 2 && all_see 5
'
test_expect_success 'the host of rank 0 is cut off from the store only: it ends when another host serves' '
    old=$lead && cut $old "3 4" && await_term 6 && test $lead != $old && test_expect_code 76 wait "$(root $old)" && grep "the store does not answer, and another host is rank 0" err.root.$old &&
    cut $old "3 4" del && all_see 6 && candidate $old && await_standbys 2
'
test_expect_success 'the host of rank 0 is cut off from the other candidates only: nothing happens' '
    set -- $(others) && cut $lead "$1 $2" && await_beat && await_beat && await_beat && await_beat && await_beat && await_beat && await_beat && await_beat && is term 6 && cut $lead "$1 $2" del && all_see 6
'
test_expect_success 'another rank releases rank 0, and is answered: another host becomes rank 0' '
    old=$lead && set -- $(others) && idtree root release --uri "$(uri $(($1 + 1)))" && test_expect_code 76 wait "$(root $old)" && await_term 7 && test $lead != $old && all_see 7 && candidate $old && await_standbys 2
'
test_expect_success 'the network splits rank 0 and another rank from the store and the rest: they make ids until the horizon; whole again, all are below the new rank 0' '
    old=$lead && set -- $(others) && cut $old "$2 3 4" && cut $1 "$2 3 4" && await_term 8 && test $lead = $2 && all_see 8 "$(($2 + 1))" && sees $(($1 + 1)) 7 && serves $(($1 + 1)) && serves $((old + 1)) &&
    test_expect_code 76 wait "$(root $old)" && grep "the time that this one may grant is over" err.root.$old &&
    cut $old "$2 3 4" del && cut $1 "$2 3 4" del && all_see 8 && candidate $old && await_standbys 2
'
test_expect_success 'the database host is lost, and its copy is promoted: the role stays, and all ranks serve' '
    await_beat && pgs_kill 0 && link 3 down && pgs_promote 1 "" && role() { pgs_sql 1 "SELECT $1 FROM idtree.role"; } && await_beat && is term 8 && all_see 8 &&
    link 3 up && pgs_add_copy 0 1 && pgs_names 1 "ANY 1 (*)" && await_beat && is term 8
'
test_expect_success 'without a store and without another candidate, rank 0 ends when its horizon is past; when the store is back, it leads again' '
    set -- $(others) && kill "$(root $1)" "$(root $2)" && wait "$(root $1)" && wait "$(root $2)" && cut $lead "3 4" && test_expect_code 76 wait "$(root $lead)" &&
    grep "the time that this one may grant is over" err.root.$lead && cut $lead "3 4" del && candidate $lead && await_term 9 && candidate $1 && candidate $2 && all_see 9 && await_beat
'
test_expect_success 'idtree shutdown ends all ranks and all candidates with 0, and no id was issued twice' '
    idtree shutdown --uri "local://$T/host$lead/root/local-0" && for i in $candidates; do wait "$(root $i)" || return 1; done && for i in 0 1 2; do wait "$(pid $i)" || return 1; done &&
    is state stopped && wc -l <ids && no_id_twice
'

# Leave nothing behind, even if a test failed.
end_all

test_done

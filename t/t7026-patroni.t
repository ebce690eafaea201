#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7026-patroni.t - an instance whose state is in PostgreSQL by Patroni and etcd, as idtree-operations(7) sets them up,
# on three hosts that are also the candidates of rank 0; the host of the primary and of rank 0 is lost
test_description='an instance survives the loss of the host of rank 0 and of the primary of PostgreSQL'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"
. "$IDTREE_SRCDIR/t/hosts.sh"

PATH=$IDTREE_BUILDDIR/src/broker/.libs:$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(hosts_lack)$(pgs_lack)
for command in patroni patronictl etcd etcdctl; do
    command -v $command >/dev/null || missing="$command is not installed"
done
# Debian 13 has patroni without a client for etcd.
test -d /usr/lib/python3/dist-packages/etcd || missing='Patroni has no client for etcd'
id postgres >/dev/null 2>&1 || missing='there is no user postgres'
test -z "$missing" || { skip_all="$missing"; test_done; }

N=0 SPARES=5 # node0, node1, node2: candidates; node3, node4: ranks 1 and 2
T=/tmp/idtree-t7026.$$
P=/tmp/idtree-t7026-pg.$$ # of the user postgres
mkdir -m 700 $T && mkdir $P && chmod 755 $P && chown postgres $P && cd $T && idtree keygen cert || exit 1
cleanup "lose_all; hosts_end; rm -rf $P"
as_postgres() { env -C / setpriv --reuid postgres --regid postgres --init-groups "$@"; }
processes() { ip netns pids "$(ns "$1")"; }
is_empty() { test -z "$(processes "$1")"; }
lose() { # number: the host is lost, with its cable
    link "$1" down
    processes "$1" | xargs -r kill -9 && wait_until "node$1 has no process" is_empty "$1"
}
lose_all() { for i in $(all_hosts); do lose "$i"; done >/dev/null 2>&1; }

# --- Patroni and etcd: the block of the manual, with these names and folders ------------------------

page=$IDTREE_SRCDIR/doc/man/idtree-operations.7
client=etcd
patroni --version | grep -Eq " (1|2|3\.0)\." || client=etcd3
block() { # number
    sed -n '/^cat >.etc.default.etcd/,/^chown postgres/p' "$page" | sed -e '/^chown/d; s/\\-/-/g; s/\\(dq/"/g' \
        -e 's/\bn\([012]\)\b/node\1/g' -e "s|/etc/default/etcd|$P/$1/etcd.env|; s|/etc/patroni/config.yml|$P/$1/patroni.yml|" \
        -e "s|/var/lib/etcd/idtree|$P/$1/etcd|; s|/var/lib/postgresql/idtree|$P/$1/data|; s|/usr/lib/postgresql/15/bin|$pgs_bin|" \
        -e "s|^etcd:|$client:|; s|^postgresql:|&\n  pgpass: $P/$1/pgpass\n  parameters: {unix_socket_directories: $P/$1}|"
}
configure() { # number
    as_postgres mkdir $P/"$1" && block "$1" >block && on_host "$1" sh -e block && chown postgres $P/"$1"/* && chmod 0400 $P/"$1"/patroni.yml
}
start_etcd() { # number
    # shellcheck disable=SC2046
    become_host "$1" env -C / ETCD_NAME=node"$1" $(cat $P/"$1"/etcd.env) setpriv --reuid postgres --regid postgres --init-groups etcd >>$T/etcd."$1" 2>&1 </dev/null 6>&- &
}
start_patroni() { # number
    become_host "$1" env -C / HOME=$P/"$1" setpriv --reuid postgres --regid postgres --init-groups patroni $P/"$1"/patroni.yml >>$T/patroni."$1" 2>&1 </dev/null 6>&- &
}
psql_at() { as_postgres psql -qXAt -v ON_ERROR_STOP=1 -h $P/"$1" -U postgres -c "$2" "$3"; } # number, statement, database
etcd_is_up() { on_host 0 env ETCDCTL_API=3 etcdctl --endpoints=node0:2379,node1:2379,node2:2379 endpoint health; }
members() { on_host "${1:-0}" patronictl -c $P/"${1:-0}"/patroni.yml list; }
is_complete() { # number of a host that is up: all three are there, and a copy may be promoted
    members "$1" >list && test "$(grep -c " running \| streaming " list)" = 3 && grep Leader list && grep -E "Sync Standby|Quorum Standby" list
}
primary() { for i in 0 1 2; do test "$(psql_at $i "SELECT pg_is_in_recovery ()" postgres 2>/dev/null)" = f && echo $i && return; done; return 1; }

# --- the instance ------------------------------------------------------------------------------------

# The first command or file of the chapter that has this text, with the names of this test.
manual() { # text
    sed -n '/^.SH A STANDBY/,/^.SH STATEDIR/p' "$page" |
        sed -e 's/\\-/-/g; s/\\(dq/"/g; s/\\e$/\\/' -e 's/\bn\([012]\)\b/node\1/g; s/n\[0-2\]/node[0-2]/; s/n\[0-19\]/node[3-4]/' \
            -e "s|/etc/idtree/idtree.conf|$T/conf|; s|/etc/idtree/idtree.cert|$T/cert|; s|/etc/idtree/pgpass|$T/pgpass|" \
            -e "s/runuser -u idtree -- //; s/install -o idtree/install/" |
        awk -v text="$1" '/^\.EX/ { b = ""; next } /^\.EE/ && index (b, text) { printf "%s", b; exit } { b = b $0 "\n" }' >block && cat block && test -s block
}
store=postgresql://idtree@node0,node1,node2/idtree
export PGPASSFILE=$T/pgpass
manual 'root = "' >/dev/null && printf 'broker.modules = "fluid,flake,compressor,job-ingest"\ntbon.timeout = "2s"\n' >conf.new &&
    sh -e block && cat conf >>conf.new && mv conf.new conf && echo 'interface = "eth0"' >>conf
candidate() { become_host "$1" idtree-broker -c $T/conf --rank=0 -o rundir=$T/host"$1"/run >>out."$1" 2>>err."$1" </dev/null 6>&- & }
rank() { become_host $(($1 + 2)) idtree-broker -c $T/conf -o rundir=$T/host$(($1 + 2))/run >>out.$(($1 + 2)) 2>>err.$(($1 + 2)) </dev/null 6>&- & }
at() { echo "local://$T/host$(($1 + 2))/run/local-$1"; } # rank
ids() { idtree id new --uri "$(at "$1")" -n 100 --to dec >>made; }
submit() { idtree job submit --uri "$(at "$1")" --key "$2" -n 20 -- true >"$2"; } # rank, key: the same key gives the same jobs
role() { psql_at "$(primary)" "SELECT $1 FROM idtree.role" idtree; }
leads() { test "$(role host)" = "node$1" && test "$(role state)" = leads; }
other_leads() { test "$(role host)" != "node$1" && test "$(role state)" = leads; }
are_three() { test "$(psql_at "$(primary)" "SELECT count (DISTINCT client_addr) FROM pg_stat_activity WHERE application_name = 'idtree role'" postgres)" = 3; }
listed() { idtree job list --uri "$(at "$1")" --to f58 | sed 1d | cut -d" " -f1; }

test_expect_success 'etcd and Patroni start with the configuration of the manual' '
    mkdir -p /etc/netns && ip link add $bridge type bridge && ip link set $bridge up &&
    for i in $(all_hosts); do echo "10.77.0.$((10 + i)) node$i"; done >hosts && for i in $(all_hosts); do make_host $i || return 1; done &&
    for i in 0 1 2; do configure $i && start_etcd $i || return 1; done && wait_until "etcd is up" etcd_is_up &&
    for i in 0 1 2; do start_patroni $i || return 1; done && wait_until "a leader, a sync standby and a replica are up" is_complete 0 && cat list
'
test_expect_success 'an instance makes ids, a document and jobs, with rank 0 on the host of the primary' '
    first=$(primary) && manual "CREATE ROLE" && sed -i "s|runuser -u postgres --|as_postgres|; s|psql|psql -h $P/$first|" block && . ./block &&
    manual ":SECRET3" && sh -e block && manual "idtree init --store" && on_host 3 sh -ex block && on_host 4 idtree state show --store $store &&
    candidate $first && wait_until "node$first leads" leads $first && for i in 0 1 2; do test $i = $first || candidate $i || return 1; done &&
    rank 1 && rank 2 && wait_until "rank 1 serves" ids 1 && wait_until "rank 2 serves" ids 2 &&
    idtree doc open --uri "$(at 1)" drawing && idtree doc ids --uri "$(at 1)" -u -n 50 drawing >document &&
    wait_until "rank 1 stores jobs" submit 1 one && wait_until "rank 2 stores jobs" submit 2 two
'
test_expect_success 'the host of both is lost: ranks make ids meanwhile, a copy becomes the primary, and another candidate rank 0' '
    before=$(role term) && lose $first && ids 1 && ids 2 && wait_until "a copy is the primary" primary && ids 1 &&
    wait_until "another host leads" other_leads $first && role "term, host" && term=$(role term) && test "$term" -gt "$before" && second=$(role host | tr -d "[:alpha:]") &&
    wait_until "rank 1 stores jobs" submit 1 three && wait_until "rank 2 stores jobs" submit 2 four && ids 1 && ids 2
'
test_expect_success 'no id was issued twice, and each job and each id of the document is there once' '
    test -z "$(sort made | uniq -d)" && sort one two three four >wanted && test "$(wc -l <wanted)" = 80 && test -z "$(uniq -d wanted)" &&
    wait_until "rank 2 lists all jobs" holds "test \"\$(listed 2 | wc -l)\" = 80" && listed 2 >got && sort got | test_cmp wanted - &&
    idtree doc open --uri "$(at 2)" drawing && while read -r id uuid; do
        idtree id show --uri "$(at 2)" --json "$id" | grep "\"uuid\":\"$uuid\"" || return 1
    done <document && idtree doc ids --uri "$(at 1)" -u -n 50 drawing >more && cut -f1 document more | sort | uniq -d >twice && test_must_be_empty twice
'
test_expect_success 'the host comes back: its PostgreSQL is a copy, and its candidate stands by' '
    link $first up && start_etcd $first && start_patroni $first && wait_until "all three servers are there" is_complete $(primary) && cat list &&
    candidate $first && wait_until "all candidates look at the role" are_three && test "$(role term)" -ge "$term" && wait_until "one leads" holds "test \"\$(role state)\" = leads" && second=$(role host | tr -d "[:alpha:]") &&
    ids 1 && ids 2 && test -z "$(sort made | uniq -d)"
'
test_expect_success 'idtree shutdown ends all candidates' '
    idtree shutdown --uri local://$T/host$second/run/local-0 && for i in 3 4; do wait_until "node$i has ended" is_empty $i || return 1; done &&
    for i in 0 1 2; do wait_until "the candidate of node$i has ended" holds "! processes $i | xargs -r ps -o comm= -p | grep idtree" || return 1; done
'
shown() { on_host 4 idtree state show --store $store | sed -n "s/^$1  *//p"; } # field
test_expect_success 'the whole database is lost: with the commands of the manual the instance continues above all ids' '
    server=$(primary) && uuid=$(shown uuid) && epoch=$(shown epoch) && test -n "$uuid" && test -n "$epoch" &&
    psql_at $server "DROP DATABASE idtree WITH (FORCE)" postgres && psql_at $server "CREATE DATABASE idtree OWNER idtree" postgres &&
    manual "--uuid" && sed -i "s/UUID/$uuid/; s/EPOCH/$epoch/" block && on_host 4 sh -ex block && test "$(shown uuid)" = "$uuid" &&
    manual "recover-horizon" && sed -i "s/DATE/$(date -u -d "1 day" +%FT%TZ)/" block && on_host 4 timeout 60 sh -ex block &&
    on_host 4 idtree broker -o root.store=$store idtree id new --to dec >after && test "$(cat after)" -gt "$(sort -n made | tail -n 1)"
'

lose_all
hosts_end
rm -rf $P
test_done

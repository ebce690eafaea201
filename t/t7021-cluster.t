#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7021-cluster.t - brokers of a configured instance on one host, each with its own port
test_description='brokers find each other by a file, wait for each other, reload the file, and refuse errors in the file'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
T=/tmp/idtree-t7021.$$
mkdir -m 700 $T $T/run $T/state && idtree init --statedir $T/state >$T/init && cd $T || exit 1
cleanup "end_all; rm -rf $T"
port=$((20000 + $$ % 2500 * 4)) # of a process beside this one: others

# Ports of one host replace hosts: rank R is at port + R.
file() { # host of rank 1
    cat <<END
statedir = "$T/state"
rundir = "$T/run"
tbon.timeout = "2s"

[cluster]
hosts = [
    "127.0.0.1:$port", # rank 0
    "$1:$((port + 1))",
    "127.0.0.1:$((port + 2))",
]
certificate = "$T/cert"

[tbon]
topo = "kary:1"
END
}
start() { # rank, option...
    rank=$1
    shift
    idtree-broker -c $T/conf --rank "$rank" "$@" 2>>$T/err."$rank" >>$T/out."$rank" </dev/null &
    echo $! >$T/pid."$rank"
}
pid() { cat $T/pid.$1; }
is_gone() { ! kill -0 "$1"; }
# Then its ports are free.
die() { kill -9 "$(pid "$1")" && wait_until "rank $1 is dead" is_gone "$(pid "$1")"; }
end_all() { for r in 0 1 2; do kill -9 "$(cat $T/pid.$r)"; done 2>/dev/null; }
uri() { echo "local://$T/run/local-$1"; }
at() { IDTREE_URI=$(uri "$1") && export IDTREE_URI; }
is_full() { test "$(idtree overlay status --json | jq -r ".overlay[0].status")" = full; }
says() { grep -q "$2" $T/err.$1; }

test_expect_success 'idtree keygen makes a certificate once, readable only by its owner, in the format of CZMQ' '
    idtree keygen --name "my instance" cert && test "$(stat -c %a cert)" = 400 && cp cert before &&
    grep "name = .my instance" cert && grep -cE "(public|secret)-key = " cert >n && test "$(cat n)" = 2 &&
    test_must_fail idtree keygen cert 2>err && grep "cert exists" err && cmp cert before &&
    test_must_fail idtree keygen nowhere/cert 2>err && grep "nowhere/cert: No such file" err &&
    test_must_fail idtree keygen --name "a\"b" other 2>err && grep "the name .a.b. must have" err &&
    test_expect_code 2 idtree keygen && test ! -e other
'
refused() { # option of idtree-broker..., what it says
    for said; do :; done
    test_expect_code 2 timeout 60 idtree-broker -c conf "$1" "$2" true 2>err </dev/null && grep -- "$said" err &&
        test "$(wc -l <err)" = 1 || { cat err; return 1; }
}
test_expect_success 'a certificate is refused if others can read it, if it belongs to another user, or if it is malformed' '
    file 127.0.0.1 >conf &&
    for mode in 440 404 604; do
        chmod $mode cert && refused --rank 1 "only its owner may read it, so chmod 0400 $T/cert" || return 1
    done && chmod 400 cert &&
    for bad in "" "curve" "$(sed "s/secret-key = .../&x/" cert)" "$(yes | head -c 5000)"; do
        echo "$bad" >wrong && chmod 400 wrong &&
        refused --rank=1 -ocluster.certificate=$T/wrong "wrong has no secret-key and its public-key" || return 1; rm -f wrong
    done &&
    echo hello >wrong && chmod 644 wrong && refused --rank=1 -ocluster.certificate=$T/wrong "wrong has no secret-key and its public-key" && rm -f wrong &&
    refused --rank=1 -ocluster.certificate=$T "is not a certificate file" &&
    { test "$(id -u)" != 0 || { cp cert wrong && chown 1 wrong && refused --rank=1 -ocluster.certificate=$T/wrong "belongs to user 1, not to user 0"; }; }
'
test_expect_success 'an error in the file is reported with the line, the key and the allowed values' '
    refused --host=nosuch -olog-level=7 "nosuch, is not among the 3 of cluster.hosts" &&
    refused --host=127.0.0.1 -olog-level=7 "is 3 of cluster.hosts, ranks 0 and others: select one with --rank" &&
    refused --rank=3 -olog-level=7 "rank 3: cluster.hosts has ranks 0 to 2" &&
    sed "s/kary:1/kary:0/" conf >a && mv conf good && mv a conf && refused --rank=0 -olog-level=7 "fanout must be a number" &&
    sed "s/:$port/:x/" good >conf && refused --rank=0 -olog-level=7 "conf:6: attribute cluster.hosts=.*has no port" &&
    sed "s/certificate = .*/port = 0/" good >conf && refused --rank=0 -olog-level=7 "conf:11: attribute cluster.port=0: must be a number from 1" &&
    for other in "access.allow-guest-user = maybe" "access.allow-root-owner = 2" "statedir.allow-network = \"tru\"" "local.sockets = x" \
        "access.group = \"no-such-group\"" "log-level = 99" "fluid.lease = 1ms" "fluid.share = true" "fluid.attach = true" "broker.quorum = 9"; do
        name=${other%% *} && value=${other#* = } && { echo "$other" && cat good; } >conf && test_expect_code 2 timeout 60 idtree-broker -c conf --rank 0 true 2>err </dev/null &&
            cat err && grep "conf:1: .*$name=$(echo "$value" | tr -d "\""): " err || return 1
    done &&
    { echo "broker.modules = \"job-ingest\"" && echo "ingest.allow-guests = 5" && cat good; } >conf && refused --rank=0 -olog-level=7 "conf:2: module job-ingest: ingest.allow-guests=5: must be true or false" &&
    sed "s/certificate = .*/certificates = 0/" good >conf && refused --rank=0 -olog-level=7 "name the file that idtree keygen made" &&
    sed "s/^hosts/\[\[x\]\]/" good >conf && refused --rank=0 -olog-level=7 "conf:6: lists of tables" && mv good conf &&
    test_expect_code 2 idtree-broker --rank 0 true 2>err && grep "cluster.hosts is missing" err &&
    test_expect_code 2 idtree-broker --rank x true 2>err && grep "rank x: must be a number" err
'
test_expect_success 'brokers start in any order, and the first ones wait and serve no client until all have joined' '
    start 2 -o log-stderr-level=5 && start 1 && wait_until "rank 2 listens" test -S run/local-2 &&
    test_must_fail idtree id new --uri "$(uri 2)" && start 0 && at 0 && wait_until "rank 0 serves" wait_make_id &&
    wait_until "all are there" is_full && at 2 && wait_served 2 && idtree getattr hostlist >list &&
    echo "127.0.0.[1,1,1]" >want && test_cmp want list && test "$(idtree getattr broker.boot-method)" = config
'
test_expect_success 'an error is shown once on stderr of its own host and of rank 0; a message below warning is shown on neither' '
    at 1 && idtree logger -n disk -s info "is warm" && idtree logger -n disk -s err "is bad" &&
    wait_until "rank 0 shows it" says 0 "^idtree: disk.1.: is bad$" && says 1 "^idtree: disk.1.: is bad$" &&
    test "$(cat err.0 err.1 | grep -c "disk.1.")" = 2 && test_must_fail says 2 "disk"
'
# Its parent is rank 1. Rank 0, which has no record of the first broker, does not accept the second one either.
test_expect_success 'a second broker of a rank is refused and attaches to no other rank, and both brokers log this' '
    mkdir -m 700 run2 && { idtree-broker -c conf --rank 2 -o rundir=$T/run2 -o log-stderr-level=6 2>err.second >out & } &&
    second=$! && wait_until "it is told" grep "does not accept this broker yet: rank 2 is served by .* on 127.0.0.1" err.second &&
    at 1 && wait_until "so is the parent, again" holds "test \$(idtree dmesg | grep -c \"a hello is refused: rank 2 is served by\") -ge 3" &&
    test_must_fail grep "attached to" err.second && test_must_fail idtree id new --uri local://$T/run2/local-2 &&
    kill $second && wait $second && wait_served 2
'
parent_refused() { test "$(idtree dmesg --uri "$(uri 1)" | grep -c "a hello is refused: rank 2 is served by")" -gt "$1"; }
first_said() { idtree dmesg --uri "$(uri 2)" | grep -c "the parent does not accept this broker:"; }
# Not again before 10 s have passed, which can happen on a busy machine.
test_expect_success 'a broker that was silent and finds another broker in its place waits, and logs this every 10 s at most' '
    mkdir -p -m 700 run2 && { idtree-broker -c conf --rank 2 -o rundir=$T/run2 -o log-stderr-level=6 2>err.second >out & } &&
    second=$! && wait_until "it is told" grep "does not accept this broker yet" err.second && kill -STOP "$(pid 2)" &&
    wait_until "the second serves" idtree id new --uri local://$T/run2/local-2 && since=$(wait_now) && kill -CONT "$(pid 2)" &&
    wait_until "the first is told" first_said && n=$(idtree dmesg --uri "$(uri 1)" | grep -c "a hello is refused") &&
    wait_until "more than once" parent_refused $((n + 2)) && test "$(first_said)" -le $((1 + ($(wait_now) - since) / 10)) &&
    kill $second && wait $second && at 2 && wait_attached 2 1 && wait_served 2
'
holds_lease() { idtree info | grep "^fluid state  *active"; } # it makes ids when rank 0 is gone
test_expect_success 'while a broker is stopped its descendants continue to serve' '
    kill "$(pid 1)" && wait_until "it ends" is_gone "$(pid 1)" && at 2 && wait_attached 2 0 && wait_served 2 && start 1 &&
    wait_attached 2 1 && wait_until "rank 2 holds a lease" holds_lease && kill "$(pid 0)" && wait_until "rank 0 ends" is_gone "$(pid 0)" && kill -0 "$(pid 1)" && kill -0 "$(pid 2)" &&
    idtree id new && start 0 && at 0 && wait_until "all are there" is_full && idtree id new -n 3
'
test_expect_success 'a broker that is killed returns to its parent, whether the parent is running or not' '
    die 2 && die 1 && start 2 && at 2 && wait_attached 2 0 && wait_served 2 && start 1 && wait_attached 2 1
'
test_expect_success 'a reload of an unchanged file reports nothing new' '
    idtree reload --all >out && printf "%s: nothing new\n" 0 1 2 >want && test_cmp want out
'
test_expect_success 'a reload reports which attributes have changed and which need a restart; options of the command line stay in effect' '
    { echo "log-level = 5"; echo "fluid.lease = 9s"; sed "s/\[tbon\]/&\nprefertcp = true/" conf; } >conf.new && mv conf.new conf &&
    kill "$(pid 2)" && wait_until "it ends" is_gone "$(pid 2)" && start 2 -o log-level=6 && at 2 && wait_attached 2 1 &&
    idtree reload --all >out && cat out &&
    echo "0: changed log-level after-a-restart fluid.lease tbon.prefertcp" >want && head -n 1 out >got && test_cmp want got &&
    echo "2: nothing new" >want && tail -n 1 out >got && test_cmp want got &&
    test "$(idtree getattr log-level)" = 6 && at 1 && test "$(idtree getattr log-level)" = 5 &&
    idtree reload --json -r 1 >out && jq -e ".later | index(\"fluid.lease\")" out
'
test_expect_success 'an attribute that is removed from the file returns to its default, or waits for a restart' '
    at 1 && grep -v "^log-level\|^fluid.lease\|prefertcp" conf >conf.new && mv conf.new conf && idtree reload >out && cat out &&
    echo "1: changed log-level" >want && test_cmp want out && test "$(idtree getattr log-level)" = 7 &&
    at 2 && idtree reload >out && cat out && echo "2: after-a-restart fluid.lease tbon.prefertcp" >want && test_cmp want out &&
    test "$(idtree getattr log-level)" = 6 && at 0 && idtree reload
'
test_expect_success 'a reload of a malformed file changes nothing, and SIGHUP with a malformed file ends no broker' '
    cp conf good && echo "[" >>conf && test_must_fail idtree reload 2>err && grep "conf:[0-9]*: must read" err &&
    kill -HUP "$(pid 1)" && wait_until "it says so" says 1 "reload: .*conf:[0-9]*: must read" && idtree id new &&
    sed "s/^hosts = .*/&\"n4\",/" good >conf && test_must_fail idtree reload 2>err &&
    grep "has 4 hosts, and had 3" err && long=$(printf %250s | tr " " n) &&
    sed "s/^certificate = .*/&\naddress = \"%h.$long\"/" good >conf && test_must_fail idtree reload 2>err &&
    grep "cluster.address makes too long a name of 127.0.0.1" err && test "$(idtree getattr hostlist)" = "127.0.0.[1,1,1]" &&
    mv good conf && idtree reload
'
test_expect_success 'a reload refuses an unknown attribute, as a start does; it accepts an attribute that can be applied only by a restart' '
    cp conf good && { echo "fluid.leese = 9s" && cat good; } >conf && test_must_fail idtree reload 2>err && cat err && grep "conf:1: unknown attribute .fluid.leese." err &&
    test_must_fail idtree getattr nosuch.thing && { echo "nosuch.thing = 1" && cat good; } >conf && test_must_fail idtree reload 2>err && grep "conf:1: unknown attribute .nosuch.thing." err &&
    for line in "uid.node = \"n\"" "fluid.recover-horizon = 2030-01-01" "ingest.max-jobs = 5" "compressor.compact = 9" "access.group = 5" "flake.max-waiting = 9" \
        "module.path = /x" "local.sockets = 0" "broker.quorum-timeout = 5s" "log-stderr-level = 3" "tbon.prefertcp = 1" "broker.boot = auto" "statedir.allow-network = 1"; do
        case $line in ingest*) modules="broker.modules = \"fluid,job-ingest\"" ;; *) modules="# none" ;; esac
        { echo "$line" && echo "$modules" && cat good; } >conf && idtree reload >out && cat out || { echo "refused: $line"; return 1; }
    done && mv good conf && idtree reload
'
test_expect_success 'idtree reload --check reports the errors in a file that a start would report, and starts nothing' '
    check() { idtree broker --check -c "$@"; } && check conf --rank 1 >out && cat out && grep "conf: no error found: an instance of 3 brokers" out &&
    sed "s/^topo = .*/topo = \"kary:0\"/" conf >bad && test_expect_code 2 check bad --rank 1 2>err && cat err && grep "fanout" err &&
    for line in "fluid.leese = 9s" "fluid.lease = 1ms" "access.allow-guest-user = maybe" "log-level = 99" "broker.quorum = 9" "uid.drift = 99"; do
        { echo "$line" && cat conf; } >bad && test_expect_code 2 check bad --rank 1 2>err && cat err && grep "bad:1: .*${line%% *}" err || return 1
    done && echo "fluid.lease = 5s" >alone && check alone -o fluid.share=off >out && grep "alone: no error found$" out && test_expect_code 2 check nowhere
'
set_host_1() { sed "s/\"[^\"]*:$((port + 1))\"/\"$1:$((port + 1))\"/" conf >conf.new && mv conf.new conf; }
test_expect_success 'a host under another name is recognized as the same host, and its broker stays' '
    for name in localhost 127.0.0.2 LocalHost; do
        set_host_1 $name && at 1 && idtree reload >out && grep "^1: changed cluster.hosts" out &&
        at 2 && idtree reload && test "$(idtree getattr tbon.parent-endpoint)" = tcp://$name:$((port + 1)) || return 1
    done && at 0 && idtree reload && test "$(idtree getattr hostlist)" = 127.0.0.1,LocalHost,127.0.0.1 && kill -0 "$(pid 1)"
'
test_expect_success 'a new name without an address may be the same host, so the broker stays, and keeps the hosts that it knows' '
    set_host_1 no-such-host.invalid && at 1 && test_must_fail idtree reload 2>err &&
    grep "rank 1 is now no-such-host.invalid, and was LocalHost: cannot find out whether that is this host" err && idtree id new
'
test_expect_success 'the broker of a host that is replaced leaves its rank and ends with an error; the others find the new host' '
    set_host_1 192.0.2.1 && at 1 && test_must_fail idtree reload 2>err && grep "rank 1 is now 192.0.2.1, and no longer LocalHost" err &&
    test_expect_code 2 wait "$(pid 1)" && says 1 "rank 1 is now 192.0.2.1, and no longer LocalHost" &&
    at 2 && wait_attached 2 0 && set_host_1 localhost && at 0 && idtree reload &&
    at 2 && idtree reload >out && grep "^2: changed cluster.hosts" out && start 1 && wait_attached 2 1 && wait_served 2 &&
    test "$(idtree getattr tbon.parent-endpoint)" = tcp://localhost:$((port + 1)) &&
    test "$(idtree getattr hostlist)" = 127.0.0.1,localhost,127.0.0.1
'
second_is_below_0() { IDTREE_URI=local://$T/run2/local-2 wait_is_child 2 0; }
test_expect_success 'a broker that cannot resolve the name of its parent attaches to the next ancestor' '
    at 0 && sed "s/\"localhost/\"no-such-host.invalid/" conf >new && mkdir -p other && cp new other/conf &&
    die 2 && { idtree-broker -c other/conf --rank 2 -o rundir=$T/run2 2>err.second >out & } && second=$! &&
    wait_until "it is with rank 0" second_is_below_0 && kill $second && wait $second && start 2 && at 2 && wait_attached 2 1
'
test_expect_success 'a broker with another certificate is refused' '
    idtree keygen other.cert && die 2 &&
    { idtree-broker -c conf --rank 2 -o rundir=$T/run2 -o cluster.certificate=$T/other.cert -o broker.join-timeout=3s 2>err.second >out & } &&
    second=$! &&
    test_expect_code 1 wait $second && grep "could not join rank 1 at tcp://localhost" err.second && start 2
'
test_expect_success 'a broker whose list of hosts has another length is refused' '
    wait_attached 2 1 && sed "s/:$((port + 2))\",/&\"n4\",/" conf >other/conf &&
    kill "$(pid 2)" && wait_until "it ends" is_gone "$(pid 2)" &&
    test_must_fail timeout 60 idtree-broker -c other/conf --rank 2 -o rundir=$T/run2 2>err </dev/null && cat err &&
    grep "rank 2 knows of 4 ranks, but rank 1 of 3" err && start 2
'
test_expect_success 'rank 0 ends before its shutdown timeout, although a client does not read the end of its output' '
    kill "$(pid 0)" && wait_until "rank 0 ends" is_gone "$(pid 0)" && start 0 -o broker.shutdown-timeout=1h && at 0 && wait_until "all are there" is_full &&
    { idtree event sub unread. >events & } && client=$! && wait_subscribers 0 1 && kill -STOP $client && idtree event pub unread.x &&
    kill "$(pid 0)" && wait_until "rank 0 ends" is_gone "$(pid 0)" && wait "$(pid 0)" && start 0
'
kill -9 $client
test_expect_success 'idtree shutdown at rank 0 stops all brokers in order' '
    at 0 && wait_until "all are there" is_full && idtree shutdown &&
    for r in 0 1 2; do wait_until "rank $r ends" is_gone "$(pid $r)" || return 1; done && test ! -e run/local-0
'

# Leave nothing behind, even if a test failed.
end_all; rm -rf $T

test_done

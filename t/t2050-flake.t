#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2050-flake.t - flax, sno and uid from every rank of a tree; ranks die, return, forward and collide
test_description='the flake service makes ids of three schemes, and no id is issued twice'
. "$(dirname "$0")/idtree-sharness.sh"

# With short leases, grants of time and claims end and are renewed during the test; a rank that renews late forwards.
# Requests have long timeouts, as the test does not judge the speed of a busy machine.
wait='-o flake.forward-timeout=1m -o fluid.forward-timeout=1m'
opts="-o log-stderr-level=0 $wait"
short="$opts -o fluid.lease=1s"

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
uri_of() { echo "${IDTREE_URI%0}$1"; }
served() { wait_served "$1" --scheme "$2"; }
field() { idtree id show --json --scheme "$1" - | sed "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/"; }
ask() { "$IDTREE_BUILDDIR/t/ask" "$@"; }
# A rank that waits long for its time or its name forwards: what it makes itself begins later then.
has() { test "$(idtree id new --scheme "$1" -r "$2" | field "$1" "$3")" = "$4"; }
own_sno() { wait_until "rank $1 makes sno" has sno "$1" partition "$1"; }
# Who never heard of rank 0 does not know the drift of uids, and can only forward.
knows_drift() { idtree module stats -r "$1" flake >stats.$1 && grep "^drift" stats.$1 | grep -qv "^drift  *0$"; }
heard() { wait_until "rank $1 knows the drift" knows_drift "$1"; }
own_uid() { wait_until "rank $1 makes uids" has uid "$1" node 0x8000000$1; }
END

cat >all.sh <<'END'
. ./lib.sh
for rank in 0 1 2 3 4 5 6 7; do own_sno $rank && own_uid $rank || exit 1; done
for scheme in flax sno uid; do
    for rank in 0 1 2 3 4 5 6 7; do idtree id new --scheme $scheme -r $rank -n 10000 >$scheme.$rank & done
    wait
    cat $scheme.* >ids && test "$(wc -l <ids)" = 80000 && test "$(sort -u ids | wc -l)" = 80000 || exit 1
    for rank in 0 7; do head -n 10000 $scheme.$rank | LC_ALL=C sort -c || exit 1; done
done
for rank in 0 1 2 3 4 5 6 7; do
    test "$(field sno partition <sno.$rank | sort -u)" = $rank || exit 1
    head -n 1 uid.$rank
done | field uid node | sort -u >nodes
test "$(wc -l <nodes)" = 8
END
test_expect_success 'eight ranks make ids at the same time: no id is issued twice, and each has its own partition and node' '
    idtree start -s 8 --topology kary:2 $opts sh all.sh
'
cat >kill.sh <<'END'
. ./lib.sh
for i in 1 2; do
    for rank in 0 1 3; do
        # It may have lost its way to rank 0, where we ask, with the one above it.
        served $rank sno && served $rank uid || exit 1
        for scheme in sno uid; do
            for n in 1 70000 1; do idtree id new --scheme $scheme -r $rank -n $n >>$scheme.killed || exit 1; done
        done
        idtree startctl kill $rank && idtree startctl run $rank || exit 1
    done
done
for scheme in sno uid; do
    test "$(wc -l <$scheme.killed)" = 420012 && test "$(sort -u $scheme.killed | wc -l)" = 420012 || exit 1
done
END
test_expect_success 'a killed rank, also rank 0, repeats none of its ids when it runs again' '
    idtree start -s 4 $short sh kill.sh
'
cat >forward.sh <<'END'
. ./lib.sh
for rank in 1 2 3 4 5 6; do idtree id new --scheme sno -r $rank -n 5000 >$rank.sno & done; wait
for rank in 1 2 3 4 5 6; do idtree id new --scheme uid -r $rank -n 5000 >$rank.uid & done; wait
cat ?.sno >ids && test "$(wc -l <ids)" = 30000 && test "$(sort -u ids | wc -l)" = 30000 &&
test "$(cat [3456].sno | field sno partition | sort -u | tr "\n" " ")" = "1 2 " &&
cat ?.uid >ids && test "$(sort -u ids | wc -l)" = 30000 &&
test "$(cat [56].uid | field uid node | sort -u)" = "$(cat 2.uid | field uid node | sort -u)" &&
test "$(idtree module stats -r 1 flake | grep -c "^forwarded  *0$")" = 1 &&
test "$(idtree module stats -r 6 flake | grep -c "^forwarded  *0$")" = 0
END
test_expect_success 'ranks above the limit of partitions forward requests for snos, and ranks without a generator forward requests for uids' '
    idtree start -s 7 --topology kary:2 $opts -o flake.max-partitions=3 -o fluid.max-generators=5 sh forward.sh
'
cat >collide.sh <<'END'
. ./lib.sh
differ() {
    for r in 1 2 0; do idtree id new --scheme uid -r $r | field uid node || return 1; done | sort >nodes
    test "$(sort -u nodes | wc -l)" = 3
}
wait_until "each has a name" differ && head -n 1 nodes | grep "^0x00000007$" &&
test "$(grep -c "^0x8000000[012]$" nodes)" = 2 || exit 1
said() { idtree dmesg | grep "uids contain this rank's number instead of its name: fingerprint 0x00000007 of node idtree-.@.* (rank .) belongs to node idtree-.@.* (rank .)"; }
wait_until "a rank says why" said
END
test_expect_success 'one of several ranks with the same fingerprint uses it; the others use their numbers, and report the reason' '
    idtree start -s 3 $opts -o uid.fingerprint=7 sh collide.sh
'
cat >inherit.sh <<'END'
. ./lib.sh
make_some() { idtree id new --scheme uid -r "$1" -n 1000 >got && cat got >>ids && node=$(head -n 1 got | field uid node); }
take() { wait_until "rank $1 makes uids" make_some "$1"; }
make_seven() { make_some "$1" && test $node = 0x00000007; }
named() { wait_until "rank $1 has the fingerprint 7" make_seven "$1"; }
: >ids && take 1 && has=1 other=2 && if test $node != 0x00000007; then has=2 other=1; fi &&
named $has && idtree startctl kill $has && named $other && idtree startctl run $has &&
take $has && take $other && take 0 && idtree startctl kill $other && named $has &&
test "$(sort -u ids | wc -l)" = "$(wc -l <ids)"
END
test_expect_success 'when the holder of a fingerprint dies another rank gets it, and later the first one again, and no id is issued twice' '
    idtree start -s 3 $short -o uid.fingerprint=7 sh inherit.sh
'
cat >rootless.sh <<'END'
. ./lib.sh
for r in 1 2; do own_sno $r && heard $r || exit 1; done
idtree startctl kill 0
for r in 1 2; do idtree id new --scheme uid --uri "$(uri_of $r)" -n 20000 || exit 1; done >ids
test "$(field uid node <ids | sort -u | tr "\n" " ")" = "0x80000001 0x80000002 " && test "$(sort -u ids | wc -l)" = 40000
END
test_expect_success 'ranks that never made a uid make uids after rank 0 has died' '
    idtree start -s 3 $opts sh rootless.sh
'
cat >drift.sh <<'END'
. ./lib.sh
for r in 0 1; do
    idtree id new --scheme uid -r $r | idtree id show --drift 5 --json - >out && grep "\"node\":\"0x8000000$r\"" out &&
    idtree id new --scheme uid -r $r --drift 5 && ! idtree id new --scheme uid -r $r --drift 8 2>err &&
    grep "drift 8: uids of this instance have 5 drift bits" err || exit 1
done
END
test_expect_success 'an instance has one drift, and refuses requests for another' '
    idtree start -s 2 $opts -o uid.drift=5 sh drift.sh
'
cat >greedy.sh <<'END'
. ./lib.sh
pids=
for i in 1 2 3 4 5 6 7 8; do
    for s in flax sno uid; do
        for r in 0 1; do idtree id new --scheme $s -r $r -n 100000 >greedy.$s.$i.$r & pids="$pids $!"; done
    done
done
for i in 1 2 3 4 5 6 7 8 9; do
    for s in flax sno uid; do idtree id new --scheme $s -r 1 >>modest.$s || exit 1; done
done
for p in $pids; do wait $p; done # may be told to ask again later, where the machine is busy
for s in flax sno uid; do
    cat greedy.$s.* modest.$s | LC_ALL=C sort >all && test -z "$(uniq -d all)" && test "$(wc -l <modest.$s)" = 9 || exit 1
done
END
test_expect_success 'a small request is served beside many large ones, and no id is issued twice' '
    idtree start -s 2 $opts sh greedy.sh
'
cat >limits.sh <<'END'
. ./lib.sh
refused() { # topic, payload, what is told
    ! ask 0 "$1" "$2" 2>err && grep "$3" err || { echo "$1 $2:"; cat err; return 1; }
}
refused sno.generate '{"count":0}' 'EINVAL: count must be a number from 1 to 65536' &&
refused uid.generate '{"count":65537}' 'EINVAL: .*1 to 65536' &&
refused flax.generate '{"count":-1}' 'EINVAL: .*1 to 65536' &&
refused sno.generate '{"count":"1"}' 'EINVAL: .*1 to 65536' &&
refused sno.generate '{"meta":256}' 'EINVAL: meta must be a number from 0 to 255' &&
refused uid.generate '{"drift":4}' 'EINVAL: drift must be a number from 5 to 10' &&
refused sno.generate '[]' EPROTO && refused flake.claim '{"fingerprint":1}' EPERM &&
ask 0 sno.generate '{"count":65536,"meta":255}' >answer && test "$(tr , "\n" <answer | wc -l)" = 65536 &&
refused uid.generate '{"drift":5}' 'EINVAL: drift 5: uids of this instance have 8 drift bits' &&
refused flax.generate "$(printf '{"x":"%01024d"}' 0)" 'EMSGSIZE: .*limit is 1024' && ask 0 flax.generate '{}' && ask 0 sno.generate '{}'
END
test_expect_success 'a value of a flake attribute that is out of range is refused with the range' '
    idtree start -s 1 $opts sh limits.sh
'
cat >modules.sh <<'END'
. ./lib.sh
files() { ls "/proc/$(idtree getattr -r 1 broker.pid)/fd" | wc -l; }
before=$(files)
for i in $(seq 100); do
    for scheme in sno uid flax; do idtree id new --scheme $scheme -r 1 -n 3 || exit 1; done
    idtree module remove -r 1 flake && idtree module load -r 1 flake || exit 1
done >ids
test "$(sort -u ids | wc -l)" = 900 && test "$(files)" = "$before" &&
idtree module remove -r 1 flake && idtree id new --scheme sno --uri "$(uri_of 1)" >id && test "$(field sno partition <id)" = 0 &&
idtree module load -r 1 flake && idtree id new --scheme sno --uri "$(uri_of 1)" >id && test "$(field sno partition <id)" = 1 &&
for i in $(seq 20); do
    idtree id new --scheme sno -r 1 -n 3 && idtree module remove -r 1 fluid &&
    idtree id new --scheme sno --uri "$(uri_of 1)" -n 3 && idtree module load -r 1 fluid || exit 1
done >ids && test "$(sort -u ids | wc -l)" = 120
END
test_expect_success 'flake modules are loaded and removed a hundred times: nothing is left behind, and no id is issued twice' '
    idtree start -s 2 $short sh modules.sh
'
cat >stop.sh <<'END'
for r in 0 1; do for s in sno uid; do idtree id new --scheme $s -r $r -n 1000; done; done >ids.$1
idtree info >info.$1
END
test_expect_success 'an instance that is stopped and started again makes ids above all before, without clock debt' '
    init_state state && for i in 1 2 3 4 5; do
        idtree start -s 2 -o statedir="$PWD/state" -o log-stderr-level=0 sh stop.sh $i || return 1
    done && test "$(cat ids.? | sort -u | wc -l)" = 20000
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5020-commands.t - commands that send requests to brokers
test_description='commands send requests to brokers and print the answers'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:2 -o fluid.max-generators=2
command -v python3 >/dev/null && test_set_prereq PYTHON

test_expect_success 'getattr shows attributes of any rank' '
    test "$(idtree getattr size)" = 4 && test "$(idtree getattr rank)" = 0 &&
    test "$(idtree getattr --rank 3 rank)" = 3 &&
    test_expect_code 1 idtree getattr nosuch 2>err && grep "^idtree getattr: nosuch: unknown attribute" err &&
    test_expect_code 1 idtree getattr -r 4 rank 2>err && grep "no rank 4: the instance has ranks 0 to 3" err
'
test_expect_success 'every command with --rank reports a rank that does not exist' '
    for c in "lsattr -r4" "setattr -r4 log-level 7" "module list -r4" "module load -r4 fluid" "module remove -r4 fluid" \
        "module stats -r4 fluid" "id new -r4"; do
        test_expect_code 1 idtree $c 2>err && grep "there is no rank 4" err || { echo "$c"; return 1; }
    done
'
test_expect_success 'setattr sets attributes that can be set, and refuses others' '
    idtree setattr log-stderr-level 3 && test "$(idtree getattr log-stderr-level)" = 3 &&
    idtree setattr -r 2 log-stderr-level 4 && test "$(idtree getattr -r 2 log-stderr-level)" = 4 &&
    test_expect_code 1 idtree setattr rank 3 2>err && grep "rank: attribute may not be updated" err &&
    test_expect_code 1 idtree setattr nosuch 3 2>err && grep "nosuch: unknown attribute" err
'
test_expect_success 'lsattr lists attributes in the order of their names' '
    idtree lsattr >names && sort -c names && grep -x size names && idtree lsattr -v >values &&
    test "$(wc -l <names)" = "$(wc -l <values)" && grep -E "^size +4$" values
'
test_expect_success 'ping reaches any rank and service' '
    idtree ping -c 1 3 >out && grep -E "^3!broker.ping seq=0 time=[0-9.]+ ms \(.*!.*\)$" out &&
    idtree ping -c 3 -i 0.001 fluid >out && test "$(wc -l <out)" = 3 && grep "^0!fluid.ping seq=2 " out &&
    idtree ping -c 1 "2!fluid" | grep "^2!fluid.ping" && idtree ping -c 1 -p 100000 1 &&
    test_expect_code 1 idtree ping -c 1 9 2>err && grep "no rank 9: the instance has ranks 0 to 3" err &&
    test_expect_code 1 idtree ping -c 1 nosuch 2>err && grep "No service matching nosuch.ping" err &&
    test_expect_code 2 idtree ping "3!" 2>err && grep "is not RANK, SERVICE" err
'
test_expect_success 'ping without a count ends after four answers if stdout is not a terminal; a count of 0 means no end' '
    timeout 100 idtree ping -i 0.01 3 >out && test "$(wc -l <out)" = 4 && timeout 100 idtree ping --json -i 0.01 3 | wc -l >n &&
    test "$(cat n)" -eq 4 && timeout 100 idtree ping -c 0 -i 0.01 3 | sed -n "6{p;q}" >out && grep seq=5 out
'
test_expect_success PYTHON 'on a terminal ping without a count continues until it is interrupted' '
    timeout 100 python3 -c "import os, pty, signal, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
seen = b\"\"
while b\"seq=5\" not in seen: seen += os.read(fd, 4096)
os.kill(pid, signal.SIGINT)
os.waitpid(pid, 0)" idtree ping -i 0.01 3
'
test_expect_success 'idtree module lists, removes and loads modules, and prints their counters' '
    idtree module list -r 1 | grep -E "^fluid +running" && idtree module remove -r 3 fluid &&
    ! idtree module list -r 3 | grep fluid && idtree module load -r 3 fluid &&
    idtree module list -r 3 | grep fluid && idtree module stats fluid | grep requests &&
    idtree module stats --json fluid | grep "^{.*}$" && idtree module stats --rusage fluid | grep maxrss &&
    idtree module stats fluid >out && cat out && grep -E "^requests +[0-9]+$" out && ! grep "[][{}\"]" out &&
    idtree module stats overlay >out && cat out && ! grep "[][{}\"]" out && grep -E "^parent-rank +-$" out && sed -n "/^links:/,\$p" out >links &&
    grep -E "^ +rank +by +answers " links && test "$(grep -cE "^ +[12] +zmq +[0-9]" links)" = 2 &&
    idtree module stats -r all fluid >out && cat out && grep -E "^ranks +0-3$" out && grep -E "^requests +[0-9]+$" out && ! grep "[][{}\"]" out &&
    idtree module stats compressor >out && grep -E "^root documents +[0-9]+$" out && idtree info >out && grep -E "^fluid lease +[0-9]+ to [0-9]+ ms after the epoch$" out &&
    idtree module stats --clear fluid &&
    test_expect_code 1 idtree module load nosuch 2>err && grep "nosuch: module not found in search path" err &&
    test_expect_code 1 idtree module load fluid 2>err && grep "fluid" err &&
    test_expect_code 1 idtree module remove nosuch 2>err
'
test_expect_success 'events have numbers, and are delivered to their subscribers' '
    idtree event pub -s a.b >one && idtree event pub -s a.b "{\"x\":1}" >two &&
    test $(($(sed s/seq=// one) + 1)) = $(sed s/seq=// two) &&
    { idtree event sub -c 2 zz >got & } && pid=$! &&
    wait_subscribers 0 1 &&
    idtree event pub -s zz.top "{\"k\":1}" && idtree event pub zy.top && idtree event pub zz.top "{\"k\":1}" &&
    wait $pid && printf "zz.top\t{\"k\":1}\nzz.top\t{\"k\":1}\n" >expect && test_cmp expect got &&
    test_expect_code 2 idtree event pub a.b nojson 2>err && grep "the payload is not JSON" err &&
    test_expect_code 2 idtree event pub a.b [] 2>err && grep "not a JSON object" err
'
test_expect_success 'dmesg prints the log of a rank until the log is cleared' '
    idtree logger -s warning -n me hello   there && idtree dmesg >out &&
    grep -E "Z me.warning\[0\]: hello there$" out && idtree dmesg -C && idtree dmesg >out && ! grep hello out &&
    test_expect_code 2 idtree logger -s error x 2>err && grep ".error. is no severity" err
'
test_expect_success 'logger logs each line of a text, and reports a line that is longer than the log keeps' '
    idtree dmesg -C && idtree logger -s err "$(printf "one\\ntwo\\n\\n three")" four && idtree logger "$(printf "%02500d\\nafter it" 7)" 2>err && grep "line 1 has 2500 bytes: the log keeps the first 2047" err &&
    idtree dmesg >out && cat out && test "$(wc -l <out)" = 5 && sed -n "s/.*logger.err.0.: //p" out >got && printf "one\\ntwo\\n three four\\n" >want && test_cmp want got && grep ": after it$" out
'
test_expect_success 'dmesg -f prints log lines as they arrive' '
    { idtree dmesg -f >log & } && follower=$! && idtree logger wake up &&
    wait_until "what is logged is followed" grep ": wake up\$" log && kill $follower
'
test_expect_success 'idtree info prints facts about the instance, the broker and the ids' '
    idtree info >out && grep -E "^size +4$" out && grep -E "^state +run$" out && grep -E "^fluid state +active$" out &&
    grep -E "^fluid max_generators +[0-9]+$" out &&
    grep -E "^subtree +full$" out &&
    idtree info --json | grep "\"fluid\":{" && idtree info --uri ${IDTREE_URI%0}3 | grep -E "^rank +3$" &&
    idtree info -r 3 >out && grep -E "^rank +3$" out && grep -E "^fluid rank +3$" out &&
    ! idtree info -r 4 2>err && grep "there is no rank 4: the instance has ranks 0 to 3" err
'
test_expect_success 'overlay status shows the tree, and which rank makes the ids of each rank' '
    idtree overlay status >out && cat out && grep -E "^0 .* full .* active +0 +0$" out &&
    grep -E "2 .* full .* idle +[01]$" out && test "$(wc -l <out)" = 5 &&
    idtree overlay status --json >json && test "$(grep -o "\"rank\":[0-3]," json | wc -l)" = 4
'
test_expect_success 'overlay status prints sets of ranks, and can be limited to a subtree' '
    idtree overlay status --summary >out && cat out && grep -E "^full +4  0-3$" out && ! grep FLUID out &&
    idtree overlay status --fluid >out && cat out && grep -E "^full +4  0-3$" out && grep -E "^active +[0-9]+  0" out &&
    grep -E "^idle " out && idtree overlay status --summary --json >json && grep "\"ranks\": *\"0-3\"" json &&
    idtree overlay status --rank 3 >out && test "$(wc -l <out)" = 2 && grep -E "^3 .* full" out &&
    idtree overlay status --rank 3 --summary >out && grep -E "^full +1  3$" out &&
    test_expect_code 1 idtree overlay status --rank 9 2>err && grep "rank 9" err
'
test_expect_success 'overlay status shows a lost rank' '
    idtree startctl kill 3 && wait_until "rank 3 is seen to be gone" holds "
        idtree overlay status >out && grep -E \"3 .* (lost|offline)\" out && grep -E \"^0 .* (degraded|partial)\" out" &&
    idtree overlay status --summary >out && cat out && grep -E "^(lost|offline) +1  3$" out &&
    test_expect_code 1 idtree info -r 3 >out 2>err && test_must_be_empty out && grep "rank 3 is not connected" err && idtree startctl run 3 &&
    wait_until "it is back" holds "idtree overlay status | grep -E \"3 .* full\""
'
test_expect_success 'idtree version prints the version of the broker' '
    idtree version >out && grep "^broker: " out && grep "^uri:  *$IDTREE_URI" out
'
test_expect_success 'idtree shutdown stops all brokers, and later commands report that no broker is running' '
    idtree shutdown && wait_until "all have ended" holds "test \$(idtree startctl status | grep -c exited) = 4" &&
    test "$(idtree startctl status | grep -c "exited with status 0")" = 4 &&
    test_expect_code 1 idtree getattr size 2>err && grep "/local-0: no broker is there" err
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5032-schemes.t - flax, sno and uid on the command line, without a broker
test_description='ids of four schemes are made, shown, recognized, converted, sorted and bounded'
. "$(dirname "$0")/idtree-sharness.sh"

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; } # of JSON objects, one a line

test_expect_success 'id new --local makes distinct ids of each scheme, in order' '
    for scheme in flax sno uid; do
        idtree id new --local --scheme $scheme -n 200000 >$scheme && test "$(wc -l <$scheme)" = 200000 &&
        LC_ALL=C sort -cu $scheme || return 1
    done && idtree id new --local --scheme uid --kind local -n 100000 >local && LC_ALL=C sort -cu local
'
test_expect_success 'ids of each scheme are printed in the canonical text of the scheme' '
    ! grep -vE "^[-0-9A-Z_a-z]{16}$" flax && ! grep -vE "^[2-9a-x]{16}$" sno &&
    ! grep -vE "^[.0-9A-Z_a-z]{16}$" uid && ! grep -vE "^[.0-9A-Z_a-z]{10}[.37BFJNRVZcgkosw]$" local
'
test_expect_success 'successive runs of id new --local with the same partition make no id twice' '
    for i in $(seq 40); do idtree id new --local --scheme sno --partition 5 -n 100 || return 1; done >ids &&
    LC_ALL=C sort -cu ids &&
    for i in $(seq 40); do idtree id new --local --scheme uid --fingerprint 5 -n 100 || return 1; done >ids &&
    LC_ALL=C sort -cu ids
'
# Two containers of one image: both have the same host name, and each process has pid 1.
contain() { unshare --uts --pid --fork --mount-proc sh -c "hostname same && test \$\$ = 1 && exec \"\$@\"" sh "$@"; }
if contain true 2>/dev/null; then test_set_prereq CONTAIN; fi
test_expect_success CONTAIN 'id new --local in two containers with the same host name and pid makes no id twice' '
    contain idtree id new --local --scheme uid -n 60000 >one & contain idtree id new --local --scheme uid -n 60000 >two &&
    wait && cat one two | LC_ALL=C sort | uniq -d >both && test_must_be_empty both && test "$(cat one two | wc -l)" = 120000 &&
    for f in one two; do head -n 1 $f | idtree id show --json - | field node; done >nodes && test "$(sort -u nodes | wc -l)" = 2
'
test_expect_success 'id new --local without --node uses node bits of its own in each process, and no name and no rank has these' '
    for i in $(seq 20); do idtree id new --local --scheme uid | idtree id show --json - | field node; done >nodes &&
    test "$(sort -u nodes | wc -l)" = 20 && ! grep -E "^0x0|^0x8[0-3]" nodes
'
test_expect_success 'options of id new for a scheme are stored in its ids' '
    idtree id new --local --scheme sno --meta 200 --partition 10006 | idtree id show --scheme sno --json - >out &&
    test "$(field meta <out) $(field partition <out)" = "200 10006" &&
    idtree id new --local --scheme uid --node uid@127.0.0.1 | idtree id show --json - >out &&
    test "$(field node <out)" = 0x03eb2731 &&
    idtree id new --local --scheme uid --fingerprint 4294967295 --drift 5 | idtree id show --drift 5 --json - >out &&
    test "$(field node <out) $(field drift <out) $(field kind <out)" = "0xffffffff 5 global"
'
test_expect_success 'the date of a new id is now' '
    for scheme in flax sno uid; do
        before=$(date -u +%Y-%m-%dT%H:%M) && idtree id new --local --scheme $scheme >id && after=$(date -u +%Y-%m-%dT%H:%M) &&
        idtree id show --scheme $scheme -- $(cat id) | grep "^date  *\($before\|$after\)" || return 1
    done
'
test_expect_success 'id new prints each form as a column of text, or as a member of JSON' '
    idtree id new --local --scheme sno --to text --to hex -n 2 >out &&
    test "$(cut -f 2 out | idtree id convert --to text -)" = "$(cut -f 1 out)" &&
    idtree id new --local --scheme flax --to hex --json >out && grep -E "^\{\"hex\":\"0x[0-9a-f]{24}\"\}$" out
'
test_expect_success 'id new --local refuses to make a fluid, and prints the reason' '
    test_expect_code 2 idtree id new --local 2>err && grep "lease of time, which a broker holds" err &&
    test_expect_code 2 idtree id new --local --scheme fluid 2>err && grep "lease of time" err
'
test_expect_success 'options of id new that contradict each other are errors' '
    test_expect_code 2 idtree id new --local --scheme sno --meta 256 2>err && grep "meta .256.: a number from 0 to 255" err &&
    test_expect_code 2 idtree id new --local --scheme sno --partition 65536 2>err && grep "0 to 65535" err &&
    test_expect_code 2 idtree id new --local --scheme uid --drift 4 2>err && grep "drift .4.: a number from 5 to 10" err &&
    test_expect_code 2 idtree id new --local --scheme uid --kind x 2>err && grep "local, global" err &&
    test_expect_code 2 idtree id new --local --scheme flax --meta 1 2>err && grep -e "--meta needs --scheme sno" err &&
    test_expect_code 2 idtree id new --scheme sno --partition 1 2>err && grep -e "--partition needs --local" err &&
    test_expect_code 2 idtree id new --local --scheme uid --node a --fingerprint 1 2>err && grep "exclude each other" err &&
    test_expect_code 2 idtree id new --local --scheme sno --rank 1 2>err && grep "exclude each other" err &&
    test_expect_code 2 idtree id new --local --scheme snow 2>err && grep "fluid, flax, sno, uid" err &&
    test_expect_code 2 idtree id new --local --scheme sno --to words 2>err && grep "not a form of sno; there are text, hex" err
'
test_expect_success 'id show finds the scheme of an id if only one is possible' '
    for pair in fuZZybuNNy=fluid 6731191091817518=fluid 0RdKJcxqVBiAiQr0=flax .5.tXVEf8n4vPN.0=uid \
                0x3e0b71df8e07efda0000=sno; do
        idtree id show --json ${pair%=*} >out && test "$(field scheme <out)" = ${pair#*=} || return 1
    done
'
test_expect_success 'id show --json prints a field that a JSON number cannot hold as a string' '
    idtree id show --scheme flax --json 0RdKJcxqVBiAiQr0 >out && grep "\"random\":\"0x7680cb8bb9bdc1\"" out
'
test_expect_success 'id show lists all possible schemes of an ambiguous id' '
    idtree id show 9q7p5pug2xpvm222 >out && grep "^scheme  *flax, perhaps" out && grep "^scheme  *sno, perhaps" out &&
    idtree id show --json 9q7p5pug2xpvm222 >out && test "$(wc -l <out)" = 1 &&
    grep "^{\"candidates\":\[{\"scheme\":\"flax\".*},{\"scheme\":\"sno\".*}\]}$" out &&
    idtree id show --scheme sno --json 9q7p5pug2xpvm222 >out && grep "\"scheme\":\"sno\"" out && ! grep candidates out &&
    test_expect_code 1 idtree id show --scheme uid 9q7p5pug2xpv-222 2>err && grep "is not an id" err
'
test_expect_success 'id convert converts ids of one possible scheme, and asks for the scheme of others' '
    idtree id convert --to hex -- 0RdKJcxqVBiAiQr0 .5.tXVEf8n4vPN.0 5 >out &&
    printf "0x05ca55528f7680cb8bb9bdc1\n0x0060398a03eb27317b698001\n0x5\n" >expect && test_cmp expect out &&
    test_expect_code 1 idtree id convert --to hex 9q7p5pug2xpvm222 2>err && grep "may be flax or sno: select one with --scheme" err &&
    idtree id convert --scheme sno --to hex 9q7p5pug2xpvm222 >out && test "$(cat out)" = 0x3e0b71df8e07efda0000 &&
    test_expect_code 1 idtree id convert --to words .5.tXVEf8n4vPN.0 2>err && grep "of uid, which has no form words" err &&
    test_expect_code 2 idtree id convert --scheme uid --to words x 2>err && grep "not a form of uid; there are text, hex" err
'
test_expect_success 'id sort keeps the text of a million lines in different forms' '
    seq 1000036999963 -37 1000000000000 >down && seq 1000000000000 37 1000036999963 >up &&
    awk "NR % 2" down | idtree id convert --to words - >mixed && awk "NR % 2 == 0" down | idtree id convert --to f58 - >>mixed &&
    idtree id sort - <mixed >out && idtree id convert --to dec - <out | cmp - up &&
    LC_ALL=C sort mixed >a && LC_ALL=C sort out | cmp - a
'
test_expect_success 'id sort sorts ids of the other schemes' '
    for f in flax sno uid local; do
        scheme=$f && test $f != local || scheme=uid
        awk "{ print (NR * 7919) % 200000, \$0 }" $f | sort -n | cut -d " " -f 2 >mixed &&
        idtree id sort --scheme $scheme - <mixed | cmp - $f || return 1
    done
'
test_expect_success 'id sort keeps the order of equal ids, and --unique keeps the first of them' '
    printf "0x5\n4\n5\n0x4\n" | idtree id sort - >out && printf "4\n0x4\n0x5\n5\n" >expect && test_cmp expect out &&
    printf "0x5\n4\n5\n0x4\n" | idtree id sort -u - >out && printf "4\n0x5\n" >expect && test_cmp expect out &&
    idtree id sort 7 6 >out && printf "6\n7\n" >expect && test_cmp expect out && idtree id sort - </dev/null
'
test_expect_success 'id sort reports the number of each line that is not an id, or has another scheme' '
    printf "5\nxyz\n.5.tXVEf8n4vPN.0\n3\n" | test_expect_code 1 idtree id sort - >out 2>err &&
    printf "3\n5\n" >expect && test_cmp expect out && grep "line 2: .xyz. is not an id" err && grep "line 3:" err &&
    test_expect_code 1 idtree id sort 9q7p5pug2xpvm222 2>err && grep "flax or sno" err && grep "nothing was sorted" err
'
test_expect_success 'a new id is between the keys that id range prints for its day, and not between those of other days' '
    today=$(date -u +%Y-%m-%d) && tomorrow=$(date -u -d "$today + 2 days" +%Y-%m-%d) &&
    later=$(date -u -d "$today + 4 days" +%Y-%m-%d) &&
    for f in flax sno uid local; do
        scheme=$f && kind= && test $f != local || { scheme=uid && kind="--kind local"; }
        idtree id range --scheme $scheme $kind --from $today --to $tomorrow >keys &&
        idtree id range --scheme $scheme $kind --from $tomorrow --to $later >others &&
        head -n 1 $f >one && { sed -n 1p keys && cat one && sed -n 2p keys; } | LC_ALL=C sort -cu &&
        ! { sed -n 1p others && cat one && sed -n 2p others; } | LC_ALL=C sort -c 2>/dev/null || return 1
    done
'
test_expect_success 'id range needs the epoch of an instance for fluids' '
    test_expect_code 1 idtree id range --from 2026-11-21 --to 2026-11-22 2>err && grep "epoch of the fluids is unknown" err &&
    idtree id range --from 2026-11-22 --to 2026-11-23 --epoch 2026-11-21 --form dec >out &&
    printf "1449551462400000\n2899102924800000\n" >expect && test_cmp expect out &&
    idtree id range --from 2026-11-22 --to 2026-11-22 --epoch 2026-11-21 --json >out && grep "^{\"lower\":\"f[^\"]*\",\"upper\":\"f[^\"]*\"}$" out
'
test_expect_success 'id range refuses dates that are invalid, outside of the scheme, or in the wrong order' '
    test_expect_code 2 idtree id range --scheme sno --to 2026-11-21 2>err && grep -e "--from DATE is missing" err &&
    test_expect_code 2 idtree id range --scheme sno --from 2026-11-31 --to 2026-12-01 2>err && grep "from .2026-11-31. is not a date" err &&
    test_expect_code 2 idtree id range --scheme sno --from 2026-11-22 --to 2026-11-21 2>err && grep "later than --to" err &&
    test_expect_code 1 idtree id range --scheme sno --from 2009-12-31 --to 2026-11-21 2>err && grep "go from 2010-01-01 to 2079" err &&
    test_expect_code 1 idtree id range --scheme flax --from 2026-11-21 --to 2050-01-01 2>err && grep "2049-11-03" err
'
test_expect_success 'completion offers schemes, and the forms of a given scheme' '
    idtree complete id new --scheme "" >out && printf "fluid\nflax\nsno\nuid\n" >expect && test_cmp expect out &&
    idtree complete id new --scheme sno --to "" >out && printf "text\nhex\n" >expect && test_cmp expect out &&
    idtree complete id range --kind l >out && echo local >expect && test_cmp expect out
'
test_expect_success 'the manual describes every option of the commands for schemes' '
    sed "s/\\\\-/-/g; s/\\\\f.//g" "$IDTREE_SRCDIR/doc/man/idtree.1" >man &&
    for s in new show convert range sort; do
        for o in $(idtree complete id $s --); do
            test $o = --help || grep -q -e "$o" man || { echo "id $s $o is not in the manual"; return 1; }
        done
    done
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5090-bench-report.t - the output of programs under bench/ is shown and compared, and all programs run even if one
# fails
test_description='bench/run, bench/report and bench/peers measure, compare and report'
. "$(dirname "$0")/idtree-sharness.sh"

report=$IDTREE_SRCDIR/bench/report
run=$IDTREE_SRCDIR/bench/run
if ! command -v python3 >/dev/null; then
    skip_all='python3 is not installed'
    test_expect_success 'bench/peers skips a peer that is not installed with a message, and so does the report' '
    (cd "$IDTREE_BUILDDIR" && env FLUX=none UUIDD=none ETCD=none NODE=none "$IDTREE_SRCDIR/bench/peers") >lines && cat lines &&
    for name in flux uuidd etcd node; do grep "{\"skipped\": \"$name is not installed" lines || return 1; done &&
    "$report" lines >out 2>err && cat out err && grep "^one id: idtree" out && test "$(grep -c "is not installed" err)" -eq 4
'
test_expect_success 'bench/peers reports a peer that fails, and measures idtree' '
    test_expect_code 1 env FLUX=none UUIDD=none ETCD=/bin/false NODE=none BUILD="$IDTREE_BUILDDIR" PEERS="$IDTREE_SRCDIR/bench/peers" \
        sh -c "cd \"\$BUILD\" && \"\$PEERS\"" >lines 2>err && cat lines err && grep "one id: idtree" lines &&
    grep "^peers: etcd: etcd did not begin to serve" err
'
test_done
fi
if command -v gnuplot >/dev/null; then test_set_prereq GNUPLOT; fi

# A recorded run: a loop with a measured limit, a loop with a goal, sizes, a rate, and a line with one turn.
cat >old <<'END'
{"machine":{"processor":"AMD EPYC","processors":2,"system":"Linux 6.1","compiler":"gcc 12.2.0","flags":"-g -O2"}}
{"subject":"codecs","name":"dec read","value":9.77,"unit":"ns","better":"less","mean":9.85,"median":9.81,"p99":13.8,"rounds":2560,"warmup":17,"turns":[9.79,9.77,9.77,9.83,9.95,9.77,9.81,9.79],"limit":11.1,"limit_of":"half of strtoull","ratio":0.88,"limit_turns":[11.1,11.1,11.2,11.1,11.3,11.1,11.1,11.2]}
{"subject":"codecs","name":"f58 write","value":8.02,"unit":"ns","better":"less","mean":8.3,"median":8.27,"p99":8.51,"rounds":2560,"warmup":17,"turns":[8.05,8.02,8.05,8.09,8.11,8.03,8.05,8.05],"limit":6,"limit_of":"goal","ratio":1.337,"aim":"missed"}
{"subject":"broker","name":"one id","size":0,"size_of":"hops","value":11.8,"unit":"us","better":"less","mean":13.2,"median":12.4,"p99":20.1,"rounds":10000,"warmup":1000,"turns":[12.1,11.8,12.4,12.0,13.9,11.9],"limit":8.63,"limit_of":"a bare UNIX socket echo","ratio":1.367,"limit_turns":[8.8,8.63,8.9,8.7,9.9,8.66]}
{"subject":"broker","name":"one id","size":1,"size_of":"hops","value":82.5,"unit":"us","better":"less","mean":99,"median":93.1,"p99":471,"rounds":10000,"warmup":1000,"turns":[90,82.5,121,88,86,97],"limit":8.63,"limit_of":"a bare UNIX socket echo","ratio":9.56,"limit_turns":[8.8,8.63,8.9,8.7,9.9,8.66]}
{"subject":"broker","name":"one id","size":3,"size_of":"hops","value":273,"unit":"us","better":"less","mean":640,"median":401,"p99":2640,"rounds":10000,"warmup":1000,"turns":[290,273,310,281,277,302],"limit":8.63,"limit_of":"a bare UNIX socket echo","ratio":31.6,"limit_turns":[8.8,8.63,8.9,8.7,9.9,8.66]}
{"subject":"broker","name":"requests for one uid, 512 outstanding","size":3,"size_of":"hops","value":459040,"unit":"/s","better":"more","mean":700000,"median":409056,"p99":380930,"rounds":6,"warmup":0,"turns":[380930,459040,409056,449000,412000,405000]}
{"subject":"pressure","name":"p99 of a request at rank 0, greedy","value":830,"unit":"us","better":"less","median":41,"p99":830,"rounds":1500,"warmup":0,"turns":[830],"limit":1200,"limit_of":"5 times the quiet one, on a machine as busy","ratio":0.692,"aim":"met","note":"after 3 s of load"}
END

# The old run, with the turns and the value of the lines called NAME multiplied by FACTOR, and with "limit" their
# limits, too. Only turns are compared.
changed() { # NAME FACTOR [limit]
    jq -c --arg name "$1" --argjson by "$2" --arg limit "${3-}" \
        'if .name == $name then (.turns, .value) |= (if type == "array" then map (. * $by) else . * $by end)
             | if $limit != "" then .limit_turns |= map (. * $by) else . end else . end' old
}

test_expect_success 'the report of a benchmark is a table with readable units' '
    "$report" old >out && cat out && grep "^AMD EPYC, Linux 6.1, gcc 12.2.0, -g -O2" out &&
    grep "^dec read  *9.77 ns  *9.85 ns  *9.81 ns  *13.8 ns  *0.88  *11.1 ns, half of strtoull$" out &&
    grep "^one id \[3 hops\]  *273 µs  *640 µs  *401 µs  *2,640 µs  *31.60  *8.63 µs, a bare" out &&
    grep "^requests for one uid, 512 outstanding \[3 hops\]  *459,040 /s" out
'
test_expect_success 'bench/report --markdown prints rows with the same number of cells' '
    "$report" --markdown old >out && cat out && grep "^## broker" out &&
    grep "^| one id \[0 hops\] | 11.8 µs | 13.2 µs | 12.4 µs | 20.1 µs | 1.37 | 8.63 µs, a bare UNIX socket echo |  |$" out &&
    grep "^| one id \[3 hops\] .* | \*\*MEAN IS 1.60 MEDIANS\*\* |$" out &&
    grep "^|" out | tr -cd "|\n" | sort -u >cells && test "$(cat cells)" = "|||||||||"
'
test_expect_success 'the report marks a time whose mean is more than 1.5 medians, and an aim that was missed' '
    "$report" old >out && cat out && grep "^one id \[3 hops\].*  <== MEAN IS 1.60 MEDIANS$" out &&
    grep "^f58 write .*6 ns, goal  *<== MISSES THE AIM$" out && test "$(grep -c "<==" out)" -eq 2 &&
    grep "^p99 of a request .*  after 3 s of load$" out &&
    sed "s/\"ratio\":0.692/\"ratio\":1.1/" old >new && "$report" new >out && cat out &&
    grep "^p99 of a request .*  <== MISSES THE AIM; after 3 s of load$" out
'
test_expect_success 'the report shows and compares a run without means, which an earlier version wrote' '
    sed "s/\"mean\":[0-9.]*,//" old >early && test_must_fail grep mean early && "$report" early >out && cat out &&
    grep "^dec read  *9.77 ns  *9.81 ns" out && "$report" early old >out && grep "^7 compared, 0 slower" out
'
test_expect_success 'a run that is compared with itself is reported as equally fast' '
    "$report" old old >out && cat out && grep "^7 compared, 0 slower" out && test_must_fail grep -E "faster|only in" out
'
test_expect_success 'a slowdown greater than the spread of the turns is flagged, with the spread as noise' '
    changed "f58 write" 1.05 >new && test_expect_code 1 "$report" old new >out && cat out &&
    grep "^codecs: f58 write  *8.02 ns  *8.42 ns  *1.05  *0 %" out && grep "^7 compared, 1 slower" out
'
test_expect_success 'a change within the spread of the turns of one run is noise, however many percent it is' '
    changed "one id" 1.04 >new && "$report" old new >out && cat out && grep "0 slower" out
'
test_expect_success 'a slowdown that also the limit of the machine shows is attributed to the machine' '
    changed "dec read" 1.5 limit >new && "$report" old new >out && cat out && grep "0 slower" out &&
    changed "dec read" 1.5 >new && test_expect_code 1 "$report" old new >out && cat out && grep "^codecs: dec read" out
'
test_expect_success 'a limit of the machine whose turns vary by more than the change does not excuse a slowdown' '
    jq -c "if .name == \"dec read\" then .limit_turns = [11,30,17,25,13,40,22,12] else . end" old >loud && changed "dec read" 1.5 limit >new &&
    test_expect_code 1 "$report" loud new >out && cat out && grep "^codecs: dec read" out
'
test_expect_success 'for rates a lower figure is reported as slower, and a higher figure as faster' '
    changed "requests for one uid, 512 outstanding" 0.5 >new && test_expect_code 1 "$report" old new >out && cat out &&
    grep "^broker: requests for one uid.* 2.00 " out && grep "^slower" out &&
    "$report" new old >out && cat out && grep "^faster" out && grep "^broker: requests for one uid.* 0.50 " out
'
test_expect_success 'a line of the report with one turn is shown but not judged' '
    changed "p99 of a request at rank 0, greedy" 9 >new && "$report" old new >out && cat out && grep "0 slower" out
'
test_expect_success 'the turns of a program that ran a second time are added to its turns' '
    changed "f58 write" 1.05 >again && cat old again >twice && "$report" old twice >out && cat out && grep "^7 compared, 0 slower" out &&
    "$report" twice >out && cat out && test "$(grep -c "^f58 write" out)" -eq 1 && grep "^f58 write  *8.02 ns" out
'
test_expect_success 'the mean of a program that ran a second time is the mean of all its rounds' '
    jq -c "if .mean then .mean *= 4 | .rounds *= 2 else . end" old >again && cat old again >twice && "$report" twice >out && cat out &&
    grep "^f58 write  *8.02 ns  *24.9 ns" out
'
test_expect_success 'lines that only one of two runs has are named, and so are two different machines' '
    grep -v "dec read" old | sed "s/6.1/6.2/" >new && "$report" old new >out && cat out && grep "^only in old:" out &&
    grep "^    codecs: dec read" out && grep "two machines" out
'
test_expect_success 'bench/report --readme writes the table between its markers, and keeps the rest of README' '
    printf "before\n<!-- bench/report --readme: begin -->\nold\n<!-- bench/report --readme: end -->\nafter\n" >README &&
    "$report" --readme README old && cat README && grep "^| one id from the local broker, by message | 11.8 µs | 8.63 µs, a bare UNIX socket echo | 1.37 |" README &&
    test_must_fail grep "^old" README && test "$(head -n 1 README)$(tail -n 1 README)" = beforeafter &&
    cp README before && "$report" --readme README old && test_cmp before README &&
    echo none >bare && test_expect_code 2 "$report" --readme bare old 2>err && cat err && grep "markers" err
'
test_expect_success 'bench/report --readme can write the README of the source tree' '
    cp "$IDTREE_SRCDIR/README.md" . && chmod u+w README.md && "$report" --readme README.md old && grep "^| one id from the local broker" README.md
'
test_expect_success GNUPLOT 'the report plots only lines with three sizes' '
    "$report" --plots plots old >out && cat out && test "$(cat out)" = plots/broker-us-hops.svg && grep "</svg>" plots/broker-us-hops.svg &&
    grep "one id" plots/broker-us-hops.svg && test "$(ls plots)" = broker-us-hops.svg
'
test_expect_success 'without gnuplot a message says why the report has no plot' '
    mkdir only && python=$(python3 -c "import sys; print (sys.executable)") &&
    PATH=$PWD/only "$python" "$report" --plots none old 2>err && cat err && grep "gnuplot is not installed" err && ! test -e none
'
test_expect_success 'bench/report refuses invalid input, and the error names the line' '
    while IFS=";" read -r line words; do
        printf "%s\n%s\n" "$(sed -n 2p old)" "$line" >bad && test_expect_code 2 "$report" bad 2>err && cat err &&
            grep "^report: bad, line 2: .*$words" err || return 1
    done <<END &&
no json;object of JSON
[1];object of JSON
{"subject":"a"};name
{"subject":"a","name":"b","unit":"ns","better":"less","value":"1","median":1,"p99":1,"rounds":1,"warmup":0,"turns":[1]};value
{"subject":"a","name":"b","unit":"ns","better":"less","value":1,"median":1,"p99":1,"rounds":1,"warmup":0,"turns":[]};turns
{"subject":"a","name":"b","unit":"ns","better":"less","value":1,"median":1,"p99":1,"rounds":1,"warmup":0,"turns":[NaN]};turns
{"subject":"a","name":"b","unit":"ns","better":"less","value":1,"median":1,"p99":1,"rounds":1,"warmup":0,"turns":[1],"limit_turns":1};turns
{"subject":"a","name":"b","unit":"ns","better":"well","value":1,"median":1,"p99":1,"rounds":1,"warmup":0,"turns":[1]};well
END
    : >empty && test_expect_code 2 "$report" empty 2>err && grep "no line of a benchmark" err &&
    test_expect_code 2 "$report" missing 2>err && cat err && grep "missing: No such file" err &&
    head -c 100 /dev/urandom >noise && test_expect_code 2 "$report" noise && test_expect_code 2 "$report" old old old
'
test_expect_success 'a figure of 0 in a run does not cause a division by 0' '
    jq -c "if .turns then .turns |= map (0) | .value = 0 else . end" old >zero && "$report" zero >out && "$report" old zero >out &&
    test_expect_code 1 "$report" zero old >out && cat out
'

printf '#!/bin/sh\nsed -n 2p old\n' >good
printf '#!/bin/sh\nsed -n 3p old\nexit 7\n' >bad
printf '#!/bin/sh\nexec sleep 1000\n' >hangs
chmod +x good bad hangs
test_expect_success 'bench/run runs the other programs if one fails or hangs, and names that program at the end' '
    test_expect_code 1 env BENCH_SECONDS=1 BENCH_OUT=all "$run" ./bad ./hangs ./good >out 2>err && cat out err &&
    grep "failed: bad (exit status 7) hangs (exit status 124)" err && grep "hangs was stopped: it took more than 1 seconds" err &&
    test_cmp out all && grep "dec read" out && grep "f58 write" out && head -n 1 out | jq -e .machine.processors &&
    "$report" all
'
test_expect_success 'bench/run runs a program that ends early several times' '
    BENCH_OUT=all "$run" ./good >out 2>err && cat out err && test "$(grep -c "dec read" out)" -gt 1 && grep "all programs ran" err
'
test_expect_success 'bench/report accepts the output of a benchmark of idtree' '
    "$IDTREE_BUILDDIR/bench/bench-generators" >lines && cat lines && "$report" lines >out && cat out && grep "^sno, at the cap" out &&
    jq -e "(.subject == null or .mean > 0) and (.ratio == null or .limit_of) and (.limit_turns == null or (.limit_turns | length) == (.turns | length))" lines
'
test_expect_success 'bench/peers skips a peer that is not installed with a message, and so does the report' '
    (cd "$IDTREE_BUILDDIR" && env FLUX=none UUIDD=none ETCD=none NODE=none "$IDTREE_SRCDIR/bench/peers") >lines && cat lines &&
    for name in flux uuidd etcd node; do grep "{\"skipped\": \"$name is not installed" lines || return 1; done &&
    "$report" lines >out 2>err && cat out err && grep "^one id: idtree" out && test "$(grep -c "is not installed" err)" -eq 4
'
test_expect_success 'bench/peers reports a peer that fails, and measures idtree' '
    test_expect_code 1 env FLUX=none UUIDD=none ETCD=/bin/false NODE=none BUILD="$IDTREE_BUILDDIR" PEERS="$IDTREE_SRCDIR/bench/peers" \
        sh -c "cd \"\$BUILD\" && \"\$PEERS\"" >lines 2>err && cat lines err && grep "one id: idtree" lines &&
    grep "^peers: etcd: etcd did not begin to serve" err
'
test_done

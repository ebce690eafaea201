#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5062-health.t - idtree health for probes: one line and an exit status
test_description='idtree health reports faults and their severity'
. "$(dirname "$0")/idtree-sharness.sh"

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
# Whether the health of a rank has an exit status and a text; there is always one line.
is() { # status, pattern, option...
    status=$1 pattern=$2
    shift 2
    idtree health "$@" >health 2>&1
    test $? = "$status" && test "$(wc -l <health)" = 1 && grep -E "$pattern" health
}
becomes() { wait_until "health tells $2" is "$@" || { cat health; return 1; }; }
at() { echo "$(dirname "$IDTREE_URI")/local-$1"; }
END

inside() { # size, script, option...
    size=$1 script=$2
    shift 2
    printf '. ./lib.sh\n%s\n' "$script" >inside.sh
    idtree start -s "$size" --topology kary:1 -o log-stderr-level=2 "$@" -- sh inside.sh
}

test_expect_success 'without a broker idtree health is critical, as text and as JSON' '
    test_expect_code 2 idtree health >out 2>err && grep "^critical: no instance" out && ! test -s err &&
    test_expect_code 2 idtree health --uri local:///nosuch >out && grep "^critical: .*local:///nosuch" out &&
    test_expect_code 2 idtree health --json --uri local:///nosuch >out &&
    test "$(jq -r .status out)" = critical && test "$(jq -r ".reasons[0].what" out)" = broker &&
    test_expect_code 2 idtree health --nosuch 2>err && grep "unknown option" err
'
test_expect_success 'idtree health is good for each rank of a healthy instance' '
    inside 3 "becomes 0 \"^good\$\" && becomes 0 \"^good\$\" -r 2 && idtree health --json | jq -e \".status == \\\"good\\\" and .rank == 0 and .reasons == []\" &&
        test \"\$(idtree health -r 1 --json | jq .rank)\" = 1"
'
test_expect_success 'idtree health is critical for a suspended broker, and names the broker' '
    inside 2 "idtree startctl stop 0; is 2 \"^critical: .*no answer within 0.2 s: the broker at \$IDTREE_URI does not answer\" --timeout 0.2
        rc=\$?; idtree startctl cont 0; idtree startctl stop 1
        becomes 2 \"^critical: .*rank 1 or a broker on the way to it does not answer\" -r 1 --timeout 0.2 || rc=1; idtree startctl cont 1; exit \$rc" -o tbon.timeout=1h
'
test_expect_success 'idtree health of rank 0 reports a lost subtree, and that of a rank reports its lost parent' '
    inside 3 "idtree startctl kill 2 && becomes 1 \"^degraded: below rank 0: 1 online, but have lost ranks below\" &&
        is 1 \"^degraded: below rank 1: 2 lost .*--down\" -r 1 &&
        idtree startctl kill 0 && becomes 1 \"^degraded: .*rank 1 is cut off from rank 0\" --uri \$(at 1)" -o fluid.lease=1h
'
test_expect_success 'idtree health of a rank whose lease is over is critical' '
    inside 2 "idtree startctl kill 0 && becomes 2 \"^critical: .*no rank makes ids for it\" --uri \$(at 1)" -o fluid.lease=1s
'
test_expect_success 'idtree health of a rank without the fluid module is degraded, and that of rank 0 without it is critical' '
    inside 2 "idtree module remove -r 1 fluid && is 1 \"^degraded: the module fluid is not loaded on rank 1\" -r 1 && is 0 good &&
        idtree module remove fluid && is 2 \"^critical: the module fluid is not loaded on rank 0\" &&
        idtree module load fluid && becomes 0 \"^good\$\""
'

command -v python3 >/dev/null && test_set_prereq PYTHON
# A broker that lacks an attribute of every idtree broker, and services of idtree, looks like a broker of Flux.
cat >as-flux.sh <<'END'
lacks() { # topic, what stands for the broker
    python3 "$IDTREE_SRCDIR/t/older_broker.py" "${IDTREE_URI#local://}" "$PWD/$2" "$1" & pids="$pids $!"
    wait_until "$2 is there" test -S "$2" && IDTREE_URI=local://$PWD/$2
}
end() { kill $pids; }
END
test_expect_success PYTHON 'idtree health of a Flux broker suggests no command that Flux refuses' '
    inside 1 ". ./as-flux.sh; lacks router.max-pending a && lacks fluid.info b && lacks compressor.list c && lacks ingest.list d &&
        lacks metrics.get e && lacks fluid.watermark f &&
        is 2 \"^critical: the module idtree-flux is not loaded on rank 0 .flux module load .*idtree-flux.so\" &&
        for c in \"doc list\" \"job list\" metrics watermark; do
            ! idtree \$c 2>err && cat err && grep \"belongs to Flux, where idtree serves only fluids: flux exec\" err &&
            ! grep \"idtree module load\" err || { end; exit 1; }
        done && ! idtree job submit -- true 2>err && grep \"belongs to Flux\" err; rc=\$?; end; exit \$rc"
'
test_expect_success 'idtree health is critical if the statedir is removed' '
    init_state "$PWD/state" && inside 1 "becomes 0 good && mv state elsewhere && becomes 2 \"^critical: the store of leases is failing: \"" \
        -o statedir="$PWD/state" -o fluid.lease=2s
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5091-check-instructions.t - instruction counts are reproducible, and growth is reported
test_description='scripts/check-instructions compares counts of instructions with a recorded table'
. "$(dirname "$0")/idtree-sharness.sh"

test_needs python3 valgrind
if "$IDTREE_BUILDDIR/bench/bench-instructions" | head -n 1 | grep -q sanitized; then
    skip_all='valgrind runs no program with sanitizers'
    test_done
fi

tables=$PWD/tables
check() {
    (cd "$IDTREE_BUILDDIR" && "$IDTREE_SRCDIR/scripts/check-instructions" --tables "$tables" "$@")
}
# Multiply the recorded count of NAME by FACTOR.
change() { # NAME FACTOR
    awk -v name="$1" -v by="$2" '{ n = $0; sub(/^ *[^ ]* */, "", n) } n == name { printf "%10.1f  %s\n", $1 * by, n; next } { print }' \
        recorded >"$tables"
}

test_expect_success 'without a table for this compiler check-instructions compares no count, and says how to record a table' '
    printf "[compiler 1.0]\n      10.0  generator: fluid\n" >"$tables" && check >out && cat out &&
    grep "^nothing is compared: there is no table for compiler" out && grep "^    compiler 1.0" out && grep -e "--record" out
'
test_expect_success 'check-instructions adds a recorded table to the tables of other compilers' '
    check --record >out && cat out && cp "$tables" recorded && grep "^\[compiler 1.0\]" recorded && test "$(grep -c "^\[" recorded)" -eq 2 &&
    grep " generator: fluid$" recorded && grep " path: a request that is answered here$" recorded
'
test_expect_success 'check-instructions gets the same counts in another environment' '
    env -i PATH="$PATH" HOME=/ LONG="$(head -c 5000 /dev/zero | tr "\0" x)" IDTREE_BUILDDIR="$IDTREE_BUILDDIR" IDTREE_SRCDIR="$IDTREE_SRCDIR" \
        sh -c "cd \"\$IDTREE_BUILDDIR\" && \"\$IDTREE_SRCDIR/scripts/check-instructions\" --record --tables \"$PWD/again\"" &&
    sed -n "/^\[compiler 1.0/,/^$/!p" recorded >alone && cat again && test_cmp alone again
'
test_expect_success 'check-instructions accepts growth of up to 5 %, and reports more as an error' '
    change "codec: f58 read" 0.97 && check >out && cat out && grep " 0 grew" out &&
    change "codec: f58 read" 0.9 && test_expect_code 1 check >out && cat out &&
    grep "^grew: codec: f58 read takes [0-9.]* instructions, [0-9.]* were recorded (+11.1 %)" out && grep "^If that is meant, record it" out
'
test_expect_success 'check-instructions reports work that needs fewer instructions' '
    change "codec: f58 read" 1.2 && check >out && cat out && grep "^shrank: codec: f58 read" out
'
test_expect_success 'check-instructions reports work that is missing in the table or in the program' '
    sed "s/  generator: sno$/  generator: snow/" recorded >"$tables" && test_expect_code 1 check >out && cat out &&
    grep "^not recorded: generator: sno$" out && grep "^recorded, and counted no more: generator: snow$" out
'
test_expect_success 'without a build check-instructions says where to run it' '
    test_expect_code 2 "$IDTREE_SRCDIR/scripts/check-instructions" 2>err && cat err && grep "in the folder of the build" err
'
test_done

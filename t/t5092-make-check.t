#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5092-make-check.t - make check builds what each test needs, and shows a failure in ten lines
test_description='make check runs tests with what they need, and prints short results'
. "$(dirname "$0")/idtree-sharness.sh"

aux=$IDTREE_SRCDIR/build-aux
needs() { # tests
    "$aux/test-needs" "$IDTREE_SRCDIR" "$1" src/broker/base/topology_test.t src/broker/broker_group_test.t t/ask t/idload t/chaos/chaos
}
# Run one test under the driver. Its output is in out, and has at most eleven lines.
drive() { # name, script
    printf '#!/bin/sh\n%s\n' "$2" >"$1.t" && chmod +x "$1.t" &&
        "$aux/check-driver" --test-name "$1.t" --log-file "$1.log" --trs-file "$1.trs" --color-tests no --enable-hard-errors yes \
            --expect-failure no -- "./$1.t" >out && cat out && test "$(wc -l <out)" -le 11
}
# Run make without the variables of the make that runs this test.
fresh_make() { env -i PATH="$PATH" make -s "$@"; }

test_expect_success 'for make check a test in C needs only its own program' '
    needs src/broker/base/topology_test.t >out && echo src/broker/base/topology_test.t >want && test_cmp want out
'
test_expect_success 'for make check a shell test needs what is installed, and the programs that the test and its scripts name' '
    needs t/t2001-flux-client.t >out && echo for-shell-tests >want && test_cmp want out &&
    needs "t/t8010-chaos.t t/t9010-flux-module.t" >out && printf "%s\n" for-shell-tests t/ask t/chaos/chaos t/idload >want &&
    test_cmp want out
'
test_expect_success 'make check refuses an unknown name of a test, and suggests a similar test' '
    test_expect_code 2 needs topology_test.t 2>err && cat err && grep "no test topology_test.t .*src/broker/base/topology_test.t?" err &&
    test_expect_code 2 needs t/t9999-nothing.t 2>err && grep "no test t/t9999-nothing.t below [^ ]*$" err
'
test_expect_success 'make check TESTS=... uses another target than make check' '
    cp "$IDTREE_BUILDDIR/GNUmakefile" . && printf "check all:\n\t@echo all of it\ncheck-some:\n\t@echo some: \$(TESTS)\n" >Makefile &&
    fresh_make check TESTS="a.t b.t" >out && grep "^some: a.t b.t$" out &&
    fresh_make check >out && grep "^all of it$" out && fresh_make TESTS=a.t >out && grep "^all of it$" out &&
    fresh_make check TESTS=a.t check_PROGRAMS= >out && grep "^all of it$" out &&
    fresh_make check TESTS= >out && grep "^all of it$" out
'
test_expect_success 'for a test that passes make check prints one line with the number of the test in the run' '
    IDTREE_TEST_LOGS="whole.log other.log" && export IDTREE_TEST_LOGS &&
    drive whole "echo ok 1 - a; echo ok 2 - b; echo 1..2" && grep "^\[1/2\] whole.t: 2 passed in [0-9]* s$" out &&
    test "$(wc -l <out)" -eq 1 && drive other "echo ok 1 - a; echo \"ok 2 - b # SKIP not here\"; echo 1..2" &&
    grep "^\[2/2\] other.t: 1 passed, 1 skipped in" out
'
test_expect_success 'for a failed test make check prints its output and the name of its log' '
    drive broken "echo ok 1 - a; echo not ok 2 - the sky is blue; echo \"# it is grey\"; echo ok 3; echo 1..3; exit 1" &&
    grep "broken.t: 1 failed, 2 passed in" out && grep "^FAIL: broken.t 2 - the sky is blue$" out && grep "# it is grey" out &&
    grep "broken.log; again: make check TESTS=broken.t" out
'
test_expect_success 'make check prints a hundred failures of a test, or the output of a killed program, in at most ten lines' '
    drive many "i=0; while [ \$i -lt 100 ]; do i=\$((i + 1)); echo not ok \$i; echo \"# why \$i\"; done; echo 1..100; exit 1" &&
    grep "^FAIL: many.t: 98 more$" out && grep "# why 1$" out &&
    drive killed "echo ok 1; seq 1000 >&2; kill -KILL \$\$" && grep "^ERROR: killed.t - " out && grep "^ *1000$" out
'
test_expect_success 'for a failed shell test make check prints the end of the output of the failed part only' '
    mkdir -p inner/t && printf "%s\n" "test_description=x" ". \"$IDTREE_SRCDIR/t/idtree-sharness.sh\"" \
        "test_expect_success one \"echo before\"" "test_expect_success two \"" "    echo the cause; echo its reason >&2" "    false\"" \
        test_done >inner/t/t0000-inner.t &&
    test_expect_code 1 env IDTREE_BUILDDIR="$PWD/inner" sh inner/t/t0000-inner.t >out && cat out && grep "^not ok 2 - two" out &&
    grep "^# the cause$" out && grep "^# its reason$" out && ! grep "^# before" out && test -z "$(ls inner/t/output.* 2>/dev/null)"
'
# The folder of this test has a blank in its name.
folders=$(mktemp -d "/tmp/idtree-folders.XXXXXX") && cleanup "rm -rf '$folders'"
configure_fails() { # folder, option...
    mkdir "$folders/$1" && (cd "$folders/$1" && shift && test_must_fail "$IDTREE_SRCDIR/configure" -q "$@") >err 2>&1 && cat err &&
        test ! -e "$folders/$1/Makefile"
}
test_expect_success 'make refuses folders with names that libtool cannot use before it makes any file' '
    configure_fails a,b && grep "cannot build in \"$folders/a,b\".*build in another" err &&
    configure_fails "a b" && grep "cannot build in \"$folders/a b\"" err &&
    configure_fails plain --prefix=/opt/x,y && grep "cannot install to prefix \"/opt/x,y\".*choose another" err &&
    test_must_fail fresh_make install DESTDIR="/tmp/a b" >err 2>&1 && cat err && grep "DESTDIR \"/tmp/a b\" has a blank in it" err
'
test_done

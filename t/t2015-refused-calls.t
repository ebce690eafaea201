#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2015-refused-calls.t - programs under a kernel of 2018, or a seccomp profile of that time, which refuse newer calls
test_description='each system call that is newer than 2018 has a fallback or an error message'
. "$(dirname "$0")/idtree-sharness.sh"

refuse=$IDTREE_BUILDDIR/t/refuse
if ! "$refuse" EPERM pidfd_open -- true 2>why; then
    skip_all="$(cat why)"
    test_done
fi
PATH=$IDTREE_BUILDDIR/src/broker:$IDTREE_BUILDDIR/src/http:$PATH
TMPDIR=/tmp/idtree-refused.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

for how in "ENOSYS newer" "EPERM pidfd_open" "EPERM memfd_create" "ENOSYS memfd_create"; do
    test_expect_success "$how: an instance runs, and ends with its command" '
        "$refuse" $how -- idtree start -s 3 sh -c "idtree id new -n 3 && exit 3" >out; test $? = 3 &&
        test "$(sort -u out | wc -l)" = 3 && test_nothing_in "$TMPDIR"
    '
    test_expect_success "$how: a broker without a launcher runs, and ends with its command" '
        "$refuse" $how -- idtree-broker sh -c "idtree id new && exit 3" >out; test $? = 3 && test -s out &&
        test_expect_code 137 "$refuse" $how -- idtree-broker sh -c "kill -9 \$\$" &&
        test_expect_code 127 "$refuse" $how -- idtree-broker ./nosuch && test_nothing_in "$TMPDIR"
    '
    test_expect_success "$how: SIGTERM ends a broker whose command is running" '
        rm -f ready && test_launch "$refuse" $how -- idtree-broker sh -c "echo up >ready; exec sleep 1000" &&
        wait_until "it runs" test -e ready && kill $test_pid && test_all_gone && ! wait $test_pid && test_nothing_in "$TMPDIR"
    '
done
# A program with a sanitizer ends immediately when it gets no thread.
is_sanitized || test_set_prereq PLAIN
for how in "EPERM clone3" "EPERM newer"; do
    test_expect_success PLAIN "$how: a broker that cannot create threads reports why it does not start" '
        test_expect_code 1 "$refuse" $how -- idtree-broker true 2>err && grep "no thread can be made: .*clone3.*ENOSYS" err &&
        test_expect_code 1 "$refuse" $how -- idtree start -s 2 true 2>err && grep "clone3" err && ! grep SIGABRT err &&
        test_nothing_in "$TMPDIR"
    '
done
test_expect_success PLAIN 'most clients need no thread, and a client that needs one reports the error' '
    idtree start sh -c "
        \"$refuse\" EPERM newer -- idtree id new -n 2 && \"$refuse\" EPERM newer -- idtree getattr size
        \"$refuse\" EPERM newer -- idtree overlay status" >out 2>err; test "$(wc -l <out)" = 3 &&
    grep "cannot start a thread: Operation not permitted" err
'
test_expect_success 'a broker distinguishes a filter that refuses chown from a group to which the user does not belong' '
    test_expect_code 2 "$refuse" EPERM chown -- idtree-broker -o access.group="$(id -gn)" true 2>err && cat err &&
    grep "(access.group): chown: Operation not permitted (does SystemCallFilter of the unit refuse it?)" err &&
    test_nothing_in "$TMPDIR"
'
test_done

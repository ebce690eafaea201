#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2020-modules.t - modules are loaded and removed in running brokers; echo runs in a thread, inlined on the broker's
# reactor
test_description='modules are loaded, used and removed, and leave nothing behind'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3 -o module.path="$IDTREE_BUILDDIR/t/modules/.libs:$IDTREE_BUILDDIR/src/modules/.libs"

pid_of() { idtree getattr -r "$1" broker.pid; }
count_files() { ls "/proc/$(pid_of "$1")/fd" | wc -l; }
count_threads() { ls "/proc/$(pid_of "$1")/task" | wc -l; }
again() { # RANK NAME
    for i in $(seq 50); do
        idtree module load -r $1 $2 && idtree ping -c 1 "$1!$2" >/dev/null && idtree module remove -r $1 $2 || return 1
    done
}

test_expect_success 'a module is found by its name in module.path, and by its path' '
    idtree module load echo && idtree module load -r 2 "$IDTREE_BUILDDIR/t/modules/.libs/inlined.so" &&
    idtree module list | grep "^echo .*running" && idtree module list -r 2 | grep "^inlined .*running"
'
test_expect_success 'modules are loaded on one rank, and other ranks do not have them' '
    idtree ping -c 1 0!echo && idtree ping -c 1 2!inlined && test_must_fail idtree ping -c 1 1!echo 2>err &&
    grep "No service matching echo.ping is registered" err
'
test_expect_success 'a request that names no rank is served by the nearest rank on the way to rank 0 that has the service' '
    uri=${IDTREE_URI%0}1 && idtree ping --uri $uri -c 1 echo >out && grep "0!echo\|echo.ping" out &&
    test_must_fail idtree ping --uri $uri -c 1 inlined 2>err && grep "No service matching" err
'
test_expect_success 'one file of a module can be loaded under two names' '
    idtree module load --name echo2 echo && idtree ping -c 1 echo2 && idtree module remove echo2 && idtree ping -c 1 echo
'
test_expect_success 'lsattr lists each attribute of a module once, with its default, wherever the module runs' '
    idtree lsattr -v | grep "^fluid.lease  *60s$" && idtree module remove -r 1 fluid &&
    idtree module load -r 1 fluid --thread && idtree lsattr -r 1 >names && test $(grep -c "^fluid.lease$" names) = 1 &&
    idtree module remove -r 1 fluid && idtree module load -r 1 fluid && idtree getattr -r 1 fluid.lease
'
test_expect_success 'loaded modules can be removed' '
    idtree module remove echo && idtree module remove -r 2 inlined && ! idtree module list | grep echo &&
    test_must_fail idtree module remove echo
'
files=$(count_files 1) threads=$(count_threads 1)
test_expect_success '50 times loading and removing each module leaves no descriptor and no thread behind' '
    again 1 echo && again 1 inlined && again 1 echo && again 1 inlined &&
    test "$(count_files 1)" = "$files" && test "$(count_threads 1)" = "$threads"
'
test_expect_success 'loading and removing fluid leaves nothing behind, and ids stay unique and in order' '
    for i in $(seq 30); do
        idtree id new -r 1 -n 5 --to dec && idtree module remove -r 1 fluid && idtree module load -r 1 fluid || return 1
    done >ids && test "$(sort ids | uniq -d | wc -l)" = 0 && test "$(wc -l <ids)" = 150 && sort -n -c ids &&
    test "$(count_files 1)" = "$files"
'
test_expect_success 'a module that cannot be loaded is refused with the reason' '
    test_must_fail idtree module load inlined fail 2>err && grep "the argument .fail. was given" err &&
    test_must_fail idtree module load inlined --thread fail 2>err && grep "the argument .fail. was given" err &&
    idtree module list >out && ! grep inlined out &&
    test_must_fail idtree module load /dev/null 2>err && grep "null" err &&
    printf "not an object" >bad.so && test_must_fail idtree module load "$PWD/bad.so" 2>err && grep "bad" err &&
    test_must_fail idtree module load nosuch 2>err && grep "not found in search path" err &&
    test_must_fail idtree module load --name log echo 2>err && grep "log" err
'
test_expect_success 'a module that ends with an error before it runs does not count as loaded, and the reason is reported' '
    test_must_fail idtree module load -r 1 echo fail 2>err && grep "echo.*Invalid argument" err &&
    idtree module list -r 1 >out && ! grep echo out && idtree module load -r 1 echo && idtree module remove -r 1 echo
'
test_expect_success 'a module that was loaded by path can be removed by path and by name' '
    for module in echo inlined; do
        file=$IDTREE_BUILDDIR/t/modules/.libs/$module.so &&
        for name in "$file" $module; do
            idtree module load -r 1 "$file" && idtree ping -c 1 1!$module &&
            idtree module remove -r 1 "$name" && test_must_fail idtree module remove -r 1 "$name" || return 1
        done
    done && cp "$file" copy.so && idtree module load -r 1 ./copy.so && test_must_fail idtree module remove -r 1 "$file" &&
    idtree module remove -r 1 ./copy.so
'
test_expect_success 'removing a module by a path that was loaded under several names removes the one with the name of the file' '
    idtree module load --name other "$IDTREE_BUILDDIR/t/modules/.libs/echo.so" && idtree module load echo &&
    idtree module remove "$IDTREE_BUILDDIR/t/modules/.libs/echo.so" && idtree ping -c 1 0!other &&
    test_must_fail idtree ping -c 1 0!echo && idtree module remove "$IDTREE_BUILDDIR/t/modules/.libs/echo.so" &&
    test_must_fail idtree ping -c 1 0!other
'
test_expect_success 'each service of the broker prints its counters, even if it has none' '
    for name in attr broker config event log metrics module overlay service shutdown state-machine; do
        idtree module stats --json -r 1 $name >stats && jq -e type stats || return 1
    done && idtree logger once && idtree module stats --json log >stats &&
    jq -e ".lines > 0 and .kept > 0 and .kept <= .room and .followers == 0" stats
'
test_expect_success 'rusage reports the resource usage of the process, of its children or of the thread, as requested' '
    for who in self children thread; do
        IDTREE_URI=$IDTREE_URI "$IDTREE_BUILDDIR/t/ask" 1 fluid.rusage "{\"who\":\"$who\"}" | grep maxrss || return 1
    done && "$IDTREE_BUILDDIR/t/ask" 1 fluid.rusage "{}" | grep maxrss &&
    test_must_fail "$IDTREE_BUILDDIR/t/ask" 1 fluid.rusage "{\"who\":\"badopt\"}" 2>err &&
    grep "EINVAL.*who must be self, children or thread, not \"badopt\"" err &&
    test_must_fail "$IDTREE_BUILDDIR/t/ask" 1 fluid.rusage "{\"who\":7}" 2>err && grep EPROTO err
'
test_expect_success 'a module for Flux brokers is refused without calling it, and the broker continues to serve' '
    for module in modules/.libs/foreign.so flux-core/.libs/idtree-flux.so; do
        for thread in "" --thread; do
            test_must_fail idtree module load -r 1 "$IDTREE_BUILDDIR/t/$module" $thread 2>err &&
            grep "is a module for Flux.s broker, not for idtree.s" err || return 1
        done
    done && idtree ping -c 1 1 && idtree id new -r 1
'
test_expect_success 'a broker does not start with a module for Flux brokers, and names the module' '
    test_must_fail idtree start -s 1 -o broker.modules="$IDTREE_BUILDDIR/t/modules/.libs/foreign.so" true 2>err &&
    grep "foreign.so is a module for Flux.s broker" err
'
test_done

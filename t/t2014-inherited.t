#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2014-inherited.t - programs that start with signals, limits, modes and descriptors as no shell leaves them
test_description='a program sets the signals, limits and descriptors that it inherits from its caller, or reports what is missing'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs setpriv prlimit

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
TMPDIR=/tmp/idtree-inherited.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"

# The programs without the shell script of libtool around them, which would set signals.
broker=$IDTREE_BUILDDIR/src/broker/.libs/idtree-broker
test -x "$broker" || broker=$IDTREE_BUILDDIR/src/broker/idtree-broker
if env --ignore-signal=CHLD true 2>/dev/null; then test_set_prereq ENV_SIGNALS; fi

test_expect_success ENV_SIGNALS 'with SIGCHLD ignored an instance ends with its command, and returns the exit status of the command' '
    test_expect_code 3 timeout -s KILL "$WAIT_S" env --ignore-signal=CHLD idtree start -s 2 sh -c "exit 3" &&
    test_expect_code 3 timeout -s KILL "$WAIT_S" env --ignore-signal=CHLD "$broker" sh -c "exit 3" &&
    test_expect_code 3 timeout -s KILL "$WAIT_S" env --ignore-signal=CHLD idtree start -s 3 --per-process 2 sh -c "exit 3" &&
    test_nothing_in "$TMPDIR"
'
test_expect_success ENV_SIGNALS 'with SIGCHLD ignored SIGTERM ends an instance, and a killed launcher leaves nothing behind' '
    test_launch env --ignore-signal=CHLD idtree start -s 2 sh -c "echo up >ready; exec sleep 1000" &&
    wait_until "it runs" test -e ready && kill $test_pid && test_all_gone && wait $test_pid; test $? = 143 && rm ready &&
    test_launch env --ignore-signal=CHLD idtree start -s 2 sh -c "echo \$PPID >ready; exec sleep 1000" &&
    wait_until "it runs" test -s ready && kill -KILL $(cat ready) && test_all_gone && wait $test_pid; test $? = 137 &&
    test_nothing_in "$TMPDIR"
'
# Signals 32 and 33 are left out. They belong to the C library, and children of posix_spawn (), such as those of make,
# ignore them.
signals='sed -nE "s/[01][08](.......)$/00\1/; /^Sig(Blk|Ign)/p" /proc/self/status'
test_expect_success ENV_SIGNALS 'a command starts with no signal blocked, and ignores only those that nohup ignores' '
    env --default-signal --ignore-signal --default-signal=HUP --block-signal idtree start sh -c "$signals" >out &&
    env --default-signal --ignore-signal --default-signal=HUP --block-signal "$broker" sh -c "$signals" >>out &&
    test $(grep -c ":.0000000000000000$" out) = 4 &&
    env --ignore-signal --block-signal idtree start sh -c "$signals" >out &&
    env --ignore-signal --block-signal "$broker" sh -c "$signals" >>out &&
    test $(grep -c "Blk:.0000000000000000$" out) = 2 && test $(grep -c "Ign:.0000000000000001$" out) = 2
'
# SIGTERM, which a program reads after SIGHUP, ends it.
test_expect_success ENV_SIGNALS 'a SIGHUP that nohup ignores ends neither an instance nor its command' '
    rm -f ready &&
    for program in "idtree start" "$broker"; do
        test_launch env --ignore-signal=HUP $program sh -c "echo up >ready; exec sleep 1000" &&
        wait_until "it runs" test -e ready && kill -HUP $test_pid && kill -TERM $test_pid && test_all_gone &&
        wait $test_pid; test $? = 143 && rm ready || return 1
    done
'
test_expect_success ENV_SIGNALS 'a SIGHUP that arrives before a broker can read its files again does not end it' '
    echo "[fluid]" >early.conf &&
    test_expect_code 3 env --block-signal=HUP sh -c "kill -HUP \$\$; exec \"\$@\"" sh "$broker" -c early.conf sh -c "exit 3"
'
test_expect_success ENV_SIGNALS 'a signal ends a client whose caller blocks signals' '
    idtree start sh -c "env --block-signal idtree ping 0 >pings & until test -s pings; do sleep 0.02; done; kill -TERM \$!; wait \$!; test \$? = 143"
'
# The superuser may write whatever the mode says.
as_user() { if test "$(id -u)" = 0; then setpriv --reuid 64021 --regid 64021 --clear-groups "$@"; else "$@"; fi; }
if as_user test -r "$IDTREE_SRCDIR/t/wait.sh" -a -x "$IDTREE_BUILDDIR/src/cmd/idtree"; then test_set_prereq USER_REACHES_TREE; fi
test_expect_success USER_REACHES_TREE 'an instance runs, and its files belong to the owner only, whatever the umask' '
    mkdir "$TMPDIR/any" && chmod 777 "$TMPDIR/any" && chmod 755 "$TMPDIR" &&
    for mask in 0777:0077 0700:0000 0:0000; do
        (umask ${mask%:*} && TMPDIR=$TMPDIR/any && export TMPDIR &&
            as_user idtree start -s 2 sh -c "idtree id new && umask") | cat >out && test "$(tail -n 1 out)" = ${mask#*:} || return 1
    done; test_nothing_in "$TMPDIR/any" && rmdir "$TMPDIR/any"
'
# Sanitizers have files of their own and larger stack frames.
is_sanitized || test_set_prereq PLAIN
test_expect_success PLAIN 'a limit of file sizes ends no program: a program reports the file that it cannot write, or continues without the file' '
    prlimit --fsize=0 idtree start -s 2 true 2>&1 | cat >out && grep "instance: File too large" out && ! grep SIGXFSZ out &&
    prlimit --fsize=4096 idtree start -s 2 sh -c "idtree id new; echo ended" 2>/dev/null | cat >out && grep ended out
'
test_expect_success PLAIN 'each program refuses a hard stack limit below 256 KiB, and runs with a higher limit' '
    for program in idtree "$IDTREE_BUILDDIR/src/cmd/idtree-all" "$broker"; do
        ! prlimit --stack=204800:204800 $program --version 2>err >out && grep "200 KiB (ulimit -Hs), and at least 256 KiB" err || return 1
    done
    prlimit --stack=204800: idtree start -s 2 idtree id new &&
    prlimit --stack=307200:307200 idtree start -s 2 idtree id new
'
# A soft limit cannot exceed the hard limit.
if test "$(ulimit -Hs)" = unlimited; then test_set_prereq UNLIMITED_STACK; fi
test_expect_success PLAIN,UNLIMITED_STACK 'an instance runs without a stack limit, and with a limit that is too large for a thread' '
    prlimit --stack=unlimited: idtree start -s 2 idtree id new &&
    prlimit --stack=100000000000: idtree start -s 2 idtree id new
'
test_expect_success 'an instance runs with stdin, stdout and stderr closed' '
    idtree start -s 2 sh -c "idtree id new >made" <&- >&- 2>&- && test -s made
'
test_done

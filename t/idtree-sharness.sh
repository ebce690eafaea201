# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# idtree-sharness.sh - functions that shell tests share; source it after setting test_description:
#
#     test_description='...'
#     . "$(dirname "$0")/idtree-sharness.sh"
#     test_needs python3         # skip all tests if a command is missing
#     test_under_idtree 4        # if the test wants an instance
#
# No test waits without a time limit: see wait.sh.
#
# Each test works in its own directory under t/ of the build tree, finds the built idtree first in PATH, and leaves
# nothing in HOME. make check sets IDTREE_SRCDIR and IDTREE_BUILDDIR; to run a test by hand, start it in the top folder
# of the build tree.

test_args=$*
test_cwd=$PWD
test_self=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
: "${IDTREE_SRCDIR:=$(dirname "$(dirname "$test_self")")}"
if test -z "$IDTREE_BUILDDIR"; then
    if test -e "$PWD/src/cmd/idtree"; then IDTREE_BUILDDIR=$PWD; else IDTREE_BUILDDIR=$IDTREE_SRCDIR; fi
fi
export IDTREE_SRCDIR IDTREE_BUILDDIR
# Run the programs directly. The scripts of libtool, which set LD_LIBRARY_PATH and run them, are twenty times slower.
case :$PATH: in
*:"$IDTREE_BUILDDIR/src/cmd":*) ;;
*)
    PATH=$IDTREE_BUILDDIR/src/cmd/.libs:$IDTREE_BUILDDIR/src/cmd:$IDTREE_BUILDDIR/t/bin:$PATH # bin has python3
    LD_LIBRARY_PATH=$IDTREE_BUILDDIR/src/common/libidtree/.libs:$IDTREE_BUILDDIR/src/common/libpage/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    ;;
esac

SHARNESS_TEST_SRCDIR=/usr/share/sharness
SHARNESS_TEST_DIRECTORY=$IDTREE_BUILDDIR/t
HARNESS_ACTIVE=1 # makes sharness write no files of results
export PATH SHARNESS_TEST_SRCDIR SHARNESS_TEST_DIRECTORY HARNESS_ACTIVE
if ! test -f $SHARNESS_TEST_SRCDIR/sharness.sh; then
    echo "1..0 # SKIP sharness is not installed"
    exit 0
fi
# ThreadSanitizer cannot see into libzmq, which is not built with it.
: "${TSAN_OPTIONS:=suppressions=$IDTREE_SRCDIR/t/tsan.supp}"
export TSAN_OPTIONS
# A make that a test runs is independent of the make that runs the test, because it does not have its jobserver pipe.
unset MAKEFLAGS MFLAGS MAKELEVEL
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
if test -z "$IDTREE_TEST_INSIDE"; then
    unset IDTREE_URI FLUX_URI
fi
mkdir -p "$SHARNESS_TEST_DIRECTORY"
# sharness makes its directory below this one
cd "$SHARNESS_TEST_DIRECTORY" || exit 1
. $SHARNESS_TEST_SRCDIR/sharness.sh
. "$IDTREE_SRCDIR/t/wait.sh"

# The output of a test is kept until the script ends, and its last lines are shown if the test fails. The file has no
# name, so that it disappears even if this script is killed.
# shellcheck disable=SC2154 # sharness sets verbose, test_count, immediate
if test "$verbose" != t; then
    test_output=$(mktemp "$SHARNESS_TEST_DIRECTORY/output.XXXXXX") && exec 3>>"$test_output" 4>&3 && rm -f "$test_output" || exit 1
fi

# sharness calls this function if a test fails. Before a test starts, sharness writes "expecting success: SCRIPT" to
# descriptor 3.
# shellcheck disable=SC2154
test_failure_() { # name, script
    test_failure=$((test_failure + 1))
    say_color error "not ok $test_count - $1"
    echo "$2" | sed 's/^/#\t/'
    test "$verbose" = t || awk -v script="$(echo "$2" | wc -l)" '
        /^expecting success: / { n = 0; skip = script }
        skip > 0 { skip--; next }
        { line[n++] = $0 }
        END { for (i = n > 20 ? n - 20 : 0; i < n; i++) print "# " line[i] }' </proc/self/fd/3
    test -z "$immediate" || { EXIT_OK=t; exit 1; }
}

# sharness cleans up only if all tests passed. A script that fails or is terminated must leave no process behind either.
test_ends() {
    test_code=$?
    trap - EXIT
    # shellcheck disable=SC2154
    test $test_code -eq 0 || eval "$final_cleanup" >&3 2>&4
    (exit $test_code)
    die
}
trap test_ends EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Skip all tests if a command is missing.
test_needs() { # command...
    for test_needed; do
        command -v "$test_needed" >/dev/null || {
            skip_all="$test_needed is not installed"
            test_done
        }
    done
}

# Run the rest of this test inside an instance of N brokers; more arguments go to idtree start.
test_under_idtree() { # N, option...
    test -z "$IDTREE_TEST_INSIDE" || return 0
    test_size=$1
    shift
    cd "$test_cwd" || exit 1
    IDTREE_TEST_INSIDE=1
    export IDTREE_TEST_INSIDE
    # shellcheck disable=SC2086
    exec idtree start -s "$test_size" "$@" -- /bin/sh "$test_self" $test_args
}

# Run a command in the background. test_all_gone then waits until the command and all processes that it started have
# ended, which it notices because they all have the write end of a fifo open, and must not close it. The pid of the
# command is in $test_pid.
test_launch() { # command...
    rm -f gone
    mkfifo gone && exec 8<>gone || return 1
    "$@" 9>gone 8<&- &
    test_pid=$!
    exec 7<gone 8<&-
}

test_all_gone() {
    wait_end 7
    exec 7<&-
}

# Make the state of a new instance in a folder, for -o statedir=, unless the folder has one.
init_state() { # folder, option of idtree init...
    test -e "$1/instance" || idtree init --statedir "$@" >/dev/null
}

# True if the brokers were built with a sanitizer.
is_sanitized() { nm -D "$IDTREE_BUILDDIR/src/broker/.libs/idtree-broker" 2>/dev/null | grep -q "__[at]san"; }

# True if a folder is empty, except for the file that ThreadSanitizer puts into TMPDIR when a program starts, and
# removes immediately. The file stays if the program is killed in between.
test_nothing_in() { # folder
    test_left=$(ls -A "$1" | grep -v "^tsan\.rodata\.")
    test -z "$test_left" || { echo "left in $1: $test_left"; return 1; }
}

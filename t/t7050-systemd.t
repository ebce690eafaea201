#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7050-systemd.t - the broker and the service manager: notifications, lines for the journal, and the units
test_description='a broker notifies a service manager of its state, and the units are as restricted as possible'
. "$(dirname "$0")/idtree-sharness.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
TMPDIR=/tmp/idtree-t7050.$$
mkdir "$TMPDIR" && export TMPDIR
cleanup "rm -rf '$TMPDIR'"
command -v python3 >/dev/null && grep -q "define HAVE_LIBSYSTEMD 1" "$IDTREE_BUILDDIR/config.h" && test_set_prereq NOTIFY
test_have_prereq NOTIFY || say_color skip "# no python3, or built without libsystemd: nobody is told anything"
command -v systemd-analyze >/dev/null && test_set_prereq SYSTEMD

# The path of the test's own folder is too long for a socket.
told=$TMPDIR/told
notify() { (cd "$TMPDIR" && exec python3 "$IDTREE_SRCDIR/t/notify.py" "$@"); }
is_told() { grep -qx "$@" "$told"; }

test_expect_success NOTIFY 'a broker notifies the service manager once when it serves and once when it stops, each time with a status text' '
    notify "$told" idtree-broker true && cat "$told" &&
    test "$(grep -c "^READY=1$" "$told")" = 1 && test "$(grep -c "^STOPPING=1$" "$told")" = 1 &&
    test "$(grep -n "^READY=1" "$told" | cut -d: -f1)" -lt "$(grep -n "^STOPPING=1" "$told" | cut -d: -f1)" &&
    is_told "STATUS=rank 0 of 1 serves" && is_told "STATUS=rank 0 of 1 stops.*"
'
test_expect_success NOTIFY 'a broker that cannot start never reports READY' '
    test_expect_code 2 notify "$told" idtree-broker -o broker.modules=nosuch true 2>err && grep nosuch err &&
    ! grep READY "$told"
'
test_expect_success NOTIFY 'only the broker notifies the service manager: its command does not inherit the socket of the manager' '
    notify "$told" idtree-broker env >env && grep IDTREE_URI env && ! grep "NOTIFY_SOCKET\|WATCHDOG_" env
'
test_expect_success NOTIFY 'a broker notifies a watchdog while its reactor runs, and sends no such notification without a watchdog' '
    mkfifo stop && { WATCHDOG_USEC=20000 notify "$told" idtree-broker sh -c "cat \"$PWD/stop\"" & } && test_pid=$! &&
    wait_until "the second beat" holds "test \$(grep -c WATCHDOG=1 \"$told\") -ge 2" && : >stop && wait $test_pid &&
    notify "$told" idtree-broker true && ! grep WATCHDOG "$told"
'
test_expect_success NOTIFY 'the status text follows the tree: a broker reports missing ranks below it, and the loss of all its ancestors' '
    mkfifo go && { notify "$told" idtree start -s 3 --topology kary:1 -o log-stderr-level=2 -- \
        sh -c "idtree startctl kill 1; cat \"$PWD/go\"; idtree startctl run 1; cat \"$PWD/go\"" & } && test_pid=$! &&
    wait_until "rank 0 misses some" is_told "STATUS=rank 0 of 3 serves; ranks below it are missing" &&
    wait_until "rank 2 lost its parent" is_told "STATUS=rank 2 of 3 serves; no ancestor answers" &&
    : >go && wait_until "all are back" holds "tac \"$told\" | grep -m1 \"STATUS=rank 0\" | grep -x \"STATUS=rank 0 of 3 serves\"" &&
    : >go && wait $test_pid
'
test_expect_success 'lines for the journal begin with their level, and other lines do not' '
    : >journal && JOURNAL_STREAM=$(stat -c %d:%i journal) idtree-broker -o log-stderr-level=6 true 2>>journal && cat journal &&
    grep "^<6>idtree: broker\[0\]: stops" journal && ! grep -v "^<[0-7]>idtree" journal &&
    JOURNAL_STREAM=1:1 idtree-broker -o log-stderr-level=6 true 2>plain && grep "^idtree: broker\[0\]: stops" plain &&
    : >journal && JOURNAL_STREAM=$(stat -c %d:%i journal)x idtree-broker -o log-stderr-level=6 true 2>>journal &&
    grep "^idtree: " journal
'
# The unit as installed, except for the program, which is not yet at its place, and the manual.
unit_is_fit() { # unit, name of an instance of it
    sed -e "s/^\(Exec[A-Z][a-z]*\)=[^ ]*/\1=\/bin\/true/" -e "/^Documentation/d" "$IDTREE_BUILDDIR/etc/systemd/$1" >"$2" &&
    systemd-analyze verify "./$2" >out 2>&1 && ! grep idtree out && systemd-analyze security --offline=true --threshold=25 "./$2" >out ||
        { cat out; false; }
}
test_expect_success SYSTEMD 'systemd accepts the units, and rates their exposure at 2.5 at most' '
    unit_is_fit idtree.service idtree.service && unit_is_fit idtree@.service idtree@test.service &&
    unit_is_fit idtree-root.service idtree-root.service &&
    { ! test -x "$IDTREE_BUILDDIR/src/http/idtree-http" || { cp "$IDTREE_BUILDDIR/etc/systemd/idtree-http.socket" . && unit_is_fit idtree-http.service idtree-http.service; }; }
'
# The system calls that a word of SystemCallFilter names. A set may contain other sets.
calls_of() {
    case $1 in
    @*) for inner in $(systemd-analyze syscall-filter "$1" | sed -n "s/^    \([@a-z_0-9]*\)$/\1/p"); do calls_of "$inner"; done ;;
    *) echo "$1" ;;
    esac
}
# The system calls that a unit allows. Its lines apply in order, and a line that begins with ~ removes calls.
allowed_by() { # unit
    : >allowed
    sed -n "s/^SystemCallFilter=//p" "$1" | while read -r line; do
        for word in ${line#\~}; do calls_of "$word"; done | sort -u >calls
        case $line in
        ~*) comm -23 allowed calls >rest ;;
        *) sort -u allowed calls >rest ;;
        esac
        mv rest allowed
    done
}
test_expect_success SYSTEMD 'the units allow the system calls that settings need: chown for access.group, and those that set limits and create threads' '
    for unit in idtree.service idtree@.service idtree-root.service; do
        allowed_by "$IDTREE_BUILDDIR/etc/systemd/$unit" && for call in chown fchownat prlimit64 sched_setscheduler clone3 memfd_create flock; do
            grep -qx "$call" allowed || { echo "$unit refuses $call"; return 1; }
        done && ! grep -x "mount\|setuid\|bpf" allowed || return 1
    done
'
test_expect_success 'systemd does not restart a broker after an exit status that a restart cannot fix' '
    grep -x "RestartPreventExitStatus=2 3" "$IDTREE_BUILDDIR/etc/systemd/idtree.service" &&
    grep -x "Type=notify" "$IDTREE_BUILDDIR/etc/systemd/idtree.service" && ! grep "@[a-zA-Z]*@" "$IDTREE_BUILDDIR"/etc/systemd/*.service
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5071-answers.t - after a mistake, commands say what is wrong and what to do, and no more
test_description='error messages of commands are complete sentences'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2

# The command fails with a line that contains the text, and with no line that ends with a bare errno message.
says() { # text, command...
    said=$1 && shift
    test_must_fail "$@" >out 2>err </dev/null && grep -e "$said" err &&
        ! grep -E "(File exists|No such file or directory|Invalid argument|Function not implemented)$" err ||
        { echo "$@"; cat err; return 1; }
}

test_expect_success 'the message for a module that is missing or loaded already names the module' '
    says "^idtree module remove: nope: no such module is loaded (idtree module list" idtree module remove nope &&
    says "^idtree module load: fluid: a module fluid is loaded already: remove it first" idtree module load fluid &&
    says "nope: module not found in search path: there is no nope.so in /" idtree module load nope &&
    says "/nope.so: the broker finds no such file" idtree module load /nope.so &&
    says "/etc/passwd: the file cannot be loaded as a module: .*passwd" idtree module load /etc/passwd &&
    says "No service matching nope.stats-get" idtree module stats nope
'
test_expect_success 'the message for an invalid attribute, rank, topic or id has the invalid text' '
    says "nope: unknown attribute" idtree getattr nope && says "nope: unknown attribute" idtree setattr nope 1 &&
    says "size: attribute may not be updated" idtree setattr size 1 && says "log-level=99: must be a level" idtree setattr log-level 99 &&
    says "there is no rank 9: the instance has ranks 0 to 6" idtree id new -r 9 &&
    says "there is no rank 9: the instance has ranks 0 to 6" idtree overlay status -r 9 &&
    says "the TOPIC is empty" idtree event pub "" && says "is not an id" idtree id show xyz &&
    says "unknown command .nope. (idtree id -h lists them)" idtree id nope && says "did you mean new" idtree id neww
'
test_expect_success 'a module that accepts no arguments refuses them, and is not loaded' '
    for m in fluid flake compressor; do
        idtree module remove -r 2 $m && says "$m: .fluid.lease=9.: this module takes no arguments: set an attribute" idtree module load -r 2 $m fluid.lease=9 &&
        ! idtree module list -r 2 | grep "^$m " && idtree module load -r 2 $m || return 1
    done
'
test_expect_success 'a command uses neither a closed standard descriptor nor a file that was opened in its place' '
    says "cannot write: Bad file descriptor" sh -c "exec idtree id new >&-" && says "cannot write" sh -c "exec idtree lsattr >&-" &&
    says "cannot read stdin: Bad file descriptor" sh -c "exec idtree id show - <&-" &&
    idtree broker -o log-stderr-level=7 -o rundir="$PWD/run" sh -c "idtree id new" 2>&- >id </dev/null && test "$(wc -l <id)" = 1
'
test_expect_success 'idtree help with more words than a command has prints the help of that command' '
    idtree help id new x >out && idtree id new -h >expect && test_cmp expect out
'
test_expect_success 'startctl prints its verbs when it refuses an unknown verb, and refuses an unknown signal' '
    says "unknown verb .nope.: the verbs are status, kill, stop, cont and run" idtree startctl nope &&
    says "did you mean kill" idtree startctl klil 1 && says ".FOO. is not a signal, as TERM or 15" idtree startctl kill --signal=FOO 0 &&
    says "there is no rank 9" idtree startctl kill 9 && says "broker 1 is running" idtree startctl run 1 &&
    says "takes no RANK" idtree startctl status 1
'
test_expect_success 'ping prints the ranks that its request passed' '
    idtree ping -c 2 -i 0.01 5 >out && cat out && test "$(grep -c "^5!broker.ping seq=[01] time=[0-9.]* ms (0!2!5)$" out)" = 2 &&
    idtree ping --uri "${IDTREE_URI%0}4" -c 1 6 | grep "(4!1!0!2!6)$" && idtree ping --uri "${IDTREE_URI%0}4" -c 1 0 | grep "(4!1!0)$" &&
    idtree ping --uri "${IDTREE_URI%0}4" -c 1 any | grep "^4!broker.ping .* (4)$" && idtree ping -c 1 "3!fluid" | grep "(0!1!3)$" &&
    says "No service matching nope.ping is registered (idtree module list" idtree ping nope &&
    says ".nope!fluid. is not RANK, SERVICE or RANK!SERVICE" idtree ping "nope!fluid"
'
test_expect_success 'after a rank is lost ping prints the ranks of the new path' '
    idtree startctl kill 1 && wait_attached 4 0 && idtree ping --uri "${IDTREE_URI%0}4" -c 1 6 | grep "(4!0!2!6)$"
'
test_expect_success 'startctl run without rank 0 names the rank for which it waits, and ends when that rank is up' '
    idtree startctl kill 0 3 && mkfifo said && { idtree startctl run 3 2>said & } && exec 5<said && wait_line 5 >line && cat line &&
    grep "^idtree startctl: broker 3 waits for rank 0 (killed by SIGKILL), for broker.join-timeout at most: idtree startctl run 0$" line &&
    idtree startctl run 1 0 && wait && exec 5<&- && test "$(idtree startctl status | grep -c " up$")" = 7
'
if command -v mpiexec.hydra >/dev/null; then test_set_prereq HYDRA; fi
test_expect_success HYDRA 'a broker that listens at all addresses announces one of them' '
    hosts() { timeout "$WAIT_S" mpiexec.hydra "$@" </dev/null; } &&
    for all in "0.0.0.0" "*"; do
        hosts -launcher fork -hosts a,b -ppn 1 -n 2 idtree broker -o tbon.endpoint="tcp://$all:*" idtree getattr tbon.endpoint >out &&
        cat out && grep -E "^tcp://[0-9.]+:[0-9]+$" out && ! grep "//0\.0\.0\.0:" out || return 1
    done &&
    hosts -n 2 idtree broker -o "tbon.endpoint=tcp://0.0.0.0:*" idtree getattr -r 1 tbon.parent-endpoint | grep "^tcp://127.0.0.1:"
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5070-usage.t - a wrong command line ends with exit status 2 and one sentence, before anything is done
test_description='commands with wrong options exit with status 2'
. "$(dirname "$0")/idtree-sharness.sh"

# List every command that idtree -h and idtree GROUP -h list.
list_commands() {
    idtree -h | sed -n 's/^  \([a-z]*\) .*/\1/p' | while read -r word; do
        if idtree "$word" -h | grep -q "^usage: idtree $word COMMAND"; then
            idtree "$word" -h | sed -n "s/^  \($word [a-z]*\) .*/\1/p"
        else
            echo "$word"
        fi
    done
}
# The command ends with status 2, and prints a line on stderr that begins with its name.
refused() { # command...
    test_expect_code 2 "$@" >out 2>err </dev/null && test_must_be_empty out && grep "^idtree[a-z -]*: " err ||
        { echo "$@"; cat err; return 1; }
}

test_expect_success 'every command exits with status 2 for an unknown option' '
    list_commands >commands && test "$(wc -l <commands)" -gt 30 && grep -x "id new" commands &&
    while read -r c; do
        refused idtree $c --no-such-option || return 1
    done <commands
'
test_expect_success 'every command exits with status 2 for an option without its argument, or with an argument that the option does not take' '
    while read -r c; do
        for o in $(idtree $c -h | sed -n "s/^  .*--\([a-z-]*\)=.*/\1/p"); do
            refused idtree $c --$o || return 1
        done
        test "$c" = broker || refused idtree $c --help=x || return 1
    done <commands
'
test_expect_success 'a short option in the help means the same in all commands' '
    while read -r c; do
        idtree $c -h | sed -n "s/^  -\(.\), --\([a-z-]*\).*/\1 \2/p" || return 1
    done <commands | sort -u >letters && cat letters && grep -x "n count" letters && grep -x "F format" letters && grep -x "f follow" letters &&
    cut -d " " -f 1 letters | uniq -d >twice && test_must_be_empty twice
'
test_expect_success 'every command with a form of ids accepts --format or -F; --to and -t still work, except in id range, where --to is a date' '
    for c in "id convert" "id new --local --scheme flax" "id range --from 2020-01-01 --to 2020-01-02 --scheme flax" "job list" "job watch" "job submit"; do
        for o in "--format x" "-F x"; do
            test_expect_code 2 idtree $c $o 1 2>err || { echo "$c $o"; return 1; }
        done && ! grep "unknown option" err || { echo "$c $o"; cat err; return 1; }
    done && test "$(idtree id convert -F dec 0x10)" = 16 && test "$(idtree id convert --to dec 0x10)$(idtree id convert -t hex 16)" = 160x10 &&
    idtree id range --scheme flax --from 2026-01-01 --to 2026-01-02 --form hex >old && idtree id range --scheme flax --from 2026-01-01 --to 2026-01-02 -F hex >new && test_cmp old new &&
    test_expect_code 2 idtree id convert 7 2>err && grep -e "--format FORM is missing" err
'
test_expect_success 'an empty word, such as an unset variable, is refused, and the message names the argument' '
    for c in getattr "doc new" "doc show" "module load" "module remove" "module stats" "state show" "state check" keygen "id show" "id sort" \
        "event pub" "job show" ping startctl completion start; do
        refused idtree $c "" && grep "is empty" err || { echo "$c"; cat err; return 1; }
    done && refused idtree setattr "" x && refused idtree init --statedir "" && grep -e "--statedir DIR is missing" err && idtree logger -h >/dev/null
'
test_expect_success 'dmesg --new needs --follow, state show reports a missing folder, and job rm and job create suggest ack and submit' '
    refused idtree dmesg --new && grep "needs --follow" err &&
    test_expect_code 1 idtree state show /nosuch/folder 2>err && grep "there is no folder /nosuch/folder" err &&
    refused idtree job rm x && grep "did you mean ack" err && refused idtree job create && grep "did you mean submit" err
'
test_expect_success 'commands exit with status 2 for an invalid or missing word' '
    for c in "id" "id nope" "nope" "-x" "id new x" "id new -n0" "id new -r-1" "id new --scheme=x" "id new --to=x" \
        "id new --local" "id new --meta=1" "id range" "id range --from=x --to=y" "id range --from=2026-11-21 --to=2026-11-20" \
        "id show" "id show -e x 1" "id convert 1" "start -s0" "start --per-process=0" "start -o x" "startctl" "startctl nope" \
        "startctl kill" "startctl kill x" "startctl kill --signal=FOO 0" "startctl status 1 --signal=" "ping" "ping -cx 0" "ping 0!" \
        "logger -s nope x" "event pub" "getattr" "setattr x" "module load" "module stats" "module remove" "doc open" "job show x"; do
        refused idtree $c || return 1
    done
'
test_expect_success 'every command refuses a word that is not a URI, a timeout or a rank where it expects one' '
    while read -r c; do
        idtree $c -h >help && case $c in broker | start | startctl | version) continue ;; esac
        operands=$(sed -n "s/^usage: idtree [a-z ]* \[OPTION\]... *\([^[]*\).*/\1/p" help | sed "s/[A-Z|.!][A-Z|.!]*/1/g")
        case $c in "job submit") operands="-- true" ;; "id range") operands="--from 2026-01-01 --to 2026-01-02" ;; esac
        for o in --uri=foo --uri=tcp://x --timeout=x --timeout=-1 --timeout=nan --rank=x --rank=-1; do
            grep -q -e "${o%%=*}" help || continue
            refused idtree $c $o $operands && grep -e "${o#*=}" err || return 1
        done
    done <commands && test_expect_code 2 idtree version --uri=foo 2>err && grep "^idtree version: --uri foo: not local" err
'
test_expect_success 'the broker exits with status 2 for invalid attributes and options' '
    for o in "-o x=y" "-o fluid.lease=x" "-o tbon.topo=x" "-t nope" "-c /nope" "-o rank=3" "-o log-level=99" "-o tbon.endpoint=x" \
        "-o broker.modules=nope" "-o broker.join-timeout=x" "-o fluid.epoch=x" "--recover-horizon=x" "-o fluid.recover-horizon=2026-02-30" \
        "-o compressor.window=0" "-o uid.drift=99" "-o local.sockets=x" "-o fluid.epoch=2999-01-01" "-o" "-o x" "--nope"; do
        refused idtree broker $o true || return 1
    done
'
test_expect_success 'idtree start exits with status 2 for invalid attributes of its brokers' '
    for o in "-o x=y" "-o fluid.lease=x" "--topology=x" "-o broker.modules=nope" "--recover-horizon=x" "-o uid.drift=99"; do
        refused idtree start -s 3 $o touch started || return 1
    done && test ! -e started
'
test_expect_success 'the message for an error in a configuration file names the file and the line' '
    printf "log-level = 7\n\nfluid.lease\n" >conf && refused idtree broker -c conf true && grep "conf:3: " err
'
test_expect_success 'a broker exits with status 1 for an error that may be gone at the next start' '
    test_expect_code 1 idtree broker -o rundir=/nope/nope true 2>err && grep "rundir /nope/nope: No such file" err &&
    test_expect_code 1 idtree getattr size 2>err && grep "no instance" err
'
test_expect_success 'brokers and commands read dates in the same way: a date without a time is the first millisecond of the day' '
    idtree start -o fluid.epoch=2026-01-01 idtree info >out && cat out && grep -E "epoch +2026-01-01T00:00:00.000Z" out &&
    idtree start -o fluid.epoch=2026-01-01T02:00:00+02:00 idtree info >out && grep -E "epoch +2026-01-01T00:00:00.000Z" out
'
test_expect_success 'id range cuts a range of fluids at the ends of the instance, and a message says so' '
    idtree id range --epoch 2026-01-01 --from 2026-01-01 --to 2026-01-02 --form dec >inside 2>err && test_must_be_empty err &&
    idtree id range --epoch 2026-01-01 --from 2020-01-01 --to 2026-01-02 --form dec >out 2>err && test_cmp inside out &&
    grep "^idtree id range: --from is before the epoch: .* the epoch, 2026-01-01T00:00:00.000Z, until 2060-11" err &&
    idtree id range --epoch 2026-01-01 --from 2026-01-01 --to 2099-01-01 --form dec >out 2>err && cat out err &&
    echo 18446744073692774400 >expect && sed 1d out >end && test_cmp expect end && grep "to is after the last id" err &&
    idtree id range --epoch 2026-01-01 --from 2020-01-01 --to 2021-01-01 --form dec >out 2>err && printf "0\n0\n" >expect &&
    test_cmp expect out && test "$(wc -l <err)" = 2
'
test_expect_success 'commands report a write error with its reason, and exit with status 1' '
    for c in "idtree -h" "idtree id -h" "idtree id new -h" "idtree --version" "idtree broker -h" "idtree broker -V" "idtree broker --check" "idtree id convert --to dec 7"; do
        test_expect_code 1 $c >/dev/full 2>err && cat err && grep "No space left on device" err || return 1
    done && if command -v idtree-http; then test_expect_code 1 idtree-http -h >/dev/full; fi &&
    seq 100000 | test_expect_code 1 idtree id convert --to hex - >/dev/full 2>err && cat err && ! grep Success err
'
cat >each.sh <<\EOF
# In an instance: each command that prints names the cause with which a write to stdout fails.
failed=0
names_it() { # cause
    grep -q "^idtree[a-z -]*: cannot write: $1\$" err && return
    echo "$c: status $status:" && cat err && failed=1
}
for c in "info" "attr list" "id new" "id new --json" "id new -s uid" "module list" "module stats fluid" "dmesg" \
    "dmesg --json" "overlay status" "overlay status --json" "watermark" "ping -c 2 -i 0.01 0" "ping -c 2 -i 0.01 --json 0" \
    "top --json -n 1" "metrics" "startctl status" "version" "id convert --to dec 1 xx" "health" "health --json"; do
    status=0; idtree $c >/dev/full 2>err </dev/null || status=$?; names_it "No space left on device"
    case $c in health*) test $status = 2 || failed=1;; *) test $status = 1 || failed=1;; esac
    status=0; idtree $c >&- 2>err </dev/null || status=$?; names_it "Bad file descriptor"
done
exit $failed
EOF
test_expect_success 'commands that send requests to an instance report write errors, and a closed stdout as a bad file descriptor' '
    idtree top -h | grep -e "-n, --count" && idtree start -s 1 sh "$PWD/each.sh"
'
test_expect_success 'idtree top reports a terminal that lacks what it needs' '
    for TERM in dumb hardcopy no-such-terminal; do
        export TERM && idtree start -s 1 script -qec "idtree top; echo code \$?" /dev/null >out </dev/null; cat out; grep "TERM says that this terminal is $TERM" out && grep "code 1" out || return 1
    done
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4071-identity.t - each way to lose or mix the state of an instance that doc/design/identity.md lists
test_description='an invalid state folder is refused with a message, and nothing in it is changed'
. "$(dirname "$0")/idtree-sharness.sh"

EPOCH=2026-01-01T00:00:00Z
opts='-o log-stderr-level=0'
run() { # folder, command...
    dir=$PWD/$1 && shift && idtree-broker $opts -o statedir="$dir" "$@" </dev/null
}
refused() { # pattern, folder, option of idtree-broker...
    pattern=$1 folder=$2 && shift 2 && sum=$(cat "$folder"/* 2>/dev/null | cksum) &&
    test_expect_code 3 run "$folder" "$@" true 2>err && cat err && test "$(wc -l <err)" = 1 && grep "$pattern" err &&
    test "$(cat "$folder"/* 2>/dev/null | cksum)" = "$sum"
}
copy() { rm -rf "$2" && cp -a "$1" "$2"; }
PATH=$IDTREE_BUILDDIR/src/broker:$PATH

test_expect_success 'idtree init creates the state of an instance, and refuses to do so twice' '
    idtree init --statedir a --name alpha --epoch $EPOCH --json >made && cat made && grep "\"name\":\"alpha\"" made &&
    grep "\"epoch\":\"2026-01-01T00:00:00.000Z\"" made &&
    test_expect_code 1 idtree init --statedir a 2>err && grep "a/instance: there is state already" err &&
    run a idtree doc new d && test_expect_code 1 idtree init --statedir a 2>err && grep "there is state already" err &&
    for option in "--name a/b" "--name \"\"" "--epoch yesterday" "--uuid x" "--uuid 01234567-89ab-4cde-8f01-23456789abcd"; do
        eval test_expect_code 2 idtree init --statedir new $option 2>err && test ! -e new || return 1
    done && test_expect_code 2 idtree init 2>err && mkdir -m 777 open &&
    test_expect_code 1 idtree init --statedir open 2>err && grep "writable by no other user" err
'
test_expect_success 'idtree init refuses an epoch in the future and an epoch whose time is over, and prints until when ids last' '
    test_expect_code 2 idtree init --statedir new --epoch 2200-01-01 2>err && cat err && grep "2200-01-01. is in the future (the clock says 20" err &&
    test_expect_code 2 idtree init --statedir new --epoch 1980-01-01 2>err && cat err && grep "1980-01-01.: its ids lasted until 2014-11-03T19:53:47.776Z" err && test ! -e new &&
    uuid=01234567-89ab-4cde-8f01-23456789abcd && test_expect_code 2 idtree init --statedir new --uuid $uuid --epoch 1980-01-01 2>err && grep "lasted until" err &&
    idtree init --statedir until --epoch $EPOCH >out && cat out && grep "epoch 2026-01-01T00:00:00.000Z: its ids last until 2060-11-03$" out && grep "\"ids_until\":\"2060-11-03T" made
'
test_expect_success 'idtree state check, like a broker, detects a store that is empty or of another program' '
    idtree state check a && for store in fluid compressor; do
        copy a b && : >b/$store.sqlite && test_expect_code 1 idtree state check b 2>err && cat err && grep "b/$store.sqlite is damaged (it is empty" err || return 1
    done && copy a b && : >b/fluid.sqlite && test_must_fail run b true 2>err && grep "it is empty" err &&
    copy a b && python3 -c "import sqlite3; c = sqlite3.connect (\"b/fluid.sqlite\"); c.execute (\"DELETE FROM fluid\"); c.commit ()" &&
    test_expect_code 1 idtree state check b 2>err && cat err && grep "b/fluid.sqlite is damaged" err
'
test_expect_success 'a broker returns the UUID of its instance, and has the epoch of the instance' '
    run a sh -c "idtree getattr instance.uuid; idtree getattr instance.name; idtree info" >told && cat told &&
    grep "\"uuid\":\"$(head -n 1 told)\"" made && grep "^alpha$" told && grep "fluid epoch  *2026-01-01T00:00:00.000Z" told &&
    test_expect_code 2 idtree-broker -o instance.uuid=x true 2>err && cat err && grep "instance.uuid" err
'
test_expect_success 'a broker without a statedir needs no idtree init' '
    mkdir -m 700 run && idtree-broker $opts -o rundir="$PWD/run" idtree id new && idtree-broker $opts -o rundir="$PWD/run" idtree id new &&
    idtree start -s 2 idtree id new -r 1
'
test_expect_success 'a statedir without an instance file is refused' '
    mkdir -m 700 empty && refused "statedir .*/empty holds no state.*idtree init" empty &&
    refused "statedir .*/nowhere: " nowhere
'
test_expect_success 'a statedir without a horizon is refused until the horizon is recovered' '
    copy a b && rm b/fluid.sqlite && refused "b/fluid.sqlite: is missing.*put it back, or start once with --recover-horizon" b &&
    test_expect_code 2 run b -o fluid.recover-horizon=nonsense true 2>err && ! test -e b/fluid.sqlite && refused "is missing" b &&
    idtree id convert --to dec "$(run a idtree id new)" >before && run b --recover-horizon="$(cat before)" idtree id new >after &&
    test "$(idtree id convert --to dec "$(cat after)")" -gt "$(cat before)" && run b true
'
test_expect_success 'a statedir without its documents is refused until idtree state forget gives them up' '
    copy a b && rm b/compressor.sqlite && refused "b/compressor.sqlite: is missing.*idtree state forget" b -o broker.modules=fluid &&
    test_expect_code 1 idtree state forget b fluid.sqlite 2>err && grep "ids would be issued twice" err &&
    idtree state forget b compressor.sqlite && run b idtree doc list && ! idtree state forget b compressor.sqlite &&
    copy a b && echo junk >b/compressor.sqlite && ! run b idtree doc list 2>err && cat err && grep "damaged.*move it and its -wal away.*idtree state forget" err &&
    mv b/compressor.sqlite aside && idtree state forget b compressor.sqlite && run b idtree doc list
'
test_expect_success 'a statedir whose instance file is lost, damaged, or of a later version is refused' '
    uuid=$(sed -n "s/^uuid //p" a/instance) &&
    copy a b && rm b/instance && refused "whose file .instance. is gone" b &&
    copy a b && sed -i s/alpha/omega/ b/instance && refused "b/instance: damaged.*put it aside.*idtree init --uuid" b &&
    test_expect_code 1 idtree init --statedir b --uuid $uuid --epoch $EPOCH 2>err && grep "b/instance: damaged.*put it aside" err &&
    copy a b && echo "idtree-state 2" >b/instance && refused "b/instance: of a later version" b
'
test_expect_success 'idtree init makes a lost instance file again, and refuses another instance or epoch than that of the stores' '
    copy a b && idtree state backup b copied && sed -i s/alpha/omega/ b/instance && mv b/instance aside && cp copied/instance b && run b idtree doc show d &&
    run b idtree id new --to dec >before && mv b/instance aside &&
    test_expect_code 1 idtree init --statedir b 2>err && grep "b/.*.sqlite.*: there is state already: move it away to make a new instance.*--uuid" err &&
    test_expect_code 1 idtree init --statedir b --uuid $uuid --epoch 2026-01-02 2>err && grep "b/fluid.sqlite counts from --epoch $(sed -n "s/^epoch //p" a/instance)" err &&
    test_expect_code 1 idtree init --statedir b --uuid 01234567-89ab-4cde-8f01-23456789abcd --epoch $EPOCH 2>err && cat err &&
    grep "of the instance $uuid, but the folder is of the instance 01234567" err && test ! -e b/instance &&
    idtree init --statedir b --uuid $uuid --epoch $EPOCH >made2 2>err && cat made2 err && grep "(idtree)" made2 &&
    grep "the name idtree is new, as nothing in b has the old one.*remove b/instance, and add --name" err && rm b/instance &&
    idtree init --statedir b --uuid $uuid --name alpha --epoch $EPOCH 2>err && test_must_be_empty err && run b idtree doc show d && run b idtree id new --to dec >after &&
    test "$(cat after)" -gt "$(cat before)" && idtree state check b && grep "^store compressor" b/instance
'
test_expect_success 'a statedir with files of two instances is refused' '
    idtree init --statedir c && run c idtree doc new d &&
    for file in fluid.sqlite compressor.sqlite; do
        copy a b && cp c/$file b && refused "b/$file: of the instance .*, but the folder is of the instance .*(alpha)" b || return 1
    done && copy a b && cp c/instance b && refused "but the folder is of the instance" b
'
test_expect_success 'a store without the mark of an instance is refused, and so is a store that was emptied' '
    mkdir -m 700 plain && idtree-broker $opts -o rundir="$PWD/plain" idtree id new &&
    copy a b && python3 -c "import sqlite3; c = sqlite3.connect(\"b/fluid.sqlite\"); c.execute(\"DROP TABLE instance\"); c.commit()" &&
    refused "b/fluid.sqlite: of no instance" b &&
    copy a b && : >b/fluid.sqlite && refused "b/fluid.sqlite: damaged (it is empty)" b
'
test_expect_success 'the state of an earlier version is adopted if it is complete' '
    copy a old && rm old/instance && for file in old/*.sqlite; do
        python3 -c "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(\"DROP TABLE instance\"); c.commit()" $file || return 1
    done && copy old part && rm part/fluid.sqlite && refused "compressor.sqlite is there, but fluid.sqlite is not" part &&
    run old -o log-stderr-level=5 idtree id new 2>log && cat log && grep "the stores of an earlier version now belong to the instance" log &&
    idtree state check old && idtree state show old
'
test_expect_success 'a backup can be read, and no broker starts with it' '
    idtree init --statedir unused && idtree state backup unused early && refused "early/fluid.sqlite: is missing" early &&
    idtree state backup a saved && grep "\"horizon\": \"20" saved/state.json && test ! -e saved/fluid.sqlite &&
    refused "saved/fluid.sqlite: is missing" saved && test_expect_code 1 idtree state backup a saved 2>err && grep "cannot make saved" err &&
    copy a b && cp saved/compressor.sqlite b && run b idtree doc show d
'
test_expect_success 'a statedir that was lost completely is made again from the UUID, the epoch and a horizon' '
    uuid=$(idtree state show --json a | sed "s/.*\"uuid\":\"\([^\"]*\).*/\1/") &&
    idtree init --statedir again --uuid $uuid --epoch $EPOCH && refused "again/fluid.sqlite: is missing.*--recover-horizon" again &&
    run again --recover-horizon="$(run a idtree id new)" idtree getattr instance.uuid >told && test "$(cat told)" = $uuid && run again true
'
test_expect_success 'each start logs the values that are needed to make a lost statedir again' '
    run a -o log-stderr-level=5 true 2>log; cat log; grep "instance [0-9a-f-]* (alpha): epoch 2026-01-01T00:00:00.000Z, horizon 20.*Z, its time 0.000 s ahead" log
'
# Ranks of one host share the folder; on other hosts each rank would have its own.
cat >remember.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
for r in 0 1 2; do wait_active $r || exit 1; done
wait_until "ranks 1 and 2 remember" holds "test -e first/memory-1 && test -e first/memory-2" &&
for r in 0 1 2; do idtree id new --uri "${IDTREE_URI%0}$r" -n 100 --to dec || exit 1; done >ids
END
value() { sed -n "s/^$1 //p" "$2"; }
test_expect_success 'ranks remember their instance, and join no other instance' '
    copy a first && idtree start -s 3 $opts -o statedir="$PWD/first" sh remember.sh </dev/null && cat first/memory-1 &&
    idtree init --statedir fresh && cp first/memory-* fresh &&
    test_expect_code 1 idtree start -s 3 -o statedir="$PWD/fresh" true 2>err </dev/null && cat err &&
    grep "idtree-broker: rank [12] could not join rank 0 .*is of the instance $(value uuid first/memory-1) (alpha), rank 0 of $(value uuid fresh/instance)" err &&
    rm fresh/memory-* && idtree start -s 3 $opts -o statedir="$PWD/fresh" true
'
test_expect_success 'the memory files of other ranks are enough to continue after rank 0 has lost its statedir' '
    mkdir -m 700 anew && cp first/memory-* anew && sed -i s/alpha/omega/ anew/memory-1 &&
    idtree init --statedir anew --uuid $(value uuid first/memory-2) --epoch $(value epoch first/memory-2) >told 2>err &&
    cat told && grep "(alpha)" told && test_must_be_empty err && cp first/memory-* anew && test_expect_code 1 idtree start -s 3 -o statedir="$PWD/anew" true 2>err </dev/null && grep "is missing" err &&
    idtree start -s 3 $opts -o statedir="$PWD/anew" --recover-horizon=$(value below first/memory-2) idtree id new --to dec >after </dev/null &&
    test "$(cat after)" -gt "$(sort -n ids | tail -n 1)"
'
test_expect_success 'a damaged memory file is reported, and its rank can join' '
    echo x >>first/memory-1 && idtree start -s 2 $opts -o statedir="$PWD/first" idtree dmesg -r 1 >log </dev/null &&
    cat log && grep "first/memory-1: damaged.*remove it" log
'
test_expect_success 'commands that read the state leave no files behind, after a clean stop and after a crash' '
    copy a b && ! run b sh -c "idtree doc new crashed && kill -9 \$(idtree getattr broker.pid)" >out 2>&1 &&
    test -s b/compressor.sqlite-wal &&
    for folder in a b; do
        (cd $folder && cksum *) >before && idtree state show $folder && idtree state check $folder &&
        rm -rf looked && idtree state backup $folder looked && (cd $folder && cksum *) >after && test_cmp before after || return 1
    done && ! ls looked | grep "wal\|shm" && run b idtree doc show crashed
'
test_expect_success 'idtree state show and idtree state check report what a statedir has' '
    idtree state show a >shown && cat shown && grep "^name  *alpha" shown && grep "^horizon  *20" shown && idtree state check a &&
    copy a b && rm b/compressor.sqlite && test_expect_code 1 idtree state check b 2>err && grep "is missing" err &&
    copy a b && head -c 9000 /dev/zero | tr "\\0" x | dd of=b/compressor.sqlite bs=1 seek=5000 conv=notrunc 2>/dev/null &&
    test_expect_code 1 idtree state check b 2>err && cat err && grep "b/compressor.sqlite is damaged" err &&
    test_expect_code 1 idtree state show nowhere 2>err && grep "there is no folder nowhere" err
'
test_expect_success 'for a statedir whose instance is not known, each command prints what is missing and what to do' '
    for verb in "show x" "check x" "backup x y" "forget x compressor.sqlite"; do
        rm -rf x && mkdir x && test_expect_code 1 idtree state $verb 2>err && grep "x holds no state: idtree init makes" err &&
        copy a x && rm x/instance && test_expect_code 1 idtree state $verb 2>err && cat err &&
        grep "x/.*.sqlite: of the instance $uuid, whose file .instance. is gone: put the one of a backup beside it, or one that idtree init --uuid makes; fluid.sqlite counts from --epoch 2026-01-01T00:00:00.000Z" err &&
        copy part x && test_expect_code 1 idtree state $verb 2>err && grep "compressor.sqlite is there, but fluid.sqlite is not" err &&
        cp plain/fluid.sqlite x && python3 -c "import sqlite3; c = sqlite3.connect(\"x/fluid.sqlite\"); c.execute(\"DROP TABLE instance\"); c.commit()" &&
        test_expect_code 1 idtree state $verb 2>err && cat err && grep "x/instance: is missing: an earlier version left .*.sqlite and did not make it; the next start makes it" err || return 1
    done
'
test_expect_success 'while a broker runs, idtree state commands report that its horizon is not known, and make no backup' '
    echo "idtree state show --json a >shown 2>err; idtree state backup a taken 2>>err || echo \$? >>shown; idtree state check a 2>>err" >look.sh &&
    test_expect_code 1 run a sh look.sh && cat shown err && grep "\"name\":\"alpha\"" shown && ! grep horizon shown && grep "^1$" shown &&
    test ! -e taken && test "$(grep -c "the horizon is not known: a/fluid.sqlite is in use by .*process [0-9]* on " err)" = 2 &&
    grep "check: a/fluid.sqlite is in use by .*process [0-9]* on" err && grep "check: a/compressor.sqlite is in use by" err
'
test_expect_success 'if a crash left a store in the middle of a commit, or a store is lost, the others are shown and copied, and the gap is reported' '
    copy a b && python3 -c "import os, sqlite3; c = sqlite3.connect(\"b/fluid.sqlite\"); c.execute(\"PRAGMA synchronous = OFF\")
c.execute(\"UPDATE fluid SET horizon_ms = horizon_ms + 1\"); os._exit(0)" && test -s b/fluid.sqlite-journal &&
    idtree state show b >shown 2>err && cat err && grep "is left by a crash during a commit" err && grep alpha shown &&
    test_expect_code 1 idtree state backup b crashed 2>err && cat err && grep "the copy lacks the horizon" err && test -e crashed/compressor.sqlite &&
    run b true && idtree state show b 2>err | grep "^horizon  *20" && test_must_be_empty err &&
    rm b/fluid.sqlite && idtree state show b 2>err && grep "not known: b/fluid.sqlite is missing" err
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5001-id.t - idtree id show, id convert, help and errors: commands that need no broker
test_description='ids of any form are shown and converted, and mistakes are reported'
. "$(dirname "$0")/idtree-sharness.sh"

# The example of RFC 19 in each form.
cat >forms <<\EOF
6731191091817518
0x17e9fb8df16c2e
0017.e9fb.8df1.6c2e
fuZZybuNNy
ƒuZZybuNNy
reform-remote-galileo--heart-package-academy
👩💅📓😸👑🚓
EOF
names="dec hex dothex f58 ƒ58 words emoji"

test_expect_success 'id convert reads and writes every form of an id' '
    n=0 && for name in $names; do
        n=$((n + 1)) && sed -n ${n}p forms >one && for i in 1 2 3 4 5 6 7; do cat one; done >expect &&
        idtree id convert --to $name - <forms >out && test_cmp expect out || return 1
    done
'
test_expect_success 'id convert accepts ids as operands' '
    idtree id convert --to f58 $(cat forms) >out && test "$(uniq out)" = fuZZybuNNy
'
test_expect_success 'id show prints all forms and fields' '
    idtree id show --epoch 2026-11-21 fuZZybuNNy >out &&
    sed -n 2,8s/^[^[:space:]]*[[:space:]]*//p out >shown && test_cmp forms shown &&
    grep "^date  *2026-11-25T15:26:50.253Z$" out && grep "^generator  *15451$" out &&
    grep "^sequence  *46$" out && grep "^timestamp  *401210253 ms" out
'
test_expect_success 'id show explains why it prints no date' '
    idtree id show 5 >out && grep "date  *unknown: no instance: neither IDTREE_URI nor FLUX_URI is set" out &&
    idtree id show --uri local:///nosuch/x 5 >out && grep "date  *unknown: local:///nosuch/x: its instance has ended" out
'
test_expect_success 'id show --json prints one object per line, with ids as strings' '
    idtree id show --json --epoch 2026-11-21 fuZZybuNNy 7 >out && test "$(wc -l <out)" = 2 &&
    grep "\"dec\":\"6731191091817518\"" out && grep "\"generator\":15451" out && grep "\"date\":\"2026-11-25T" out
'
test_expect_success 'id show reads ids from stdin' '
    idtree id show - <forms >out && test "$(grep -c "^f58  *fuZZybuNNy" out)" = 7
'
test_expect_success 'id convert reports a line that is not an id by its number, converts the other lines, and exits with status 1' '
    printf "1\nxyz\n\n18446744073709551616\n  2 \n3" | test_expect_code 1 idtree id convert --to dec - >out 2>err &&
    printf "1\n2\n3\n" >expect && test_cmp expect out &&
    grep "line 2: .xyz. is not an id" err && grep "line 3: .. is not an id" err &&
    grep "line 4: .18446744073709551616. does not fit in 64 bits" err
'
test_expect_success 'id convert reports an operand that is not an id, and converts the others' '
    test_expect_code 1 idtree id convert --to dec 1 xyz 2 >out 2>err && grep ": .xyz. is not an id" err &&
    test "$(cat out | tr "\n" " ")" = "1 2 " && test_expect_code 1 idtree id show xyz 2>err && grep "xyz" err
'
test_expect_success 'error messages quote input without control characters' '
    printf "a\033[31m\n" | test_expect_code 1 idtree id convert --to dec - 2>err && grep "a.x1b\[31m" err
'
test_expect_success 'after ten errors in the input further ones are only counted' '
    seq 20 | sed s/^/x/ | test_expect_code 1 idtree id convert --to dec - 2>err && test "$(wc -l <err)" = 11 &&
    grep "20 lines in total are not ids" err
'
test_expect_success 'a million ids are the same after a conversion to words and back' '
    seq 1000000000000 37 1000036999963 >dec && idtree id convert --to words - <dec >words &&
    idtree id convert --to dec - <words | cmp - dec
'
test_expect_success 'writing ids to a full disk is an error' '
    test -e /dev/full && test_expect_code 1 idtree id convert --to f58 1 >/dev/full 2>err &&
    grep "cannot write: No space left" err
'
test_expect_success 'after an unknown word idtree exits with status 2, and suggests the nearest word' '
    test_expect_code 2 idtree strat 2>err && grep "unknown command .strat.: did you mean start?" err &&
    test_expect_code 2 idtree id shwo 2>err && grep "idtree id: unknown command .shwo.: did you mean show?" err &&
    test_expect_code 2 idtree id show --jsom 1 2>err && grep "did you mean --json?" err &&
    test_expect_code 2 idtree id show -z 1 2>err && grep "unknown option -z" err &&
    test_expect_code 2 idtree id convert --to dce 1 2>err && grep "dec, hex, dothex, f58, ƒ58, words, emoji" err &&
    test_expect_code 2 idtree frobnicate 2>err && grep "unknown command .frobnicate. (idtree -h" err &&
    test_expect_code 2 idtree overlay frobnicate 2>err && grep "unknown command .frobnicate. (idtree overlay -h" err
'
test_expect_success 'with missing or superfluous arguments a command exits with status 2' '
    test_expect_code 2 idtree 2>err && grep "which command?" err &&
    test_expect_code 2 idtree id 2>err && grep "idtree id: which command?" err &&
    test_expect_code 2 idtree id show 2>err && grep "missing argument: ID" err &&
    test_expect_code 2 idtree id show --epoch 2>err && grep "option --epoch needs an argument" err &&
    test_expect_code 2 idtree id show --json=x 1 2>err && grep "option --json takes no argument" err &&
    test_expect_code 2 idtree id convert 1 2>err && grep -e "--format FORM is missing" err &&
    test_expect_code 2 idtree getattr a b 2>err && grep ".b. is one argument too many" err &&
    test_expect_code 2 idtree id show --epoch 2026-02-30 1 2>err && grep "2026-02-30. is not a date" err &&
    test_expect_code 2 idtree id new -n 0 2>err && grep "count .0.: a number from 1 to" err
'
test_expect_success 'without an instance, or after the instance has ended, commands say what to do' '
    test_expect_code 1 idtree id new 2>err &&
    grep "^idtree id new: no instance: neither IDTREE_URI nor FLUX_URI is set, and no broker listens at local:///run/idtree/local; start one" err &&
    test_expect_code 1 idtree ping --uri local:///nosuch/local-0 0 2>err &&
    grep "^idtree ping: local:///nosuch/local-0: its instance has ended, or never existed: .* start one with idtree start" err &&
    IDTREE_URI=tcp://x test_expect_code 1 idtree info 2>err && grep "tcp://x" err
'
test_expect_success 'every command has one screen of help with its name and an example' '
    idtree -h >help && test "$(wc -l <help)" -le 48 && idtree --help | test_cmp help - &&
    for c in start startctl "id new" "id show" "id convert" "id range" "id sort" ping getattr setattr lsattr \
             "module list" "module load" "module remove" "module stats" "overlay status" \
             "event pub" "event sub" dmesg logger info shutdown; do
        idtree $c -h >out && grep "^usage: idtree $c " out && grep "^example: " out &&
        test "$(wc -l <out)" -le 24 && ! grep ".\{101\}" out && idtree $c --help | test_cmp out - || return 1
    done &&
    for g in id module event overlay; do idtree $g -h >out && grep "^usage: idtree $g " out || return 1; done
'
test_expect_success 'the manual describes every command and option' '
    man=$IDTREE_SRCDIR/doc/man/idtree.1 &&
    for c in $(idtree complete ""); do
        grep -q "idtree $c\|$c" "$man" || { echo "no $c"; return 1; }
        for o in $(idtree complete $c --) $(for s in $(idtree complete $c ""); do idtree complete $c $s --; done); do
            test $o = --help || sed "s/.-/-/g" "$man" | grep -q -e "$o" || test $o = --uri || echo "$c $o"
        done
    done >missing && cat missing
'
test_expect_success 'idtree version needs no broker' '
    idtree version >out && grep "^command: [0-9]" out && idtree --version | test_cmp out -
'
test_expect_success 'completion offers commands, options and forms of ids' '
    idtree complete st >out && printf "state\nstart\nstartctl\nstatus\n" >expect && test_cmp expect out &&
    idtree complete id "" >out && printf "new\nshow\nconvert\nrange\nsort\n" >expect && test_cmp expect out &&
    idtree complete id new --r >out && echo --rank >expect && test_cmp expect out &&
    idtree complete id convert --to do >out && echo dothex >expect && test_cmp expect out &&
    idtree complete nosuch "" >out && test ! -s out && ! idtree -h | grep complete
'
test_expect_success 'a synonym of a command is suggested before words of similar spelling' '
    while read -r words meant; do
        test_expect_code 2 idtree $(echo "$words" | tr _ " ") 2>err && cat err && grep "did you mean $meant?" err || return 1
    done <<END
tree status
log dmesg
stop shutdown
doc_create new
doc_rm delete
doc_ls list
module_unload remove
module_rm remove
job_ls list
--versoin --version
END
    test_expect_code 2 idtree id new --foo 2>err && ! grep "did you mean" err
'
test_expect_success 'idtree status and idtree attr are accepted as other names of commands' '
    idtree start -s 2 sh -c "idtree status; idtree overlay status; idtree attr get size; idtree attr set log-level 5; idtree attr get log-level; idtree attr list | grep ^size" >out && cat out &&
    test "$(grep -c "full" out)" -ge 4 && test "$(sed -n "/^2$/,\$p" out | tr "\n" " ")" = "2 5 size " &&
    idtree status -h | grep "idtree overlay status" && idtree attr -h | grep "set .*the same as idtree setattr" && idtree -h | grep "^  status"
'
test_expect_success 'an error message for a refused command says what to do' '
    idtree start sh -c "! idtree setattr size 12; ! idtree setattr nosuch 1; ! idtree setattr log-stderr-level banana; ! idtree module stats nosuch; idtree metrics | head -n 1; idtree ping -n 1 0; idtree ping -c 1 0" >out 2>err; cat out err
    grep "size: attribute may not be updated while the broker runs: if the broker has such an option, set it at the start with -o size=VALUE" err && grep "nosuch: unknown attribute (idtree lsattr lists them)" err &&
    grep "^idtree setattr: attribute log-stderr-level=banana: " err && grep "no module of that name is loaded there (idtree module list)" err && ! grep "roken pipe" err &&
    test "$(grep -c "seq=0" out)" = 2 && idtree keygen mine >told && grep "^mine: made; copy it to all hosts" told
'
test_expect_success 'the main help lists commands in groups, each command once' '
    idtree -h >help && sed -n "s/^\([a-z ]*\):\$/\1/p" help >got && cat help &&
    printf "%s\n" ids "start and state" look change hosts "jobs and documents" more >want && test_cmp want got &&
    sed -n "s/^  \([a-z]*\) .*/\1/p" help | sort >got && test -z "$(uniq -d got)" &&
    for c in $(idtree complete "" | grep -vx "getattr\|setattr\|lsattr"); do grep -x "$c" got || return 1; done >/dev/null &&
    sed -n "/^ids:/,/^\$/p" help | grep "^  id  *new" && sed -n "/^more:/,\$p" help | grep -c "^  " >n && test "$(cat n)" = 2
'
test_expect_success 'each help text has an example and no superfluous empty line' '
    for c in $(idtree complete ""); do
        words=$(idtree complete $c "" 2>/dev/null | grep -x "[a-z]*") && idtree help $c | grep -q "^usage: idtree $c COMMAND" || words=-
        for w in $words; do
            test $w = - && w=; idtree $c $w -h >out || return 1
            test $c = broker || grep -q "^example: " out || { echo "$c $w: no example"; return 1; }
            ! sed "/^\$/{N;/^\\n\$/!d}" out | grep -q "^\$" || { echo "$c $w"; cat out; return 1; }
        done
    done
'
test_expect_success 'all programs print usage and example in the same format, and idtree-http names the page' '
    http=$IDTREE_BUILDDIR/src/http/idtree-http && for p in idtree "idtree broker" $(test ! -x "$http" || echo "$http"); do
        $p -h >out && cat out && head -n 1 out | grep "^usage: [a-z-]*" && grep "example: " out && ! grep "Usage\|Example" out || return 1
    done && { test ! -x "$http" || "$http" -h | grep "GET / (the page"; }
'
test_expect_success 'id new accepts the number of ids as an operand or an option, but not both' '
    idtree start sh -c "idtree id new 3; idtree id new -s sno 2" >out && test "$(wc -l <out)" = 5 && idtree id new --local -s uid 2 >out && test "$(wc -l <out)" = 2 &&
    test_expect_code 2 idtree id new -n 2 3 2>err && grep "are both a number of ids" err && test_expect_code 2 idtree id new 0 2>err && grep "count .0.: a number from 1" err &&
    test_expect_code 2 idtree id new --follow 3 2>err && grep "exclude each other" err && test_expect_code 2 idtree id new 3 4 2>err && grep "too many" err
'
test_expect_success 'error messages have the character, the file, the rank, and the id as it was given' '
    test_expect_code 1 idtree id show f0OIl 2>err && grep ".f0OIl. is not an id: .0., its character 2, is not allowed there" err &&
    test_expect_code 1 idtree id show ƒ1é 2>err && grep "is not an id: .é., its character 3, is not allowed" err &&
    test_expect_code 1 idtree id show 0x 2>err && grep "is not an id: it ends too early" err &&
    test_expect_code 1 idtree id sort nofile 2>err && grep ".nofile. is not an id (for ids in a file: idtree id sort - <FILE)" err &&
    test_expect_code 2 idtree id new --uri=garbage 2>err && grep "garbage: not local://PATH or local://PATH?rank=RANK, with a PATH of at most 107 bytes" err &&
    idtree start -s 2 sh -c "! idtree ping 1!nosuch; ! idtree job show 5; idtree doc open d; idtree logger -r 1 over there; idtree dmesg -r 1; idtree watermark -r 1" >out 2>err; cat out err;
    grep "^idtree ping: rank 1: .*nosuch.* (idtree module list -r 1 shows" err && grep "^idtree job show: 5: the module job-ingest is not loaded" err &&
    grep "^session" out && ! grep "^seq" out && grep "over there" out && grep "^behind" out && ! grep "too many" err
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5040-documents.t - documents of the id compressor on the command line
test_description='idtree doc creates, shows, exports and imports documents, and these survive a restart of the instance'
. "$(dirname "$0")/idtree-sharness.sh"

: "${IDTREE_VECTORS:=$IDTREE_SRCDIR/t/vectors}"
init_state state || exit 1

# Run a script in an instance of three ranks.
instance() {
    idtree start -s 3 --topology kary:1 -o broker.modules=fluid -o statedir="$PWD/state" -o log-stderr-level=3 sh -e "$@" </dev/null
}

cat >lib.sh <<'END'
load() { for rank in 0 1 2; do idtree module load -r $rank compressor; done; }
uuid_pattern='[0-9a-f]\{8\}-[0-9a-f]\{4\}-4[0-9a-f]\{3\}-[89ab][0-9a-f]\{3\}-[0-9a-f]\{12\}'
fails() { # pattern of the message, command...
    pattern=$1
    shift
    if "$@" >out 2>err; then return 1; fi
    grep "$pattern" err || { cat err; return 1; }
}
END

cat >first.sh <<'END'
. ./lib.sh
. "$IDTREE_SRCDIR/t/wait.sh"
fails '^idtree doc list: documents: no broker .* has the compressor: idtree module load' idtree doc list
load
test "$(idtree doc list --json)" = ''
idtree doc new drawing | grep "^uuid  *$uuid_pattern$"
fails "there is a document 'drawing' already" idtree doc new drawing
fails "a document's\|document.*name\|'\.hidden'" idtree doc new .hidden
fails 'drawing: the rank has no session in it: idtree doc open drawing opens one' idtree doc ids drawing
fails 'idtree doc open --rank 2 drawing opens one' idtree doc ids -r 2 drawing
fails '^idtree doc close: drawing: the rank has no open session in it$' idtree doc close drawing
fails '^idtree doc open: there is no rank 9: the instance has ranks 0 to 2$' idtree doc open -r 9 drawing
idtree doc show drawing | grep '^open  *false$'

# Two ranks make ids, the one at once, all final in the end.
idtree doc open drawing | grep '^session'
idtree doc open -r 2 drawing --json >again
test "$(idtree doc open -r 2 drawing --json)" = "$(cat again)"
idtree doc ids --now -n 3 -r 2 drawing >local && printf 'drawing:-%d\n' 1 2 3 | diff - local
idtree doc ids -n 4 -u drawing >ids.0
idtree doc ids -n 4 -u -r 2 drawing >ids.2
grep -c "^drawing:[0-9][0-9]*	$uuid_pattern$" ids.0 ids.2 | diff - lines
cat ids.0 ids.2 | cut -f1 | sort -u | wc -l | grep -w 8
idtree doc ids --json -u drawing | grep "^{\"document\":\"drawing\",\"id\":[0-9]*,\"uuid\":\"$uuid_pattern\"}$"
test "$(idtree doc ids -n 70000 drawing | sort -u | wc -l)" = 70000

# That what is final is on its way is the only excuse.
knows() { idtree id show --uri "$uri" --json "$1" >shown 2>&1 || { grep 'unknown id' shown || exit 1; return 1; }; }

# Each rank knows each id by number and by UUID.
cat ids.0 ids.2 | while read -r id uuid; do
    for rank in 0 2; do
        uri=${IDTREE_URI%0}$rank
        wait_until "rank $rank knows $id" knows "$id"
        grep "\"uuid\":\"$uuid\"" shown
        idtree id show --uri "$uri" --json "drawing:$uuid" | grep "\"op\":${id#*:},"
    done
done
idtree id show "$(cut -f1 ids.0 | head -n 1)" | grep '^document  *drawing$'
fails "'drawing:99999999' is not known: .*unknown id" idtree id show drawing:99999999
fails "'none:1' is not known: .*is not open on rank 0: open it there first (idtree doc open)" idtree id show none:1
fails "'drawing:x' is not an id" idtree id show drawing:x
fails 'no id of drawing stands for it' idtree id show drawing:11111111-2222-4333-8444-555555555555

# What is exported can be imported under another name.
idtree doc export drawing >form
idtree doc import copy form
idtree doc export copy | cmp - form
idtree doc import piped - <form
fails "^idtree doc import: there is a document 'copy' already" idtree doc import copy form
fails '^idtree doc import: stdin: bad: .*stored form' sh -c 'head -c 40 form | idtree doc import bad -'
fails 'base64' idtree doc import bad lib.sh
fails "bad: .*stored form" sh -c 'echo AAAA | idtree doc import bad'
fails 'nosuch: No such file' idtree doc import bad nosuch
fails "there is no document 'bad'" idtree doc export bad
idtree doc list | grep '^copy  *0 '

idtree doc close -r 2 drawing
fails 'the rank has no session' idtree doc ids -r 2 drawing
idtree doc ids drawing
idtree doc list --json >list
idtree doc export drawing >form
END

cat >second.sh <<'END'
. ./lib.sh
load
idtree doc list --json | cmp - list
idtree doc export drawing | cmp - form
idtree doc open drawing && idtree doc open copy
cat ids.0 ids.2 | while read -r id uuid; do
    idtree id show --json "$id" | grep "\"uuid\":\"$uuid\""
    idtree id show --json "copy:$uuid" | grep "\"op\":${id#*:},"
done
idtree doc ids -u drawing >new && cut -f2 new | grep "$uuid_pattern"
cat ids.0 ids.2 | cut -f1 >old && cut -f1 new | grep -vxFf old
END

cat >vectors.sh <<'END'
. ./lib.sh
load
n=0
while read -r form; do
    n=$((n + 1))
    echo "$form" >vector
    idtree doc import vector.$n vector
    idtree doc export vector.$n | cmp - vector
done <forms
END

printf 'ids.0:4\nids.2:4\n' >lines

test_expect_success 'documents are created, opened, used, closed, exported and imported' '
    instance -x ./first.sh 2>log || { cat log; false; }
'
test_expect_success 'a restart does not change documents, and new ids differ from old ones' '
    instance -x ./second.sh 2>log || { cat log; false; }
'
# Stored forms of the original id compressor: version 2.0, no local state.
test_expect_success 'a stored form of the original that was imported is exported byte for byte' '
    tr "[]" "\n\n" <"$IDTREE_VECTORS/idcomp.json" | sed -n "s/^\"ser\",.*\"\(AAAAAAAAAEAAAAAAAAAAA[A-P][^\"]*\)\"$/\1/p" | sort -u | head -n 25 >forms &&
    test "$(wc -l <forms)" -ge 5 && instance -x ./vectors.sh 2>log || { cat log; false; }
'
test_expect_success 'a missing operand of idtree doc, or a count of 0, is an error' '
    test_expect_code 2 idtree doc new && test_expect_code 2 idtree doc ids -n 0 x && test_expect_code 2 idtree doc &&
    idtree doc -h | grep "^  doc import "
'
test_done

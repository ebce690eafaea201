#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3033-edits.t - documents are renamed and deleted while clients on several ranks make ids in them
test_description='a session continues when its document is renamed, and is notified when it is deleted'
. "$(dirname "$0")/idtree-sharness.sh"

opts='-o broker.modules=fluid,compressor -o compressor.window=8 -o compressor.compact=16 -o tbon.timeout=500ms -o log-stderr-level=0'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
set -e
ask() { "$IDTREE_BUILDDIR/t/ask" "$@" </dev/null; }
fails() { # pattern, command...
    pattern=$1 && shift
    if "$@" >out 2>err; then cat out; return 1; fi
    grep "$pattern" err || { cat err; return 1; }
}
says() { wait_until "$*" fails "$@"; } # pattern, command...
until_ok() { wait_until "it can be done: $*" "$@" >out; }
member_of() { idtree doc list --json | grep -o "{[^}]*\"document\":\"$1\"[^}]*}" | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",}]*\).*/\1/p"; }
load_start() { # document rank...
    rm -f stop && mkfifo stop && doc=$1 && shift
    { "$IDTREE_BUILDDIR/t/document-load" "${IDTREE_URI%0}" $doc "$@" <stop >result 2>&1 6>&- & } && load=$!
    exec 6>stop
    grows $doc
}
load_end() { exec 6>&- && wait $load; rc=$?; cat result; return $rc; }
grows() {
    wait_until "$1 is there" holds "from=\$(member_of $1 seq) && test -n \"\$from\""
    wait_until "it has 10 more ranges" holds "now=\$(member_of $1 seq) && test -n \"\$now\" && test \$now -ge $((from + 10))"
}
ids() { until_ok idtree doc ids -u "$@" && cat out >>ids; }
END

cat >rename.sh <<'END'
. ./lib.sh
load_start d 0 1 2 2
uuid=$(member_of d uuid)
for rank in 1 2; do until_ok idtree doc open -r $rank d; done
ids -n 5 -r 1 d
echo "--- renamed, and another document has the old name"
idtree doc rename d plan
test "$(member_of plan uuid)" = $uuid
until_ok idtree doc ids -u -n 5 -r 1 plan && cat out >>ids
fails "there is a document 'plan' already" idtree doc new plan
idtree doc new d && test "$(member_of d uuid)" != $uuid
grows plan
until_ok idtree doc open -r 0 d && ids -n 3 d && test "$(member_of d sessions)" = 1
until_ok idtree doc open -r 2 d && until_ok idtree doc ids -r 2 plan
for name in d plan; do ask 2 compressor.stats "{\"document\":\"$name\",\"uuid\":\"$uuid\"}" | grep '"document":"plan"'; done
fails "ENOENT: document 'd' with UUID x is not open on rank 2" ask 2 compressor.generate '{"document":"d","uuid":"x"}'
echo "--- what was d means the same as plan"
sed 's/^plan:/d:/' ids | grep '^d:' >as-d
grep -c '^plan:' ids
while read -r id uuid_of; do
    wait_until "rank 2 knows $id" holds "idtree id show --uri \"\${IDTREE_URI%0}2\" --json plan:${id#*:} | grep -q $uuid_of"
done <<-LIST
$(head -n 5 ids | sed 's/^d:/plan:/')
LIST
echo "--- renamed again and again, back too, and rank 0 is killed in between"
idtree doc delete d
for to in a b plan c; do idtree doc rename "$(cat name 2>/dev/null || echo plan)" $to && echo $to >name && grows $to; done
idtree startctl kill 0 && idtree startctl run 0
until_ok idtree doc list && test "$(member_of c uuid)" = $uuid && test -z "$(member_of plan uuid)"
grows c
load_end
END
test_expect_success 'clients continue with a renamed document, and another document can get its old name' '
    init_state state && idtree start -s 3 --topology kary:1 $opts -o statedir="$PWD/state" sh rename.sh </dev/null
'

cat >delete.sh <<'END'
. ./lib.sh
load_start d 0 1 2
uuid=$(member_of d uuid)
for rank in 1 2; do until_ok idtree doc open -r $rank d; done
ids -n 5 -r 1 d
idtree doc delete d
test -z "$(member_of d uuid)"
gone="^idtree doc [a-z]*: document 'd' was deleted"
says "$gone" idtree doc ids -r 1 d
fails "$gone" idtree doc ids --now -r 1 d
fails "$gone" idtree doc open -r 1 d
echo "--- clients with compressors of their own are told; so are they where another one has the name"
exec 6>&- && ! wait $load
test "$(grep -c "document 'd' was deleted" result)" = 3 || { cat result; exit 1; }
idtree doc new d && test "$(member_of d uuid)" != $uuid && test "$(member_of d seq)" = 0
says "document 'd' was deleted" idtree doc ids -r 2 d
fails 'ESTALE: document .d. is a different one now' ask 1 compressor.fetch "{\"document\":\"d\",\"uuid\":\"$uuid\",\"from\":1}"
until_ok idtree doc open d && ids -n 3 d
fails "document 'd' was deleted" idtree doc close -r 1 d
fails "the rank has no session in it" idtree doc ids -r 1 d
idtree doc open -r 1 d && ids -n 3 -r 1 d
echo "--- a session in what was deleted keeps its name until it is closed, also where another one has it then"
new=$(member_of d uuid) && idtree doc delete d && idtree doc new other && until_ok idtree doc open -r 1 other
says "$gone" idtree doc ids -r 1 d
other=$(member_of other uuid) && idtree doc rename other d && test "$other" != "$new"
wait_until "rank 1 knows" holds "ask 1 compressor.stats '{\"document\":\"?\",\"uuid\":\"$other\"}' | grep '\"document\":\"d\"'"
fails "was deleted" idtree doc ids -r 1 d
fails "was deleted" idtree doc close -r 2 d
until_ok idtree doc open -r 2 d && ids -n 3 -r 2 d
fails "was deleted" idtree doc close -r 1 d
ids -n 3 -r 1 d && ids -n 3 -r 2 d
seq=$(member_of d seq)
wait_until "rank 1 hears of all" holds "ask 1 compressor.stats '{\"document\":\"d\"}' | grep '\"seq\":$seq,'"
idtree startctl kill 0 && idtree startctl run 0
until_ok idtree doc list && test "$(member_of d uuid)" = "$other" && test "$(member_of d finals)" -gt 0 && test "$(member_of d sessions)" = 2
echo "--- what cannot be done"
fails "^idtree doc delete: there is no document 'nope': idtree doc list" idtree doc delete nope
fails "^idtree doc rename: there is no document 'nope': idtree doc list" idtree doc rename nope other
fails "^idtree doc rename: there is a document 'd' already" idtree doc rename d d
fails "'.hidden' is not a valid name of a document" idtree doc rename d .hidden
fails 'EPROTO: name must be a string' ask 1 compressor.rename '{"document":"d"}'
fails 'EPROTO: document must be a string' ask 1 compressor.delete '{"document":7}'
END
test_expect_success 'clients are notified when a document is deleted, and a new document of the same name has nothing of the old one' '
    rm -rf state ids && init_state state && idtree start -s 3 --topology kary:1 $opts -o statedir="$PWD/state" sh delete.sh </dev/null
'

# Rank 0 is killed while it stores an edit: either the old or the new state is there, and an edit that was answered is
# done.
cat >crash.sh <<'END'
. ./lib.sh
list=$(seq 16)
for i in $list; do idtree doc new old.$i >out; done
edit() {
    case $1 in
    *[13579]) idtree doc rename old.$1 new.$1 ;;
    *) idtree doc delete old.$1 ;;
    esac
}
for i in $list; do edit $i 2>>told && echo $i >>done; done &
wait_until "some are done" holds 'test "$(wc -l <done)" -ge 4'
idtree startctl kill 0 && idtree startctl run 0
wait
until_ok idtree doc list --json && cp out list
for i in $list; do
    is=$(grep -c "\"old.$i\"" list || :)-$(grep -c "\"new.$i\"" list || :)
    case $i-$is in
    *[13579]-0-1 | *[02468]-0-0) ;;
    *-1-0) ! grep -x $i done ;;
    *) echo "$i: $is" && exit 1 ;;
    esac
done
sort told | uniq -c
END
test_expect_success 'rank 0 is killed while documents are renamed and deleted: each edit is done completely or not at all' '
    rm -rf state && init_state state && idtree start -s 2 $opts -o statedir="$PWD/state" sh crash.sh </dev/null
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3032-restored.t - an older copy of the documents replaces those of rank 0
test_description='ranks and clients that are ahead of an older copy report it, and no id of such a document is reported final'
. "$(dirname "$0")/idtree-sharness.sh"

opts='-o broker.modules=fluid,compressor -o compressor.compact=16 -o tbon.timeout=500ms -o log-stderr-level=0'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
ask() { "$IDTREE_BUILDDIR/t/ask" "$@" </dev/null; }
# Rank 0 runs on with the documents in folder $1; those that it had are in folder $2.
replace() {
    idtree startctl kill 0 && rm -rf "$2" && mkdir "$2" && mv state/compressor.sqlite* "$2" &&
    cp "$1"/compressor.sqlite* state && idtree startctl run 0
}
keep() { idtree startctl kill 0 && mkdir "$1" && cp state/compressor.sqlite* "$1" && idtree startctl run 0; }
seq_of() { idtree doc list --json | sed -n "s/.*\"document\":\"$1\",[^}]*\"seq\":\([0-9]*\).*/\1/p"; }
says() { wait_until "$*" fails "$@"; } # pattern, command...
fails() { # pattern, command...
    pattern=$1 && shift
    if "$@" >out 2>err; then cat out; return 1; fi
    grep "$pattern" err || { cat err; return 1; }
}
until_ok() { wait_until "it can be done: $*" "$@" >out; }
ids() { until_ok idtree doc ids -u "$@" && cat out >>ids; }
# Each id that was final stands for what it did.  That what is final is on its way is the only excuse.
same_ids() {
    while read -r id uuid; do
        wait_until "rank $1 knows $id" knows "${IDTREE_URI%0}$1" "$id" && grep "\"uuid\":\"$uuid\"" shown >/dev/null || return 1
    done <ids
}
knows() { idtree id show --uri "$1" --json "$2" >shown 2>&1 || ! grep "unknown id" shown; }
END

cat >ahead.sh <<'END'
. ./lib.sh
set -e
for rank in 1 2; do until_ok idtree doc open -r $rank d; done
ids -n 5 -r 1 d && ids -n 5 -r 2 d
keep older
for i in 1 2 3 4 5; do ids -n 3 -r 1 d; done
session=$(ask 1 compressor.open '{"document":"d"}' | sed 's/.*"session":"\([^"]*\).*/\1/')
echo "--- the older copy"
replace older newer
why='^idtree doc [a-z]*: .*d: rank 0 has it up to range [0-9]*, a session up to range [0-9]*: an older copy is in statedir. Restore the newer copy'
says "$why" idtree doc ids -r 1 d
fails "$why" idtree doc ids --now -r 1 d
fails "$why" idtree doc open -r 1 d
fails "$why" idtree doc open d
fails "$why" idtree doc export d
idtree doc list --json | grep '"refused":"d: rank 0 has it up to'
idtree doc show d | grep '^refused  *d: rank 0 has'
idtree dmesg | grep 'compressor.crit.*an older copy is in statedir'
ask 1 compressor.save '{"document":"d"}' | grep '"state":"AAAA'
echo "--- the newer one again"
replace newer older
ids -n 3 -r 1 d && ids -n 3 -r 2 d
test "$(ask 1 compressor.open '{"document":"d"}' | sed 's/.*"session":"\([^"]*\).*/\1/')" = "$session"
same_ids 1 && same_ids 2
fails 'no open session in it' idtree doc close -r 0 d
END
test_expect_success 'an older copy of documents is refused with a message, and all sessions continue with the newer documents' '
    init_state state && idtree start -s 3 --topology kary:2 $opts -o statedir="$PWD/state" sh ahead.sh </dev/null
'
cat >as-long.sh <<'END'
. ./lib.sh
set -e
until_ok idtree doc open -r 1 d
ids -r 1 d
keep older.2
for i in 1 2 3; do ids -n 600 -r 1 d; done
long=$(seq_of d)
idtree startctl stop 1
replace older.2 newer.2
until_ok idtree doc open -r 2 d
for i in $(seq $(($(seq_of d) + 1)) $long); do until_ok idtree doc ids -r 2 d; done
test "$(seq_of d)" = $long
idtree startctl cont 1
why='d: rank 0 and a session have different histories up to range'
says "$why" idtree doc ids -r 1 d
says "$why" idtree doc ids -r 2 d
fails "$why" idtree doc export d
echo "--- who is ahead gives up, the older copy stays"
fails "$why" idtree doc close -r 1 d
idtree module remove -r 0 compressor && idtree module load -r 0 compressor
until_ok idtree doc ids -r 2 d
until_ok idtree doc open -r 1 d && until_ok idtree doc ids -u -r 1 d && cat out >ids && same_ids 2
END
test_expect_success 'an older copy with as many ranges as the newer documents is refused, and serves after the sessions that are ahead have given up' '
    rm -rf ids state && init_state state && idtree start -s 3 --topology kary:2 $opts -o statedir="$PWD/state" sh as-long.sh </dev/null
'
cat >client.sh <<'END'
. ./lib.sh
set -e
mkfifo stop
{ "$IDTREE_BUILDDIR/t/document-load" "${IDTREE_URI%0}" d 1 2 <stop >result 2>&1 6>&- & } && load=$!
exec 6>stop
grows() {
    wait_until "the document is there" holds 'from=$(seq_of d) && test -n "$from"' &&
    wait_until "it has 10 more ranges" holds 'test "$(seq_of d)" -ge $((from + 10))'
}
grows && keep older.3 && grows && replace older.3 newer.3
wait_until "the document is refused" holds "idtree doc list --json | grep '\"refused\":\"d: '"
fails 'd: rank 0 ' idtree doc export d
replace newer.3 older.3
grows
exec 6>&-
wait $load || { cat result; exit 1; }
cat result
END
test_expect_success 'clients with compressors detect an older copy as ranks do' '
    rm -rf state && init_state state && idtree start -s 3 --topology kary:2 $opts -o statedir="$PWD/state" sh client.sh </dev/null
'
cat >copy.sh <<'END'
. ./lib.sh
set -e
uuid() { idtree doc list --json | sed -n 's/.*"document":"d","uuid":"\([^"]*\).*/\1/p'; }
again() { idtree startctl kill 0 && idtree startctl run 0 && until_ok idtree doc list; }
for rank in 1 2; do until_ok idtree doc open -r $rank d; done
: >ids && ids -n 5 -r 1 d && ids -n 5 -r 2 d
before=$(uuid) && test -n "$before"
idtree startctl kill 0 && idtree state backup state copy && idtree startctl run 0
until_ok idtree doc ids -n 3 -r 1 d
echo "--- the copy"
replace copy newer.3
until_ok idtree doc list
after=$(uuid) && test -n "$after" && test "$after" != "$before"
idtree dmesg | grep 'compressor.warning.*documents are a copy of 20.*Z: each has a new UUID now'
for rank in 1 2; do says 'd.* is a different one now' idtree doc ids -r $rank d; done
for rank in 1 2; do idtree doc close --discard -r $rank d; until_ok idtree doc open -r $rank d; done
ids -n 3 -r 1 d && ids -n 3 -r 2 d && same_ids 1 && same_ids 2
echo "--- once"
again && test "$(uuid)" = "$after" && ids -n 3 -r 1 d && ids -n 3 -r 2 d && same_ids 1 && same_ids 2
test "$(cut -d' ' -f2 ids | sort | uniq -d | wc -l)" = 0
END
test_expect_success 'documents of a backup get new UUIDs: ranks are notified, and old ids keep their UUIDs' '
    rm -rf state && init_state state && idtree start -s 3 --topology kary:2 $opts -o statedir="$PWD/state" sh copy.sh </dev/null
'
test_done

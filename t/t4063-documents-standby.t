#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4063-documents-standby.t - documents in PostgreSQL, while rank 0 is killed, stopped and replaced by another candidate
test_description='documents survive the loss of rank 0, and each id that was final keeps its meaning'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
missing=$(pgs_lack)
test -z "$missing" || { skip_all="$missing"; test_done; }
T=/tmp/idtree-t4063.$$
mkdir -m 700 $T && cd $T && idtree keygen cert || exit 1
cleanup "end_all; pgs_end; rm -rf $T"
port=$((20000 + $$ % 2500 * 4))
pgs_start || exit 1
store=$(pgs_uri)
cat >conf <<END
broker.modules = "fluid,compressor"
tbon.timeout = "500ms"
compressor.compact = 16
log-stderr-level = 0

[root]
store = "$store"
takeover = "500ms"

[cluster]
hosts = "root,127.0.0.9:$port"
root = "127.0.0.1,127.0.0.2:$port"
certificate = "$T/cert"
END
broker() { # number of the host, rank
    idtree-broker -c $T/conf --rank="$2" --host="127.0.0.$1" -o "cluster.interface=127.0.0.$1" -o "rundir=$T/run.$1" 2>>"$T/err.$1" >/dev/null </dev/null &
    echo $! >"$T/pid.$1"
}
pid() { cat "$T/pid.$1"; }
end_all() { for n in 1 2 9; do kill -CONT "$(pid $n)"; kill -9 "$(pid $n)"; done 2>/dev/null; }
leads() { # number
    test "$(pgs_sql 0 "SELECT host || state FROM idtree.role")" = "127.0.0.${1}leads" && idtree id new --uri "local://$T/run.$1/local-0" >/dev/null
}
await() { wait_until "candidate $1 leads" leads "$1"; }
at() { IDTREE_URI=local://$T/run.9/local-1 idtree "$@"; } # command at rank 1
until_ok() { wait_until "it can be done: $*" at "$@" >out; }
# Ids that were final, each with its UUID.
make_ids() { # document, count
    until_ok doc ids -u -n "$2" "$1" && cat out >>ids
}
same_ids() { while read -r id uuid; do at id show --json "$id" | grep -q "\"uuid\":\"$uuid\"" || { echo "$id is not $uuid"; return 1; }; done <ids; }

# Ask rank 0 what only a session of a document that it does not know would ask.
cat >refusals.py <<'END'
import errno, sys
sys.path.insert(0, sys.argv[1] + "/t")
from flux_client import Client
unknown = {"document": "d", "uuid": "99999999-2222-4333-8444-555555555555"}
error, text = {"leads": (errno.ESTALE, "is a different one now"), "replaced": (errno.EAGAIN, "another root leads")}[sys.argv[2]]
c = Client()
c.refuse(error, "compressor.fetch", dict(unknown, **{"from": 1}), text=text)
c.refuse(error, "compressor.state", dict(unknown, seq=1, offset=0), text=text)
END
refuses_as() { FLUX_URI=local://$T/run.$old/local-0 python3 refusals.py "$IDTREE_SRCDIR" "$1"; }
reload() { for verb in remove load; do idtree module $verb --uri local://$T/run.$old/local-0 compressor || return 1; done; }
has_uuid() { idtree doc list --json --uri local://$T/run.$old/local-0 | grep -F "$1"; }
documents() { pgs_sql 0 "UPDATE idtree.documents SET uuid = '$1' WHERE name = 'd'"; } # UUID of the document

test_expect_success 'rank 0 keeps documents in PostgreSQL' '
    idtree init --store "$store" --name documents && broker 1 0 && await 1 && broker 9 1 &&
    until_ok doc new kept && until_ok doc new before && until_ok doc new gone && until_ok doc open d && make_ids d 5 &&
    until_ok doc rename before after && until_ok doc delete gone &&
    test "$(pgs_sql 0 "SELECT string_agg (name, '\'' '\'' ORDER BY name) FROM idtree.documents")" = "after d kept"
'
test_expect_success 'after kill -9 of rank 0 its standby has all documents, and ids become final again' '
    broker 2 0 && at doc list >was && cat was && kill -9 "$(pid 1)" && await 2 && make_ids d 3 && same_ids &&
    at doc list | cut -d" " -f1 >is && cat is && cut -d" " -f1 was | cmp - is
'
test_expect_success 'takeovers while ids are made lose and change none that was final' '
    old=2 new=1 &&
    for turn in 1 2 3; do
        broker $new 0 &&
        { while test ! -e over; do at doc ids -u -n 2 d 2>/dev/null >>ids.$turn; done & } && busy=$! &&
        wait_until "ids are made" test -s ids.$turn && kill -9 "$(pid $old)" && await $new &&
        make_ids d 1 && : >over && { wait $busy || :; } && rm over && awk "NF == 2" ids.$turn >>ids && same_ids || { echo "turn $turn"; return 1; }
        swap=$old old=$new new=$swap
    done && wc -l ids
'
test_expect_success 'a rank 0 that was stopped and replaced stores nothing when it continues' '
    broker $new 0 && kill -STOP "$(pid $old)" && await $new && swap=$old && make_ids d 3 && until_ok doc new later && kill -CONT "$(pid $old)" &&
    test_expect_code 76 wait "$(pid $old)" && make_ids d 3 && same_ids && at doc list | grep "^later" &&
    test "$(pgs_sql 0 "SELECT term FROM idtree.role")" = "$(pgs_sql 0 "SELECT term FROM idtree.fence WHERE store = '\''documents'\''")"
'
test_expect_success 'a rank 0 that was replaced, and does not know it, refuses no request for good, and ends no session of a document that it does not know' '
    old=$new && refuses_as leads && uuid=$(pgs_sql 0 "SELECT uuid FROM idtree.documents WHERE name = '\''d'\''") && kill -STOP "$(pid 9)" &&
    documents 11111111-2222-4333-8444-555555555555 && reload &&
    wait_until "rank 0 has another document of this name" has_uuid 11111111-2222 && documents "$uuid" &&
    pgs_sql 0 "UPDATE idtree.fence SET term = term + 1 WHERE store = '\''documents'\''" && refuses_as replaced &&
    { at doc ids -u -n 2 d >more & } && kill -CONT "$(pid 9)" && { wait $! || :; } &&
    broker $swap 0 && kill -9 "$(pid $old)" && await $swap && new=$swap && make_ids d 3 && same_ids
'
test_expect_success 'while the database is away documents can be read; afterwards ids become final again' '
    pgs_stop 0 && at doc list | grep "^kept" && at doc export d >form && test -s form && at doc ids --now d >now && pgs_continue 0 && make_ids d 2 && same_ids
'
test_done

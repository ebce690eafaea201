#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2040-compressor.t - the compressor service, method by method
test_description='a client opens documents, makes and converts ids, joins, submits and fetches'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:1 -o broker.modules=fluid -o compressor.max-documents=4 -o compressor.window=2 -o compressor.max-sessions=20

ask() { "$IDTREE_BUILDDIR/t/ask" "$@" </dev/null; }
value() { sed -n "s/.*\"$1\":\"*\([^\",}]*\).*/\1/p"; }
A=11111111-1111-4111-8111-111111111111
range() { printf '{"sessionId":"%s","ids":{"firstGenCount":%d,"count":%d,"requestedClusterSize":4,"localIdRanges":[[%d,%d]]}}' $A $1 $2 $1 $2; }
submit() { ask "$1" compressor.submit "{\"document\":\"own\",\"uuid\":\"$uuid\",\"ranges\":[$2]}"; }

test_expect_success 'without the compressor module no document can be opened, and the error says why' '
    test_must_fail ask 3 compressor.open "{\"document\":\"d\"}" 2>err && grep "^ENOSYS" err &&
    idtree module load -r 3 compressor &&
    test_must_fail ask 3 compressor.open "{\"document\":\"d\"}" 2>err && cat err &&
    grep "rank 0 has no compressor: load it" err && idtree module remove -r 3 compressor
'
test_expect_success 'the compressor module is loaded and removed a hundred times' '
    for i in $(seq 50); do
        for r in 0 3; do idtree module load -r $r compressor || return 1; done &&
        ask 3 compressor.open "{\"document\":\"loop\"}" >/dev/null &&
        ask 3 compressor.generate "{\"document\":\"loop\"}" >/dev/null &&
        for r in 3 0; do idtree module remove -r $r compressor || return 1; done
    done
'
test_expect_success 'ranks 0, 2 and 3 of the instance have the compressor module, and rank 1 does not' '
    for r in 0 2 3; do idtree module load -r $r compressor || return 1; done
'
test_expect_success 'a document refuses sessions beyond compressor.max-sessions, and the error names this attribute' '
    ask 2 compressor.open "{\"document\":\"loop\"}" &&
    test_must_fail ask 2 compressor.generate "{\"document\":\"loop\",\"final\":true}" 2>err && cat err &&
    grep "EDQUOT: .*compressor.max-sessions" err
'
test_expect_success 'a rank has one session in a document' '
    ask 3 compressor.open "{\"document\":\"d\"}" >one && ask 3 compressor.open "{\"document\":\"d\"}" >two &&
    ask 2 compressor.open "{\"document\":\"d\"}" >other &&
    test "$(value session <one)" = "$(value session <two)" && test "$(value session <one)" != "$(value session <other)" &&
    test "$(value uuid <one)" = "$(value uuid <other)"
'
test_expect_success 'ids of a document are made immediately, and become final on request' '
    ask 3 compressor.generate "{\"document\":\"d\",\"count\":3}" >made && grep "\[\[-1,3\]\]" made &&
    ask 3 compressor.generate "{\"document\":\"d\",\"final\":true}" >made && grep "\"runs\":\[\[[0-9]*,1\]\]" made &&
    first=$(sed "s/.*\[\[\([0-9]*\),1.*/\1/" made) &&
    ask 3 compressor.normalize "{\"document\":\"d\",\"ids\":[-1,-2,-3]}" >op && cat op && ! grep -e "-[123][],]" op
'
test_expect_success 'an id of a document has the same UUID on another rank' '
    op=$(sed "s/.*\"ids\":\[\([0-9]*\).*/\1/" op) &&
    ask 3 compressor.decompress "{\"document\":\"d\",\"ids\":[-1]}" >mine && u=$(sed "s/.*\[\"\(.*\)\"\].*/\1/" mine) &&
    test "$u" = "$(value session <one)" &&
    ask 2 compressor.decompress "{\"document\":\"d\",\"ids\":[$op]}" | grep "\[\"$u\"\]" &&
    ask 2 compressor.recompress "{\"document\":\"d\",\"uuids\":[\"$u\",\"$A\"]}" | grep "\[$op,null\]" &&
    ask 3 compressor.recompress "{\"document\":\"d\",\"uuids\":[\"$u\"]}" | grep "\[-1\]" &&
    ask 2 compressor.normalize "{\"document\":\"d\",\"origin\":\"$u\",\"ids\":[-1]}" | grep "\"ids\":\[$op\]"
'
test_expect_success 'an invalid request to the compressor module is refused with a message' '
    test_must_fail ask 2 compressor.decompress "{\"document\":\"d\",\"ids\":[0,99999999]}" 2>err && grep "ENOENT: 99999999: " err &&
    test_must_fail ask 2 compressor.generate "{\"document\":\"d\",\"count\":0}" 2>err && grep "EINVAL: count must be from 1 to 1048576" err &&
    test_must_fail ask 2 compressor.generate "{\"document\":\"e\"}" 2>err && grep "ENOENT: document .e. is not open on rank 2" err &&
    test_must_fail ask 2 compressor.open "{\"document\":\"a/b\"}" 2>err && grep "EINVAL: .a/b. is not a valid name" err &&
    test_must_fail ask 2 compressor.open "{\"document\":7}" 2>err && grep EPROTO err &&
    test_must_fail ask 2 compressor.recompress "{\"document\":\"d\",\"uuids\":[7]}" 2>err && grep "EINVAL: 7: " err
'
test_expect_success 'a client with a compressor of its own joins, submits and fetches' '
    ask 3 compressor.join "{\"document\":\"own\"}" >joined && uuid=$(value uuid <joined) && test "$(value seq <joined)" = 0 &&
    test "$(submit 3 "$(range 1 5)")" = "{\"seq\":1}" &&
    ask 2 compressor.fetch "{\"document\":\"own\",\"uuid\":\"$uuid\",\"from\":1}" >fetched && cat fetched &&
    test "$(cat fetched)" = "{\"document\":\"own\",\"uuid\":\"$uuid\",\"newest\":1,\"seq\":1,\"ranges\":[$(range 1 5)]}" &&
    ask 2 compressor.fetch "{\"document\":\"own\",\"uuid\":\"$uuid\",\"from\":2}" | grep "\"newest\":1,\"seq\":2,\"ranges\":\[\]"
'
test_expect_success 'a range that is submitted several times is ordered once; gaps, overlaps and malformed ranges are refused' '
    test "$(submit 2 "$(range 1 5)")" = "{\"seq\":1}" && test "$(submit 0 "$(range 1 5),$(range 6 1)")" = "{\"seq\":2}" &&
    test_must_fail submit 3 "$(range 9 1)" 2>err && grep "EINVAL: .*missing" err &&
    test_must_fail submit 3 "$(range 4 9)" 2>err && grep "EINVAL: .*same bounds" err &&
    test_must_fail submit 3 "{}" 2>err && grep EINVAL err && test_must_fail submit 3 "" 2>err && grep EINVAL err &&
    test "$(submit 2 "$(range 1 5)")" = "{\"seq\":2}"
'
test_expect_success 'a fetch returns the stored form when rank 0 no longer keeps the requested ranges' '
    submit 3 "$(range 7 1),$(range 8 1)" && ask 3 compressor.fetch "{\"document\":\"own\",\"uuid\":\"$uuid\",\"from\":1}" >fetched &&
    grep "\"newest\":4,\"seq\":4,\"state\":\"AAAAAAAAAEA" fetched
'
test_expect_success 'requests for a document with another UUID, or for an unknown document, are refused' '
    test_must_fail ask 3 compressor.fetch "{\"document\":\"own\",\"uuid\":\"$A\",\"from\":1}" 2>err && grep ESTALE err &&
    test_must_fail ask 3 compressor.fetch "{\"document\":\"nosuch\",\"uuid\":\"$A\",\"from\":1}" 2>err && grep ENOENT err &&
    (uuid=$A && test_must_fail submit 3 "$(range 9 1)" 2>err) && grep ESTALE err
'
test_expect_success 'a stored form can be imported as a new document, once' '
    state=$(ask 2 compressor.save "{\"document\":\"d\"}" | value state) &&
    ask 3 compressor.create "{\"document\":\"copy\",\"state\":\"$state\"}" && ask 3 compressor.open "{\"document\":\"copy\"}" &&
    test "$(ask 3 compressor.save "{\"document\":\"copy\"}" | value state)" = "$state" &&
    test_must_fail ask 3 compressor.create "{\"document\":\"copy\"}" 2>err && grep EEXIST err
'
test_expect_success 'compressor.max-documents limits the number of documents' '
    test_must_fail ask 2 compressor.open "{\"document\":\"more\"}" 2>err && grep "EDQUOT: .*compressor.max-documents" err &&
    ask 2 compressor.list >list && cat list && grep "\"document\":\"copy\"" list && ! grep more list
'
test_expect_success 'a closed document is no longer open, and gets a new session when it is opened again' '
    ask 3 compressor.close "{\"document\":\"d\"}" && test_must_fail ask 3 compressor.stats "{\"document\":\"d\"}" 2>err &&
    ask 3 compressor.open "{\"document\":\"d\"}" >new && test "$(value session <new)" != "$(value session <one)"
'
# The document accepts no more sessions: ids of a new session never become final.
test_expect_success 'a session that cannot end reports the reason and continues, and close with discard ends it' '
    test_must_fail ask 2 compressor.close "{\"document\":\"loop\"}" 2>err && cat err &&
    grep "EDQUOT: .*compressor.max-sessions.*stays open: to lose these ids, close it with discard" err &&
    ask 2 compressor.open "{\"document\":\"loop\"}" >again && ask 2 compressor.generate "{\"document\":\"loop\"}" &&
    ask 2 compressor.close "{\"document\":\"loop\",\"discard\":true}" &&
    test_must_fail ask 2 compressor.stats "{\"document\":\"loop\"}" 2>err && grep ENOENT err &&
    ask 2 compressor.open "{\"document\":\"loop\"}" >new && test "$(value session <again)" != "$(value session <new)" &&
    idtree doc ids --now -r 2 loop && test_must_fail idtree doc close -r 2 loop 2>err && grep "max-sessions" err &&
    idtree doc close --discard -r 2 loop
'
test_expect_success 'ranges that a full document refuses are sent again after pauses that grow' '
    ask 2 compressor.open "{\"document\":\"loop\"}" && ask 2 compressor.generate "{\"document\":\"loop\"}" &&
    pause() { ask 2 compressor.stats "{\"document\":\"loop\"}" | sed "s/.*\"pause_ms\":\([0-9]*\).*/\1/"; } &&
    wait_until "the pauses grow" holds "test \$(pause) -ge 1600" &&
    ask 2 compressor.close "{\"document\":\"loop\",\"discard\":true}"
'
# When rank 0 was stopped for longer than tbon.timeout, the ranks below attach to it again.
goes_on() { idtree startctl cont 0 && wait_until "rank 2 is there" idtree ping -c 1 2; }
test_expect_success 'a request for a document stops waiting when its client disconnects' '
    ask 2 compressor.open "{\"document\":\"d\"}" && rank2="IDTREE_URI=${IDTREE_URI%0}2" &&
    idtree startctl stop 0 &&
    { (IDTREE_URI=${IDTREE_URI%0}2 exec "$IDTREE_BUILDDIR/t/ask" 2 compressor.submit "{\"document\":\"own\",\"uuid\":\"$uuid\",\"ranges\":[$(range 9 1)]}" </dev/null >/dev/null 2>&1) & } && pid=$! &&
    waiting() { env $rank2 "$IDTREE_BUILDDIR/t/ask" 2 compressor.stats-get </dev/null | sed "s/.*\"asked\":\([0-9]*\).*/\1/"; } &&
    wait_until "a request waits" holds "test \$(waiting) = 1" && kill $pid && wait_until "it does not any more" holds "test \$(waiting) = 0"; rc=$?
    goes_on && test $rc = 0
'
# No request is answered within an hour here: a request that stops waiting has lost its client.
cat >gone.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
URI=${IDTREE_URI%0}1
ask() { IDTREE_URI=$URI "$IDTREE_BUILDDIR/t/ask" 1 "$@" </dev/null; }
awaited() { ask compressor.stats-get | sed 's/.*"awaited":\([0-9]*\).*/\1/'; }
goes() { # method, request
    IDTREE_URI=$URI "$IDTREE_BUILDDIR/t/ask" 1 "$@" </dev/null >/dev/null 2>&1 &
    wait_until "$1 waits" holds 'test $(awaited) = 1' && kill $! && wait_until "it does not any more" holds 'test $(awaited) = 0'
}
ask compressor.open '{"document":"d"}' && idtree startctl stop 0 &&
goes compressor.open '{"document":"e"}' && goes compressor.generate '{"document":"d","final":true}' &&
goes compressor.close '{"document":"d"}'
rc=$?
closed() { ! ask compressor.stats '{"document":"d"}'; }
idtree startctl cont 0 && test $rc = 0 && wait_until "the document is closed, for nobody" closed
END
test_expect_success 'requests for a document, for final ids and for the end of a session stop waiting when their client disconnects' '
    (unset IDTREE_URI FLUX_URI && idtree start -s 2 -o broker.modules=fluid,compressor -o compressor.timeout=1h -o tbon.timeout=5m sh gone.sh)
'
at2() { (IDTREE_URI=${IDTREE_URI%0}2 && ask 2 "$@"); }
test_expect_success 'while rank 0 is down, close and open fail within their timeout, and the session continues' '
    ask 2 compressor.open "{\"document\":\"d\"}" >before && idtree startctl stop 0 &&
    { at2 compressor.generate "{\"document\":\"d\"}" &&
      test_must_fail at2 compressor.close "{\"document\":\"d\"}" 2>err && cat err && grep "EHOSTUNREACH: .*stays open: to lose these ids, close it with discard" err &&
      at2 compressor.open "{\"document\":\"d\"}" >after && at2 compressor.generate "{\"document\":\"d\"}" &&
      test_must_fail at2 compressor.open "{\"document\":\"copy\"}" 2>err && cat err && grep EHOSTUNREACH err; }; rc=$?
    goes_on && test $rc = 0 && test "$(value session <before)" = "$(value session <after)" &&
    ask 2 compressor.open "{\"document\":\"copy\"}" && ask 2 compressor.close "{\"document\":\"copy\"}" &&
    ask 2 compressor.close "{\"document\":\"d\"}" && test_must_fail ask 2 compressor.stats "{\"document\":\"d\"}"
'
test_expect_success 'idtree lsattr lists the limits of the compressor module' '
    idtree lsattr | grep "^compressor.max-documents" && test "$(idtree getattr compressor.max-documents)" = 4
'
test_done

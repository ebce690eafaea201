#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3030-documents.t - brokers are killed and run again while all ranks work in one document
test_description='whatever fails, all ranks agree on a document, and final ids stay final'
. "$(dirname "$0")/idtree-sharness.sh"

# Rank 0 keeps few ranges, so a rank that was away needs the stored form.
opts='-o broker.modules=fluid,compressor -o compressor.window=8 -o compressor.compact=16 -o tbon.timeout=500ms'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
doc=d
ask() { "$IDTREE_BUILDDIR/t/ask" "$@"; }
load_start() { # rank...
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idcomp-load" "${IDTREE_URI%0}" $doc record "$@" <stop >result 2>&1 6>&- & } && load_pid=$! &&
    exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; rc=$?; cat result; return $rc; }
# Rank $1 makes final ids (again), $2 times.
works() {
    for i in $(seq "${2:-1}"); do wait_until "rank $1 makes a final id" make_id "$1" || return 1; done
}
make_id() {
    ask "$1" compressor.open "{\"document\":\"$doc\"}" >/dev/null </dev/null &&
    ask "$1" compressor.generate "{\"document\":\"$doc\",\"final\":true}" >/dev/null </dev/null
}
END

cat >failures.sh <<'END'
. ./lib.sh
set -e
load_start 0 1 2 3 4 5 6 7
works 7 3
echo leaf; idtree startctl kill 7; works 0 10; idtree startctl run 7; works 7
echo router; idtree startctl kill 1; works 2 10; idtree startctl run 1; works 1; works 3
echo subtree; idtree startctl kill 2; idtree startctl kill 5; works 3 10; idtree startctl run 2; idtree startctl run 5; works 2; works 5
echo root; for i in 1 2 3; do idtree startctl kill 0; idtree startctl run 0; works 0; works 7; works 4; done
load_end
END
test_expect_success 'documents survive when a leaf, a router, a subtree and rank 0 are killed and run again' '
    init_state state && idtree start -s 8 --topology kary:2 $opts -o statedir="$PWD/state" sh failures.sh && test -s record
'
test_expect_success 'after a restart of the instance all final ids are the same' '
    cat >again.sh <<-\END &&
	. ./lib.sh
	load_start 0 1 2 && works 2 3 && load_end
	END
    cp record before &&
    idtree start -s 3 $opts -o statedir="$PWD/state" sh again.sh && head -n $(wc -l <before) record | cmp - before
'
test_expect_success 'a rank that missed many events loads the stored form and keeps its ids' '
    cat >late.sh <<-\END &&
	. ./lib.sh
	doc=late
	rm -f record
	loads() { idtree module stats --json -r 3 compressor | sed -n "s/.*\"loads\": *\([0-9]*\).*/\1/p"; }
	load_start 3 && works 3 5 && works 0 5
	for i in 1 2 3; do idtree startctl stop 3 && works 0 40 && idtree startctl cont 3 && works 3 || exit 1; done
	load_end && idtree module stats -r 3 compressor
	END
    idtree start -s 4 $opts -o event.replay=4 sh late.sh
'
test_done

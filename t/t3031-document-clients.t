#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3031-document-clients.t - brokers are killed and run again under clients with compressors of their own
test_description='whatever fails, clients with compressors of their own keep their ids, and agree'
. "$(dirname "$0")/idtree-sharness.sh"

# Rank 0 keeps few ranges, so a client that was away needs the stored form.
opts='-o broker.modules=fluid,compressor -o compressor.window=8 -o compressor.compact=16 -o tbon.timeout=500ms'

cat >lib.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
load_start() { # document rank...
    rm -f stop && mkfifo stop && doc=$1 && shift &&
    { "$IDTREE_BUILDDIR/t/document-load" "${IDTREE_URI%0}" $doc "$@" <stop >result 2>&1 6>&- & } && load_pid=$! &&
    exec 6>stop
}
load_end() { exec 6>&- && wait $load_pid; rc=$?; cat result; return $rc; }
seq_of() { "$IDTREE_BUILDDIR/t/ask" "$1" compressor.join "{\"document\":\"$doc\"}" 2>/dev/null </dev/null |
    sed -n 's/.*"seq":\([0-9]*\).*/\1/p'; }
# Until the document has grown by $1 ranges, as rank $2 hears.
grows() {
    wait_until "rank $2 has the document" holds "from=\$(seq_of $2) && test -n \"\$from\"" &&
    wait_until "it has $1 more ranges" holds "now=\$(seq_of $2) && test -n \"\$now\" && test \$now -ge $((from + $1))"
}
END

cat >failures.sh <<'END'
. ./lib.sh
set -e
load_start d 0 1 2 3 4 5 6 7
grows 20 0
echo leaf; idtree startctl kill 7; grows 10 0; idtree startctl run 7; grows 10 7
echo router; idtree startctl kill 1; grows 10 0; idtree startctl run 1; grows 10 1
echo subtree; idtree startctl kill 2; idtree startctl kill 5; grows 10 0; idtree startctl run 2; idtree startctl run 5; grows 10 5
echo root; for i in 1 2 3; do idtree startctl kill 0; idtree startctl run 0; grows 10 0; grows 10 7; done
load_end
END
test_expect_success 'clients with compressors survive when a leaf, a router, a subtree and rank 0 are killed and run again' '
    init_state state && idtree start -s 8 --topology kary:2 $opts -o statedir="$PWD/state" sh failures.sh
'
test_expect_success 'clients with compressors continue while a broker is stopped, and after it is continued' '
    cat >stopped.sh <<-\END &&
	. ./lib.sh
	set -e
	load_start e 0 3 3
	for i in 1 2 3; do grows 5 0; idtree startctl stop 1; grows 5 0; idtree startctl cont 1; grows 5 3; done
	load_end
	END
    idtree start -s 4 --topology kary:1 $opts -o event.replay=4 sh stopped.sh
'
test_done

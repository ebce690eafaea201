#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2002-flux-wire.t - the Flux protocol, checked by a client that shares no code with idtree
test_description='a client that was written only from the description of the protocol gets the answers that Flux clients expect'
. "$(dirname "$0")/idtree-sharness.sh"
test_needs python3
test_under_idtree 7 --topology kary:2 -o broker.modules=fluid,flake,compressor,job-ingest

client() { python3 "$IDTREE_SRCDIR/t/flux_client.py" "$@"; }

test_expect_success 'the client prints the list of its checks' 'client --list >checks && test -s checks'
while read -r name sentence; do
    test_expect_success "$sentence" "client $name"
done <checks
test_expect_success 'a broker answers flux shutdown; shutdown.start as a stream ends with ENODATA, then the connection ends' '
    idtree start -s 7 --topology kary:2 python3 "$IDTREE_SRCDIR/t/flux_client.py" stop
'
test_done

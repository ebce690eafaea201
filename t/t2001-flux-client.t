#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2001-flux-client.t - a stock Flux client can talk to a broker
test_description='what a stock Flux client sends is answered as flux-core answers it'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3

test_expect_success 'each recorded command gets the recorded answers' '
    "$IDTREE_BUILDDIR/t/flux-replay" >replay; rc=$?; grep -v ^ok replay; test $rc = 0
'
test_expect_success 'the commands are all of the recording' '
    test $(grep -c "^ok " replay) = $(grep -c "^\"args\": " "${IDTREE_VECTORS:-$IDTREE_SRCDIR/t/vectors}/flux-client.json")
'
test_expect_success 'once more, with what the first time left behind' '
    "$IDTREE_BUILDDIR/t/flux-replay" >replay; rc=$?; grep -v ^ok replay; test $rc = 0
'
test_done

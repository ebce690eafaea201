#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2001-flux-client.t - a stock Flux client can talk to a broker
test_description='a broker answers a stock Flux client as flux-core does'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 3

test_expect_success 'each recorded command of Flux gets the recorded answers' '
    "$IDTREE_BUILDDIR/t/flux-replay" >replay; rc=$?; grep -v ^ok replay; test $rc = 0
'
test_expect_success 'the replay covers every command of the recording' '
    test $(grep -c "^ok " replay) = $(grep -c "^\"args\": " "${IDTREE_VECTORS:-$IDTREE_SRCDIR/t/vectors}/flux-client.json")
'
test_expect_success 'a second replay succeeds although the first one left its state in the broker' '
    "$IDTREE_BUILDDIR/t/flux-replay" >replay; rc=$?; grep -v ^ok replay; test $rc = 0
'
test_done

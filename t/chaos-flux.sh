#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# chaos-flux.sh - request ids from four brokers of Flux under faults, until rank 0 alone has made IDS of them
# (10,000,000)
#
# Each round kills a leaf and an inner rank, cuts a leaf off, reloads the module on all ranks, and kills rank 0, which
# ends all brokers. The next round continues with the statedir of rank 0. The exit status is 0 if and only if no id was
# issued twice, the ids of each connection increased, and each request was answered once.
set -u
: "${IDTREE_SRCDIR:=$(cd "$(dirname "$0")/.." && pwd)}"
: "${IDTREE_BUILDDIR:=$PWD}"
: "${IDS:=10000000}"
PATH=$IDTREE_BUILDDIR/src/cmd:$PATH
unset IDTREE_URI FLUX_URI
. "$IDTREE_SRCDIR/t/wait.sh"
. "$IDTREE_SRCDIR/t/flux-instance.sh"

why=$(flux_lacks)
test -z "$why" || { echo "chaos-flux: $why" >&2; exit 1; }
work=$(mktemp -d) && cd "$work" || exit 1
trap 'rm -rf "$work"' EXIT
args="fluid.max-generators=2 fluid.lease=5s"

# $args is split into words on purpose.
# shellcheck disable=SC2086
begin() { flux_begin_restartable && for r in 0 1 2 3; do flux_load $r $args && flux_served $r || return 1; done; }
# shellcheck disable=SC2086
reload() { flux_unload "$1" && flux_load "$1" $args && flux_served "$1"; }
count() { FLUX_URI=$(flux_uri 0) flux module stats fluid | jq .ids; }

# shellcheck disable=SC2086
one_round() {
    flux_round $args && reload 3 && reload 1 && reload 2 && ids=$((ids + $(count))) && reload 0 &&
        ids=$((ids + $(count))) && flux_crash && begin
}

ids=0 rounds=0 rc=0
begin && flux_load_begin || exit 1
while test $ids -lt "$IDS"; do
    one_round >log 2>&1 || { rc=1; cat log flux-out; break; }
    rounds=$((rounds + 1))
    echo "round $rounds: $ids ids of rank 0 at least"
done
flux_load_end || rc=1
for r in 3 2 1 0; do flux_unload $r; done
flux_end || rc=1
exit $rc

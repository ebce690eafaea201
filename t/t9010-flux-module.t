#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t9010-flux-module.t - the fluid service in brokers of Flux: served, reloaded, killed, cut off
test_description='the module in an instance of Flux issues unique ids on each rank, whatever happens to its brokers'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/flux-instance.sh"

skip_all=$(flux_lacks)
test -z "$skip_all" || test_done

: "${RELOADS:=5}"
args=fluid.max-generators=2
info() { idtree info --uri "$(flux_uri "$1")" | awk -v key="$2" '$1 == "fluid" && $2 == key { print $3 }'; }
ask() { IDTREE_URI=$(flux_uri "$1") "$IDTREE_BUILDDIR/t/ask" "$1" "$2" "$3"; }
at() { # rank, command...
    at_uri=$(flux_uri "$1")
    shift
    FLUX_URI=$at_uri "$@"
}
in_order() { sort -c -n -u "$1"; }
reload() { flux_unload "$1" && flux_load "$1" $args; }
as_guest() { at 0 env FLUX_HANDLE_USERID=65500 FLUX_HANDLE_ROLEMASK=6 flux python -c "$@"; }

# --- the module as users load it ---------------------------------------------------------------------

test_expect_success 'without the module in Flux, commands print the command that loads it, and suggest nothing that Flux refuses' '
    flux_begin && test_must_fail at 0 idtree health >out && grep "flux module load .*idtree-flux.so" out &&
    for c in "id new" watermark "doc list" "doc new x" "job list" "job stats" metrics; do
        test_must_fail at 0 idtree $c 2>err && grep "belongs to Flux, where idtree serves only fluids: flux exec" err &&
        ! grep "idtree module load" err || return 1
    done && test_must_fail at 0 idtree job submit -- true 2>err && grep "belongs to Flux" err
'
test_expect_success 'the module is loaded on all ranks of an instance of Flux' '
    at 0 flux exec -r all flux module load "$flux_module" $args &&
    for r in 0 1 2 3; do flux_served $r || return 1; done
'
test_expect_success 'clients of libidtree get unique ids in order on each rank' '
    for r in 0 1 2 3; do
        idtree id new -n 3000 --to dec --uri "$(flux_uri $r)" >ids-$r && in_order ids-$r || return 1
    done && test "$(cat ids-0 ids-1 ids-2 ids-3 | sort -u | wc -l)" = 12000
'
test_expect_success 'clients of libidtree can connect by FLUX_URI' '
    FLUX_URI=$(flux_uri 2) idtree id new && FLUX_URI=$(flux_uri 2) idtree watermark &&
    ask 2 fluid.generate "{\"count\":3}" | grep runs
'
test_expect_success 'in Flux ranks from fluid.max-generators on are idle, and forward to their parent' '
    test "$(for r in 0 1 2 3; do info $r state; done | xargs)" = "active active idle idle" &&
    test "$(for r in 0 1 2 3; do info $r served_by; done | xargs)" = "0 1 0 1" &&
    test "$(idtree id new -n 1 --generator --uri "$(flux_uri 3)" | cut -f 2)" = 1
'
test_expect_success 'Flux shows and clears the counters of the idtree module, and pings the module' '
    test "$(at 3 flux module stats fluid | jq .forwarded)" -gt 0 && at 3 flux module stats --clear fluid &&
    test "$(at 3 flux module stats fluid | jq .ids_from_above)" = 0 && at 3 flux ping -c 1 fluid
'
test_expect_success 'in Flux clients cannot send messages between brokers, and guests cannot send messages that change something' '
    for topic in lease position cancel time; do
        test_must_fail ask 0 fluid.$topic "{}" 2>err && grep "EPERM.*no client may send it" err || return 1
    done && test_must_fail ask 0 fluid.hello "{\"rank\":1}" 2>err && grep EPERM err &&
    for topic in fluid.lease fluid.hello fluid.stats-clear fluid.shutdown idtree-flux.shutdown; do
        test_must_fail as_guest "import flux; flux.Flux ().rpc (\"$topic\", {\"rank\": 1}).get ()" 2>err || return 1
    done && as_guest "import flux; print (flux.Flux ().rpc (\"fluid.generate\", {}).get ())" && flux_makes_id 0
'
test_expect_success 'commands that would stop or change a broker refuse a Flux broker' '
    for c in shutdown "setattr log-stderr-level 3" "module load $flux_module" "module remove idtree-flux"; do
        test_must_fail at 0 idtree $c 2>err && grep "belongs to Flux" err || return 1
    done &&
    test_must_fail at 0 idtree startctl kill 1 2>err && grep "not idtree start but flux start" err &&
    at 0 idtree overlay status && at 0 idtree getattr version
'
test_expect_success 'ids of each connection increase while each rank reloads the module in Flux' '
    flux_load_begin && for i in $(seq "$RELOADS"); do
        reload 3 && reload 1 && reload 0 && reload 2 || { flux_load_end; return 1; }
    done; flux_load_end
'
test_expect_success 'a module that Flux cancels has returned its lease, and the next one finds its folder unlocked' '
    at 0 flux module remove --cancel idtree-flux && flux_load 0 $args && flux_served 0 && flux_served 3
'
test_expect_success 'Flux refuses a second copy of the module, and a module with invalid settings' '
    test_must_fail flux_load 0 && test_must_fail at 3 flux module load --name=other "$flux_module" && flux_unload 3 &&
    test_must_fail flux_load 3 fluid.leese=1s && test_must_fail flux_load 3 fluid.lease=x &&
    at 3 flux dmesg >log && grep "fluid.leese: there is no such setting" log &&
    grep "fluid.lease=x: must be 100ms to 1h" log
'
test_expect_success 'Flux refuses a module for idtree brokers, and its broker keeps running' '
    for name in fluid flake compressor job-ingest; do
        test_must_fail at 3 flux module load "$IDTREE_BUILDDIR/src/modules/.libs/$name.so" 2>err && cat err || return 1
    done && at 3 flux getattr rank
'
test_expect_success 'settings of the module may be in the configuration of Flux' '
    echo "idtree.fluid.max-generators = 3" | at 0 flux config load && flux_unload 0 && flux_load 0 &&
    test "$(info 0 max_generators)" = 3 && flux_load 3 $args && flux_served 3 && flux_served 0
'
test_expect_success 'an instance of Flux ends as usual, although the module was not unloaded' '
    flux_end; rc=$?; cat flux-out; test $rc = 0
'

# --- brokers that are killed --------------------------------------------------------------------------

# This instance has no rc3, so nothing waits for the module to end.
begin() { flux_begin_restartable && for r in 0 1 2 3; do flux_load $r $args && flux_served $r || return 1; done; }
end() { for r in 3 2 1 0; do flux_unload $r || return 1; done; flux_end; }

test_expect_success 'Flux brokers are killed and cut off under their clients: no id is issued twice or out of order' '
    begin && flux_load_begin && { flux_round $args || { flux_load_end; false; }; } && flux_load_end
'
test_expect_success 'ids of an instance of Flux that was killed are below those of the next instance with its statedir' '
    idtree id new -n 1000 --to dec --uri "$(flux_uri 3)" >before && { flux_crash; begin; } &&
    idtree id new -n 1000 --to dec --uri "$(flux_uri 3)" >after && cat before after >all && in_order all && end
'
test_done

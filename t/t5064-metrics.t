#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5064-metrics.t - figures of an instance for Prometheus, added up in the tree
test_description='idtree metrics prints metrics of ranks, as sums or for each rank, in bounded size and time'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o broker.modules=fluid,flake,compressor,job-ingest -o log-stderr-level=2

monitoring=$IDTREE_SRCDIR/etc/monitoring
metrics() { idtree metrics "$@"; }
value() { # name as it is printed, option...
    want=$1 && shift && metrics "$@" >value.out && sed -n "s/^$want //p" value.out
}
# The first python3 in PATH that has prometheus_client: the Python that configure found comes first, but packages of the
# system are installed for the Python of the system.
python=$(IFS=: && for dir in $PATH; do
    ! "$dir/python3" -c 'import prometheus_client.openmetrics.parser' || { echo "$dir/python3" && break; }
done 2>/dev/null)
if test -n "$python"; then
    test_set_prereq PARSER
fi
if command -v promtool >/dev/null; then
    test_set_prereq PROMTOOL
fi
made='idtree_fluid_ids_total{origin="made"}'
samples() { "${python:-python3}" "$IDTREE_SRCDIR/t/metrics.py" "$@"; }
wait_all() { wait_until "all generate" all_generate; }
all_generate() { test "$(value "idtree_fluid_generators{state=\"active\"}")" = "${1-7}"; }

test_expect_success 'the tests use the Python that configure found, and contain no absolute path of a Python' '
    { test ! -e "$IDTREE_BUILDDIR/t/bin/python3" || test "$(command -v python3)" -ef "$IDTREE_BUILDDIR/t/bin/python3"; } &&
    test_must_fail grep -nE "/usr/(local/)?bin/[p]ython" "$IDTREE_SRCDIR"/t/*.t "$IDTREE_SRCDIR"/t/*.sh
'
test_expect_success 'metrics count ids on the rank that makes them, and add them up' '
    wait_all && idtree module stats --clear fluid && for r in 1 2 3 4 5 6; do
        idtree module stats --clear -r $r fluid && idtree id new -r $r -n 10$r >/dev/null || return 1
    done && test "$(value "$made")" = 621 &&
    test "$(value "idtree_fluid_requests_total")" = 6 && test "$(value "idtree_ranks{status=\"full\"}")" = 7 &&
    test "$(value "idtree_fluid_wait_seconds_count")" = 6
'
test_expect_success 'metrics cover one rank, a subtree, or all ranks, from any broker' '
    test "$(value "$made" -r 2)" = 102 &&
    test "$(value "$made" -r 2 --subtree)" = 313 &&
    test "$(value "$made" --uri "${IDTREE_URI%0}5")" = 621 &&
    test "$(value "idtree_ranks{status=\"full\"}" -r 1 --subtree --uri "${IDTREE_URI%0}6")" = 3
'
test_expect_success 'metrics --per-rank labels each value with its rank' '
    metrics --per-rank >each && grep "^idtree_fluid_ids_total{rank=\"3\",origin=\"made\"} 103$" each &&
    test "$(grep -c "^idtree_broker_clients{rank=" each)" = 7 && test "$(grep -c "TYPE idtree_broker_clients" each)" = 1 &&
    metrics --per-rank -r 2 --subtree >each && test "$(grep -c "^idtree_broker_clients{rank=" each)" = 3 &&
    metrics --per-rank -r 4 >each && test "$(grep -c "^idtree_broker_clients{rank=\"4\"}" each)" = 1
'
test_expect_success 'metrics --json prints the report of the brokers' '
    metrics --json >out && jq -e ".sum.fluid_ids == 621 and .ranks.status.full == \"0-6\" and .max.fluid_lease_seconds == 60" out &&
    metrics --per-rank --json >out && jq -e ".[\"3\"].sum.fluid_ids == 103 and length == 7" out
'
test_expect_success 'metrics of each kind are printed, including those of rank 0' '
    metrics >out && for m in fluid_lease_left_seconds fluid_lease_age_seconds fluid_skew_bound_seconds fluid_ahead_seconds fluid_horizon_timestamp_seconds \
        fluid_watermark_timestamp_seconds fluid_store_commits_total fluid_store_seconds_count process_resident_memory_bytes process_open_fds \
        overlay_waiting_bytes broker_clients event_subscribers; do
        grep "^idtree_$m [0-9]" out || return 1
    done && test "$(wc -c <out)" -lt 100000 && tail -n 1 out | grep -x "# EOF"
'
test_expect_success 'metrics count ids of other schemes, documents and jobs on their ranks, and commits on rank 0' '
    idtree id new --scheme flax -r 3 -n 4 >/dev/null && idtree id new --scheme sno -r 4 -n 5 >/dev/null &&
    idtree id new --scheme uid -r 5 -n 6 >/dev/null && idtree doc open -r 2 metered >/dev/null &&
    idtree doc ids -r 2 -n 7 metered >/dev/null &&
    idtree job submit --uri "${IDTREE_URI%0}6" -- true && metrics >out &&
    for line in "flake_ids_total{kind=\"flax\"} 4" "flake_ids_total{kind=\"sno\"} 5" "flake_ids_total{kind=\"uid\"} 6" \
        "flake_waiting 0" "compressor_documents 1" "compressor_ids_total 7" "compressor_ranges_total{result=\"ordered\"} 1" \
        "compressor_store_failing 0" "ingest_jobs_total{result=\"stored\"} 1" "ingest_kept_jobs 1" "ingest_waiting_jobs 0" \
        "ingest_store_failing 0"; do
        grep -xF "idtree_$line" out || { cat out; return 1; }
    done && for of in compressor ingest; do grep "^idtree_${of}_store_seconds_count [1-9]" out || return 1; done &&
    idtree overlay status >/dev/null && metrics | grep -x "idtree_ingest_kept_jobs 1"
'
test_expect_success PARSER 'the output of idtree metrics is OpenMetrics, with help and units' '
    metrics >out && samples out >samples && test "$(wc -l <samples)" -gt 150 && metrics --per-rank >out && samples out >samples &&
    grep "^idtree_process_cpu_seconds_total{rank=\"6\"}" samples && metrics -r 3 >out && samples out >samples
'
test_expect_success PROMTOOL 'promtool accepts the older format of idtree metrics' '
    metrics --format prometheus | promtool check metrics && metrics --per-rank --format prometheus | promtool check metrics
'
test_expect_success PROMTOOL 'promtool accepts the alert rules, and the unit tests of the rules pass' '
    promtool check rules "$monitoring/idtree.rules.yml" && promtool test rules "$monitoring/idtree.rules.test.yml"
'
# Only a rank 0 with root.store reports idtree_root_...: t4012-role.t has that check.
test_expect_success PARSER 'alert rules and dashboard use only metrics that exist' '
    metrics >out && samples out | sed "s/{.*//" | sort -u >told && jq -e ".panels | length > 10" "$monitoring/idtree.dashboard.json" &&
    for f in idtree.rules.yml idtree.dashboard.json; do
        samples names "$monitoring/$f" >named && test -s named && ! grep -v "^idtree_root_" named | grep -vxFf told || return 1
    done
'
test_expect_success 'metrics count missing ranks, and do not wait for them' '
    all=$(value "$made") && two=$(value "$made" -r 2) && idtree startctl kill 2 && wait_attached 5 0 && wait_attached 6 0 && metrics >out &&
    grep "^idtree_ranks{status=\"lost\"} 1$" out && grep "^idtree_ranks{status=\"full\"} 5$" out &&
    test "$(value "idtree_overlay_adopted")" = 2 && test "$(value "$made")" = "$((all - two))" &&
    idtree startctl stop 1 && metrics --timeout 1 >out && idtree startctl cont 1 && cat out | grep idtree_ranks &&
    grep -E "^idtree_ranks\{status=\"(no answer|lost)\"\}" out
'
test_expect_success 'metrics have no values of a module that is not loaded, and invalid requests are refused' '
    idtree module remove -r 4 fluid && value "idtree_ranks{status=\"full\"}" -r 4 && ! grep fluid_requests value.out &&
    test_expect_code 1 metrics -r 7 2>err && cat err && test_expect_code 2 metrics --subtree 2>err && grep -e "--subtree needs --rank" err &&
    test_expect_code 2 metrics --format xml 2>err && grep "openmetrics or prometheus is needed" err
'
test_done

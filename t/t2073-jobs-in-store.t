#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t2073-jobs-in-store.t - job-ingest with its jobs in PostgreSQL
test_description='with root.store jobs are in PostgreSQL, over restarts of rank 0 and of the server'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/wait.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"

lack=$(pgs_lack)
test -z "$lack" || {
    skip_all=$lack
    test_done
}

# Run a script in an instance whose state is in the store.
in_store() { # script
    (unset IDTREE_URI FLUX_URI && idtree start -s 2 -o root.store="$(pgs_uri)" -o broker.modules=fluid,job-ingest \
        -o log-stderr-level=3 sh -c "$1" </dev/null)
}
row() { pgs_sql 0 "SELECT count (*), count (DISTINCT key) FROM idtree.jobs"; }

test_expect_success 'a server and a copy are started, and the state is made' '
    pgs_start && idtree init --store "$(pgs_uri)" --name jobs
'
test_expect_success 'jobs are stored in the tables' '
    in_store "idtree job submit --key one -- true && idtree job submit --key two -- true" >ids &&
    test "$(row)" = "2|2"
'
test_expect_success 'the next rank 0 knows the jobs and keys, and shows the jobs in order' '
    in_store "idtree job submit --key one -- true; idtree job watch -n 2" >out &&
    head -n 1 ids >wanted && head -n 1 out >found && test_cmp wanted found &&
    sed 1d out | cut -f1 >found && test_cmp ids found && test "$(row)" = "2|2"
'
test_expect_success 'acknowledged jobs lose their jobspecs' '
    in_store "idtree job ack $(tail -n 1 ids)" && test "$(pgs_sql 0 "SELECT count (*) FROM idtree.specs")" = 0
'
test_expect_success 'jobs wait while no copy confirms, and are stored when one does' '
    in_store ". $IDTREE_SRCDIR/t/wait.sh; PGS=$PGS; . $IDTREE_SRCDIR/t/pg-servers.sh; PGS=$PGS; pgs_stop 1
        idtree job submit --key three -- true >id & pgs_continue 1 && wait \$!" && test "$(row)" = "3|3"
'
test_expect_success 'while the store does not answer, an acknowledgement is to be sent again' '
    in_store ". $IDTREE_SRCDIR/t/wait.sh; . $IDTREE_SRCDIR/t/pg-servers.sh; PGS=$PGS
        idtree job watch -n 1 && pgs_stop 0 && python3 $IDTREE_SRCDIR/t/ingest_client.py unanswered; status=\$?; pgs_continue 0; exit \$status"
'
fence="UPDATE idtree.fence SET term = term + 1 WHERE store = 'jobs'"
test_expect_success 'a rank 0 that was replaced, and does not know it, does not take a consumer' '
    in_store ". $IDTREE_SRCDIR/t/wait.sh; . $IDTREE_SRCDIR/t/pg-servers.sh; PGS=$PGS
        idtree job watch -n 1 && python3 $IDTREE_SRCDIR/t/ingest_client.py unshown &&
        pgs_sql 0 \"$fence\" && python3 $IDTREE_SRCDIR/t/ingest_client.py replaced"
'
test_expect_success 'the next rank 0 takes it' '
    in_store "idtree job watch -n 1" >out && cut -f1 out >found && test_cmp id found
'
pgs_end
test_done

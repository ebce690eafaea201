#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t6040-postgresql.t - the PostgreSQL extension idtree on a real server
test_description='PostgreSQL makes ids, as a column default and in any session, even if the broker is lost'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/postgresql.sh"
skip_all=$(pg_missing)
test -z "$skip_all" || test_done
nm -D --undefined-only "$pg_built" "$IDTREE_BUILDDIR/src/common/libidtree/.libs/libidtree.so" | grep -qE '__(asan|tsan|ubsan)_' && {
    skip_all='built with a sanitizer'
    test_done
}
pg_start max_worker_processes=4 min_parallel_table_scan_size=0 || exit 1
pid=
hog=
cleanup 'end; test -z "$hog" || kill $hog; pg_stop'
pg_parallel=$(sql "SELECT name FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')") # of 15, of later ones
trap "" PIPE # of a session that has ended

PATH=$IDTREE_BUILDDIR/src/broker:$PATH
# On a busy machine a broker that is replaced may be away for longer than queries wait by default (10 s).
PGOPTIONS="-c idtree.uri=local://$PG/one/local -c idtree.timeout=${WAIT_S}s" IDTREE_URI=local://$PG/one/local
export PGOPTIONS IDTREE_URI
# Start a broker, and create its instance the first time: folder, option...
broker() {
    mkdir -p "$PG/$1" && chmod 755 "$PG/$1" && init_state "$PG/$1.state" --name "$1" || return 1
    here=$PG/$1 && shift
    idtree-broker -o rundir="$here" -o statedir="$here.state" -o access.allow-guest-user=on -o fluid.lease=2s "$@" \
        >"$here.log" 2>&1 </dev/null 5>&- &
    pid=$!
    wait_until "the broker serves" env IDTREE_URI="local://$here/local" idtree id new >/dev/null || { cat "$here.log"; return 1; }
}
end() { # signal
    test -z "$pid" || { kill "$@" $pid && { kill -CONT $pid; wait $pid; } 2>/dev/null; }
    pid=
}
# Start a session that stays open. It reads lines from descriptor 5, and its output is in the file "said".
session() { rm -f lines && mkfifo lines && : >said && { psql -qXAt <lines >>said 2>&1 5>&- & } && exec 5>lines; }
says() {
    n=$(wc -l <said) && echo "$1;" >&5 && wait_until "the session answers" holds "test \$(wc -l <said) -gt $n" && tail -n 1 said
}
fails() { test_must_fail sql "$@" 2>err; set -- $?; cat err; return "$1"; }

test_expect_success 'without a broker the PostgreSQL type works, and a request for an id gets an error message' '
    sql "CREATE EXTENSION idtree" &&
    fails "SELECT fluid_next ()" && grep "ERROR:  idtree: local://$PG/one/local: .*the directory does not exist" err &&
    grep "HINT:  Start a broker on this host" err && fails "SET idtree.uri = \"tcp://x\"; SELECT fluid_next ()" && grep "idtree.uri to an address such as local:" err &&
    fails "SELECT fluid \$\$0\$\$; SET idtree.nonsense = 1" && fails "SELECT fluid \$\$0\$\$; SET idtree.epoch = monday" && grep "as 2026-01-01T00:00:00Z" err
'
tried=
for config in "$pg_config" /usr/lib/postgresql/*/bin/pg_config; do
    test -r "$("$config" --includedir-server 2>/dev/null)/utils/guc.h" && test -r "$("$config" --pgxs)" || continue
    version=$("$config" --version)
    case $tried in *"$version"*) continue ;; esac
    tried="$tried $version"
    test_expect_success "the sources of the PostgreSQL extension compile for $version by PGXS, without a warning" '
        rm -rf pgxs && mkdir pgxs && cp "$IDTREE_SRCDIR"/src/bindings/postgresql/* pgxs &&
        make -C pgxs USE_PGXS=1 PG_CONFIG="$config" with_llvm=no COPT=-Werror PKG_CONFIG=false PG_CPPFLAGS="-I$IDTREE_SRCDIR/src/include" \
            SHLIB_LINK="-L$IDTREE_BUILDDIR/src/common/libpage/.libs -lidtree-page" >made 2>&1 || { cat made; false; } && test -s pgxs/idtree.so
    '
done
test $(($(sql "SHOW server_version_num") / 10000)) -lt 16 || test_set_prereq SOFT_ERRORS
test_expect_success SOFT_ERRORS 'pg_input_is_valid reports a text that is not an id without raising an error' '
    test "$(sql "SELECT pg_input_is_valid (x, \$\$fluid\$\$) FROM unnest (ARRAY [\$\$fuZZybuNNy\$\$, \$\$fuZZ0\$\$, \$\$18446744073709551616\$\$]) x" | tr "\n" " ")" = "t f f "
'
test_expect_success 'PostgreSQL reads ids in any form, and writes them in the form that is set' '
    for text in 6731191091817518 0x17e9fb8df16c2e 0017.e9fb.8df1.6c2e fuZZybuNNy "ƒuZZybuNNy" reform-remote-galileo--heart-package-academy; do
        sql "SELECT fluid $(printf "\047%s\047" "$text") = fluid_of_bigint (6731191091817518)"; done >got && test "$(sort -u got)" = t && test "$(wc -l <got)" = 6 &&
    for form in dec hex dothex f58 f58-utf8 ƒ58 words emoji; do
        sql "SET idtree.format = \"$form\"; SELECT id = id::text::fluid AND id::text = fluid_format (id, \$\$$form\$\$), id FROM (SELECT fluid \$\$fuZZybuNNy\$\$ AS id) x" || return 1
    done >got && cat got && test "$(grep -c "^t|" got)" = 8 && grep "reform-remote" got &&
    fails "SELECT fluid \$\$fuZZ0\$\$" && grep "\"fuZZ0\" is not a fluid" err && fails "SELECT fluid \$\$18446744073709551616\$\$" && grep "more than 64 bits" err
'
# Only some of these encodings have ƒ, and each of these encodes it in its own way.
test_expect_success 'the PostgreSQL extension, its ids, settings and errors work in databases of other encodings than UTF-8' '
    ! LC_ALL=C grep -n "[^ -~]" "$IDTREE_SRCDIR"/src/bindings/postgresql/*.sql "$IDTREE_SRCDIR"/src/bindings/postgresql/*.control &&
    for encoding in EUC_JP EUC_KR EUC_CN EUC_TW EUC_JIS_2004 LATIN1 WIN1252 KOI8R SQL_ASCII; do
        sql "CREATE DATABASE other TEMPLATE template0 ENCODING $encoding LC_COLLATE \$\$C\$\$ LC_CTYPE \$\$C\$\$" && (
            PGDATABASE=other PGCLIENTENCODING=UTF8 && export PGDATABASE PGCLIENTENCODING && test "$encoding" != SQL_ASCII || unset PGCLIENTENCODING
            sql "CREATE EXTENSION idtree; SELECT obj_description (oid) FROM pg_proc WHERE proname LIKE \$\$fluid%\$\$" >said &&
            sql "LOAD \$\$idtree\$\$; SELECT enumvals FROM pg_settings WHERE name = \$\$idtree.format\$\$" >>said &&
            fails "LOAD \$\$idtree\$\$; SET idtree.format = nonsense" >>said && grep -h "HINT.*f58-utf8" err &&
            fails "SELECT fluid_format (fluid \$\$0\$\$, \$\$nonsense\$\$)" >>said && grep -h "HINT.*f58-utf8" err &&
            ! LC_ALL=C grep "[^ -~]" said &&
            test "$(sql "SET idtree.format = words; SELECT fluid \$\$fuZZybuNNy\$\$")" = reform-remote-galileo--heart-package-academy &&
            case $encoding in
            WIN1252 | SQL_ASCII)
                test "$(sql "SET idtree.format = \$\$f58-utf8\$\$; SELECT fluid \$\$fuZZybuNNy\$\$; SHOW idtree.format")" = "ƒuZZybuNNy${LF}f58-utf8" &&
                test "$(sql "SELECT fluid \$\$ƒuZZybuNNy\$\$ = fluid \$\$fuZZybuNNy\$\$")" = t || exit 1 ;;
            LATIN1 | EUC_KR) fails "SELECT fluid_format (fluid \$\$0\$\$, \$\$f58-utf8\$\$)" && grep "has no equivalent in encoding" err || exit 1 ;;
            esac
            test_must_fail env PGOPTIONS="-c idtree.uri=local:///nowhere-ƒ/local" psql -qXAtc "SELECT fluid_next ()" 2>err && cat err &&
            grep "ERROR:  idtree: local:///nowhere-.*/local: .*the directory does not exist" err
        ) || { echo "$encoding"; return 1; }
        sql "DROP DATABASE other" || return 1
    done
'
test_expect_success 'PostgreSQL orders ids as unsigned, indexes them by B-tree, hash and BRIN, and converts them to binary, bigint and numeric' '
    sql "CREATE TABLE o AS SELECT (n * 184467440737095516::numeric)::fluid AS id, n FROM generate_series (0, 100) n ORDER BY random ();
         SELECT string_agg (n::text, \$\$ \$\$ ORDER BY id) = string_agg (n::text, \$\$ \$\$ ORDER BY n), max (id) = 18446744073709551600::numeric::fluid,
             count (DISTINCT id) = 101, bool_and (id::numeric = n * 184467440737095516::numeric) FROM o;
         CREATE INDEX ON o (id); ANALYZE o; SET enable_seqscan = off; EXPLAIN (COSTS OFF) SELECT FROM o WHERE id > \$\$0xf000000000000000\$\$;
         SELECT count (*) FROM o WHERE id > \$\$0xf000000000000000\$\$;
         DROP INDEX o_id_idx; CREATE INDEX ON o USING brin (id); SELECT count (*) FROM o WHERE id < \$\$0xf000000000000000\$\$;
         DROP INDEX o_id_idx; CREATE INDEX ON o USING hash (id); SELECT n FROM o WHERE id = 184467440737095516::bigint::fluid;
         SELECT count (*) FROM o a JOIN o b USING (id); SELECT fluid_cmp (fluid \$\$0\$\$, fluid \$\$0xffffffffffffffff\$\$);
         SELECT 50.00::numeric::fluid = 50::bigint::fluid" >got && cat got &&
    printf "%s\n" "t|t|t|t" "Index Only Scan using o_id_idx on o" "  Index Cond: (id > $(idtree id convert --to f58 0xf000000000000000)::fluid)" >want &&
    tr -d "\047" <got | head -n 3 >head && test_cmp want head && sed 1,3d got >rest && printf "%s\n" 7 94 1 101 -1 t >want && test_cmp want rest &&
    sql "CREATE TABLE o2 (LIKE o)" && sql "COPY o TO STDOUT (FORMAT binary)" >bytes && psql -qXc "COPY o2 FROM STDIN (FORMAT binary)" <bytes &&
    test "$(sql "SELECT count (*) FROM o JOIN o2 USING (id, n)")" = 101 &&
    fails "SELECT fluid \$\$0xffffffffffffffff\$\$::bigint" && grep "does not fit into a bigint" err && fails "SELECT (-1)::bigint::fluid" && fails "SELECT 1.5::fluid"
'
test_expect_success 'a column default makes ids in order in the backend with the page, and never makes an id again that was rolled back' '
    broker one -o fluid.attach=all &&
    sql "CREATE TABLE t (id fluid PRIMARY KEY DEFAULT fluid_next (), n integer)" &&
    sql "INSERT INTO t (n) SELECT generate_series (1, 5000)" && sql "BEGIN; INSERT INTO t (n) VALUES (0) RETURNING id; ROLLBACK" >rolled &&
    sql "INSERT INTO t (n) SELECT generate_series (5001, 10000);
         SELECT count (*), bool_and (ok) FROM (SELECT id > lag (id) OVER (ORDER BY n) AS ok FROM t) x" >got && cat got && test "$(cat got)" = "10000|t" &&
    test "$(sql "SELECT count (*) FROM t WHERE id = \$\$$(head -n 1 rolled)\$\$")" = 0 &&
    session && says "SELECT fluid_next ()" && backend=$(says "SELECT pg_backend_pid ()") && pg_as cat /proc/$backend/maps >maps && exec 5>&- &&
    grep libidtree-page maps && ! grep libidtree.so maps
'
test_expect_success 'settings of the PostgreSQL extension apply whenever the library is loaded, even during a parallel query' '
    sql "CREATE INDEX ON t (n); SHOW idtree.uri; SELECT fluid_next () IS NOT NULL" >got 2>&1 && printf "local://$PG/one/local\nt\n" >want && test_cmp want got &&
    PGOPTIONS="$PGOPTIONS -c idtree.format=dothex -c $pg_parallel=on" sql "SELECT id FROM t LIMIT 1" >got 2>&1 && cat got && grep -x "....\.....\.....\....." got
'
test_expect_success 'concurrent PostgreSQL sessions, workers of a query and clients of the broker get no id twice' '
    for i in 1 2 3; do sql "INSERT INTO t (n) SELECT generate_series (1, 20000)" & pids="$pids $!"; done &&
    sql "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2; SET $pg_parallel = on;
         CREATE TABLE u AS SELECT fluid_next () AS id FROM t; EXPLAIN (COSTS OFF) SELECT fluid_next () FROM t" >plan && grep Gather plan &&
    idtree id new -n 5000 >asked && for p in $pids; do wait $p || return 1; done &&
    sql "INSERT INTO t SELECT id FROM u" && psql -qXc "COPY t (id) FROM STDIN" <asked && test "$(sql "SELECT count (*) >= 85000 FROM t")" = t
'
test_expect_success 'PostgreSQL computes the time of an id from the epoch of the instance, or from the epoch that is set' '
    test "$(sql "SELECT clock_timestamp () - fluid_next ()::timestamptz BETWEEN interval \$\$-1s\$\$ AND interval \$\$10s\$\$")" = t &&
    test "$(sql "SELECT fluid_epoch () AT TIME ZONE \$\$UTC\$\$")" = "$(idtree info | sed -n "s/^fluid epoch  *\(.*\)T\(.*\)Z/\1 \2/p" | sed "s/\.\?0*$//")" &&
    test "$(sql "SET timezone = UTC; SET idtree.epoch = \$\$2026-01-01T00:00:00Z\$\$; SELECT fluid \$\$0\$\$::timestamptz, fluid_from (\$\$2026-01-01 00:00:00.0011+00\$\$)::timestamptz")" = \
        "2026-01-01 00:00:00+00|2026-01-01 00:00:00.002+00" &&
    test "$(sql "SELECT fluid_from (fluid_epoch () - interval \$\$1 year\$\$) = fluid \$\$0\$\$, fluid_range (\$\$-infinity\$\$, \$\$infinity\$\$) @> fluid \$\$0xffffffffffffffff\$\$,
        fluid \$\$1\$\$ <@ fluidrange \$\$(0,1)\$\$, fluid \$\$1\$\$ <@ fluidrange \$\$(0,1]\$\$, fluid \$\$0\$\$ <@ fluidrange \$\$(0,)\$\$, fluid \$\$0\$\$ <@ fluidrange \$\$empty\$\$")" = "t|t|f|t|f|f" &&
    fails "SELECT fluid_from (\$\$infinity\$\$)" && grep MAXVALUE err && fails "SELECT fluid_from (now () + interval \$\$40 years\$\$)" && grep "their time ends on" err
'
test_expect_success 'PostgreSQL prunes partitions by the time of ids' '
    sql "SET idtree.epoch = \$\$2026-01-01T00:00:00Z\$\$;
         CREATE TABLE p (id fluid NOT NULL) PARTITION BY RANGE (id);
         CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (MINVALUE) TO (fluid_from (\$\$2026-02-01\$\$));
         CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (fluid_from (\$\$2026-02-01\$\$)) TO (fluid_from (\$\$2026-03-01\$\$));
         CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (fluid_from (\$\$2026-03-01\$\$)) TO (MAXVALUE);
         INSERT INTO p SELECT fluid_from (timestamptz \$\$2026-01-15\$\$ + n * interval \$\$30 days\$\$) FROM generate_series (0, 2) n;
         SELECT tableoid::regclass FROM p ORDER BY id;
         EXPLAIN (COSTS OFF) SELECT FROM p WHERE id <@ fluid_range (\$\$2026-02-03\$\$, \$\$2026-02-20\$\$);
         SELECT count (*) FROM p WHERE fluid_range (\$\$2026-02-03\$\$, \$\$2026-02-20\$\$) @> id" >got && cat got &&
    printf "p1\np2\np3\n" >want && head -n 3 got >head && test_cmp want head &&
    grep "Subplans Removed: 2" got && grep "on p2 p" got && ! grep "on p[13] p" got && test "$(tail -n 1 got)" = 1
'
test_expect_success 'when a broker is stopped and another one starts, a PostgreSQL session continues, and its ids increase' '
    session && says "SELECT fluid_next ()::bigint" && end && broker one -o fluid.attach=all &&
    says "SELECT fluid_next ()::bigint" && sort -n -c said && test "$(wc -l <said)" = 2
'
test_expect_success 'when a broker is killed, a PostgreSQL session uses its page for a while, and then waits for the next broker' '
    end -9 && says "SELECT fluid_next ()::bigint" && echo "DO \$\$ BEGIN FOR i IN 1..500 LOOP PERFORM fluid_next (), pg_sleep (0.01); END LOOP; END \$\$; SELECT fluid_next ()::bigint;" >&5 &&
    broker one -o fluid.attach=all && wait_until "the session has ids" holds "test \$(wc -l <said) -gt 3" && cat said && sort -n -c said && exec 5>&- &&
    ! grep ERROR said
'
test_expect_success 'while a broker does not answer, a query in PostgreSQL can be cancelled, or times out with a message' '
    end && broker one -o access.guest-block=1000 && kill -STOP $pid && fails "SET statement_timeout = 300; SELECT fluid_next ()" && grep "canceling statement" err &&
    fails "SET idtree.timeout = 300; SELECT fluid_next ()" && grep "HINT:.*idtree.timeout" err && kill -CONT $pid &&
    session && says "SELECT fluid_next ()::bigint" && kill -STOP $pid && says "SET statement_timeout = 500; SELECT count (fluid_next ()) FROM generate_series (1, 100000)" && kill -CONT $pid &&
    grep "canceling statement" said && says "SET statement_timeout = 0; SELECT fluid_next ()::bigint" && exec 5>&- && grep -v ERROR said | sort -n -c
'
test_expect_success 'without a page, or with a used-up page and more generators, a PostgreSQL session requests ids by message' '
    test "$(sql "SELECT count (DISTINCT id), bool_and (ok) FROM (SELECT id, id > lag (id) OVER (ORDER BY n) AS ok FROM (SELECT n, fluid_next () AS id FROM generate_series (1, 20000) n OFFSET 0) x) y")" = "20000|t" &&
    test "$(sql "SELECT fluid_epoch ()")" = "$(sql "SELECT fluid_epoch () FROM (SELECT fluid_next ()) x")" &&
    end && broker one -o fluid.attach=all -o fluid.lanes=4 -o access.guest-rate=100000000 &&
    test "$(sql "SELECT count (DISTINCT id), bool_and (ok) FROM (SELECT id, id > lag (id) OVER (ORDER BY n) AS ok FROM (SELECT n, fluid_next () AS id FROM generate_series (1, 200000) n OFFSET 0) x) y")" = "200000|t"
'
test_expect_success 'a PostgreSQL session that makes many ids, is idle, is cancelled, and makes many again gets them in order' '
    many="INSERT INTO many (id) SELECT fluid_next () FROM generate_series (1, 100000);" && sql "CREATE TABLE many (n serial, id fluid UNIQUE)" &&
    echo "$many SELECT pg_sleep (1.1); $many SET statement_timeout = 200; DO \$\$ BEGIN LOOP PERFORM fluid_next (); END LOOP; END \$\$; SET statement_timeout = 0; $many" | psql -qXAt >got 2>&1 &&
    cat got && test "$(grep ERROR got)" = "ERROR:  canceling statement due to statement timeout" &&
    test "$(sql "SELECT count (*), bool_and (ok) FROM (SELECT id > lag (id) OVER (ORDER BY n) AS ok FROM many) x")" = "300000|t"
'
test_expect_success 'no query in PostgreSQL fails when the broker is replaced while a session requests blocks' '
    end && broker one -o access.guest-rate=100000000 && seq 100 | sed "s/.*/SELECT count (fluid_next ()) FROM generate_series (1, 4000);/" >asks &&
    { psql -qXAt -f asks >said 2>&1 & } && psql=$! && wait_until "it has some" test -s said && end && broker one -o fluid.attach=all -o fluid.lanes=4 -o access.guest-rate=100000000 && wait $psql && sort said | uniq -c &&
    test "$(sort -u said)" = 4000 && test "$(wc -l <said)" = 100
'
# A session requests blocks after it has used the last id of a millisecond. One session alone gets there only on a fast
# machine, so another client takes most of the ids.
test_expect_success 'after its broker was replaced, a PostgreSQL session gets the epoch, and ids of all generators, from the new broker' '
    end && broker one -o fluid.attach=off && session && says "SELECT fluid_next ()::bigint" && end && broker one -o fluid.attach=off && says "SELECT fluid_epoch () IS NOT NULL" && test "$(says "SELECT 1")" = 1 && ! grep ERROR said && exec 5>&- &&
    lanes() { broker one -o fluid.attach=all -o fluid.lanes=4 -o access.guest-rate=100000000; } &&
    many="SELECT count (DISTINCT fluid_generator (id)) > 1 FROM (SELECT fluid_next () AS id FROM generate_series (1, 200000) OFFSET 0) x" &&
    end && lanes && { "$IDTREE_BUILDDIR/t/pageload" make /dev/null 1000000000 700 5>&- & } && hog=$! && session && wait_until "a session has blocks" holds "test \$(says \"$many\") = t" && end && lanes &&
    wait_until "it has blocks again" holds "test \$(says \"$many\") = t" && kill $hog && exec 5>&- && ! grep ERROR said
'
test_expect_success 'the examples in the guide for PostgreSQL work' '
    sed -n "/^\`\`\`sql/,/^\`\`\`/p" "$IDTREE_SRCDIR/doc/guide/postgresql.md" | sed "/^\`\`\`/d" >guide.sql && sql "CREATE DATABASE guide" &&
    psql -qXAt -v ON_ERROR_STOP=1 -d guide -f guide.sql >out && cat out && test "$(sed -n 4p out)" = 1000 && grep "Subplans Removed: [12]" out
'
test_expect_success 'a PostgreSQL session refuses another instance than its first, because ids may be the same, and any instance except the one in idtree.instance' '
    uuid=$(idtree getattr instance.uuid) && session && says "SELECT fluid_next ()" && end && mv "$PG/one.state" "$PG/one.aside" && broker one -o fluid.attach=all &&
    says "SELECT fluid_next ()" && wait_until "it is told why" grep "HINT:  Two instances may make the same ids" said && cat said && grep "but this session has ids of $uuid" said && exec 5>&- &&
    sql "SELECT fluid_next ()" && fails "SET idtree.instance = \$\$$uuid\$\$; SELECT fluid_next ()" && grep "but idtree.instance is $uuid" err &&
    fails "SET idtree.instance = \$\$cluster-1\$\$; SELECT fluid_next ()" && grep "but idtree.instance is cluster-1" err && end
'
test_expect_success 'a PostgreSQL user without permission cannot set the source of ids' '
    guest() { test_must_fail env PGOPTIONS= PGUSER=guest psql -qXAtv ON_ERROR_STOP=1 -c "$@" 2>err && cat err; } &&
    sql "CREATE ROLE guest LOGIN" && guest "SELECT fluid \$\$0\$\$; SET idtree.uri = \$\$local:///evil/local\$\$" && grep "ERROR:  permission denied" err &&
    guest "SET idtree.uri = \$\$local:///evil/local\$\$; SELECT fluid_next ()" && grep "WARNING:  permission denied" err && ! grep "local:///evil" err
'
# A session of the guest role with connection options.
guest_with() { PGOPTIONS=$1 PGUSER=guest psql -qXAtv ON_ERROR_STOP=1 -c "$2"; }
test_expect_success 'connection options do not override settings of the PostgreSQL superuser' '
    broker one -o fluid.attach=all && uuid=$(idtree getattr instance.uuid) && sql "ALTER DATABASE postgres SET idtree.uri = \$\$local://$PG/one/local\$\$" &&
    sql "ALTER DATABASE postgres SET idtree.instance = \$\$other\$\$" && test_must_fail guest_with "" "SELECT fluid_next ()" 2>err && grep "but idtree.instance is other" err &&
    for option in idtree.instance=$uuid idtree.instance= idtree.epoch=2020-01-01; do
        for query in "SELECT fluid_next ()" "SELECT fluid_epoch ()" "SELECT fluid \$\$1\$\$::timestamptz"; do
            test_must_fail guest_with "-c $option" "$query" 2>err && cat err && grep "ERROR:  idtree: this session began with a value of ${option%%=*} that was refused" err || return 1
        done
    done && sql "ALTER DATABASE postgres RESET idtree.instance" && guest_with "" "SELECT fluid_next ()" &&
    guest_with "-c idtree.format=words -c idtree.timeout=20s" "SELECT fluid_next ()" &&
    test_must_fail guest_with "-c idtree.uri=local:///evil/local" "SELECT fluid_next ()" 2>err && grep "value of idtree.uri" err &&
    sql "GRANT SET ON PARAMETER idtree.instance TO guest" && guest_with "-c idtree.instance=$uuid" "SELECT fluid_next ()" &&
    test "$(guest_with "-c idtree.session_instance=$uuid" "SELECT fluid_epoch () IS NULL; SHOW idtree.session_instance")" = "f$LF$uuid" &&
    test "$(guest_with "-c idtree.session_instance=x" "SELECT fluid_epoch () IS NULL; SHOW idtree.session_instance")" = "f$LF$uuid" &&
    fails "LOAD \$\$idtree\$\$; SET idtree.session_instance = 1" && grep "DETAIL:  The session sets it" err
'
test_expect_success 'only a PostgreSQL superuser, or a role with a grant, can set the epoch, and all sessions read the epoch in the same way' '
    test_must_fail guest_with "" "SELECT fluid \$\$0\$\$; SET idtree.epoch = \$\$2020-01-01\$\$" 2>err && grep "ERROR:  permission denied" err &&
    guest_with "" "SET idtree.epoch = \$\$2020-01-01\$\$; SELECT fluid \$\$0\$\$::timestamptz" >got 2>err && cat got && ! grep 2020 got &&
    sql "GRANT SET ON PARAMETER idtree.epoch TO guest" && guest_with "" "SELECT fluid \$\$0\$\$; SET idtree.epoch = \$\$2020-01-01\$\$" &&
    sql "REVOKE SET ON PARAMETER idtree.epoch FROM guest; ALTER DATABASE postgres SET idtree.epoch = \$\$2026-01-02\$\$" &&
    for style in ISO,DMY SQL,MDY; do
        test "$(guest_with "-c timezone=Asia/Tokyo -c datestyle=$style -c timezone_abbreviations=India" "SELECT fluid \$\$0\$\$::timestamptz = \$\$2026-01-02 00:00:00+00\$\$")" = t || return 1
    done && sql "ALTER DATABASE postgres RESET idtree.epoch" &&
    for text in 2024-02-29 "2026-01-01 00:00" 2026-01-01T00:00Z "2026-01-01 00:00:00.001+09" 2026-01-01T00:00:00.100000-0330; do
        sql "SET timezone = UTC; SET idtree.epoch = \$\$$text\$\$; SELECT fluid_epoch () = \$\$$text\$\$" || return 1
    done >got && test "$(sort -u got)" = t && test "$(wc -l <got)" = 5 &&
    for text in 2025-02-29 2026-13-01 01/02/2026 "2026-01-01 24:00" "2026-01-01 00:00:00.0001" "2026-01-01 00:00 EST" 20260101 "2026-01-01x" "2026-01-01 "; do
        fails "LOAD \$\$idtree\$\$; SET idtree.epoch = \$\$$text\$\$" >said && grep "as 2026-01-01T00:00:00Z" err || return 1
    done
'
test_expect_success 'workers of a query get ids only from the instance of their leader' '
    workers="SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET max_parallel_workers_per_gather = 2; SET $pg_parallel = on; SET parallel_leader_participation = off;" &&
    sql "CREATE TABLE few AS SELECT generate_series (1, 100) AS n; CREATE FUNCTION hidden () RETURNS fluid LANGUAGE plpgsql PARALLEL SAFE AS \$\$ BEGIN RETURN fluid_next (); END \$\$" &&
    test "$(sql "$workers SELECT count (fluid_next ()) FROM few")" = 100 && test "$(sql "$workers SELECT count (id::timestamptz) FROM (SELECT n::bigint::fluid AS id FROM few) x")" = 100 &&
    fails "LOAD \$\$idtree\$\$; $workers SELECT count (hidden ()) FROM few" && grep "its leader has no ids yet" err && grep "HINT:  Call fluid_next ()" err &&
    test "$(sql "LOAD \$\$idtree\$\$; BEGIN; SELECT fluid_epoch () IS NULL; ROLLBACK; $workers SELECT count (hidden ()) FROM few" | tail -n 1)" = 100 &&
    session && echo "$workers" >&5 && test "$(says "SELECT count (fluid_next ()) FROM few")" = 100 &&
    end && rm -rf "$PG/one.state" && broker one -o fluid.attach=all &&
    says "SELECT count (fluid_next ()) FROM few" && wait_until "it is told why" grep "HINT:  Two instances may make the same ids" said && cat said && grep "but this session has ids of $uuid" said && exec 5>&-
'
test_done

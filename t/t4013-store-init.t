#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t4013-store-init.t - the state of an instance is made in PostgreSQL, or moved there
test_description='idtree init --store makes the state of an instance in PostgreSQL, and moves that of a folder there'
. "$(dirname "$0")/idtree-sharness.sh"
. "$IDTREE_SRCDIR/t/pg-servers.sh"
skip_all=$(pgs_lack)
grep -q '^libpq on' "$IDTREE_BUILDDIR/parts" || skip_all='built without libpq'
test -z "$skip_all" || test_done
PATH=$IDTREE_BUILDDIR/src/broker:$PATH
pgs_start || exit 1
cleanup pgs_end
PGSERVICEFILE=$PWD/services PGPASSFILE=$PWD/passwords
export PGSERVICEFILE PGPASSFILE

# All servers, another database, and one server alone.
all() { pgs_uri | sed "s|/postgres?|/${1:-postgres}?|"; }
sql_in() { psql -qXAt -v ON_ERROR_STOP=1 "$(all "$1")&target_session_attrs=read-write" -c "$2"; } # database, statement
refused() { # words of the message, command...
    words=$1 && shift
    test_must_fail "$@" 2>err || { cat err; return 1; }
    cat err && grep -e "$words" err
}

test_expect_success 'an empty database has no state, and init makes it' '
    refused "the database has no state of idtree: check its name in root.store; only for a new instance run idtree init --store=URI" idtree state show --store "$(all)" &&
    idtree init --store "$(all)" --name site --epoch 2026-01-01 >made && grep "(site), epoch 2026-01-01" made &&
    idtree state show --store "$(all)" >shown && cat shown && grep "^name *site" shown && grep "^term *0" shown && grep "^state *nobody" shown &&
    grep "^synchronous_standby_names *ANY 1" shown && idtree state show --json --store "$(all)" >json && grep "\"term\":0" json
'
test_expect_success 'init never changes a state' '
    refused "the database has the state of instance .* (site) already" idtree init --store "$(all)"
'
test_expect_success 'the state is on the copy' '
    test "$(psql -qXAt "$(pgs_uri 1)" -c "SELECT name FROM idtree.instance")" = site
'
test_expect_success 'a connection string that is malformed or has a password is refused' '
    refused "has a password.*PGPASSFILE" idtree init --store "postgresql://a:secret@h/x" && ! grep secret err &&
    refused "has a password" idtree init --store "host=h password=secret" && refused "invalid connection option" idtree init --store "nonsense=1" &&
    refused "exclude each other" idtree init --store "$(all)" --statedir x && refused "needs --store" idtree init --from x &&
    refused "excludes --name" idtree init --store "$(all)" --from x --name y
'
test_expect_success 'a server that is dead is passed over, a copy is not used, and no server is an error' '
    idtree state show --store "postgresql://postgres@/postgres?host=/nowhere,$PGS&port=1,$(pgs_port 0)" >shown && grep site shown &&
    refused "read-only" idtree state show --store "$(pgs_uri 1)" &&
    refused "/nowhere" idtree state show --store "host=/nowhere"
'
test_expect_success 'the string may name a service' '
    printf "[ids]\nhost=/nowhere,%s\nport=1,%s\nuser=postgres\ndbname=postgres\n" "$PGS" "$(pgs_port 0)" >services &&
    idtree state show --store service=ids >shown && grep site shown && refused "nosuch" idtree state show --store service=nosuch
'
test_expect_success 'a password comes from the password file' '
    pgs_sql 0 "CREATE USER someone PASSWORD \$\$right\$\$" && sql_in postgres "CREATE DATABASE locked OWNER someone" &&
    sed -i "1i local locked someone scram-sha-256" "$PGS/0/pg_hba.conf" && pgs_sql 0 "SELECT pg_reload_conf ()" &&
    u="postgresql://someone@/locked?host=$PGS&port=$(pgs_port 0)" && refused "no password supplied" idtree init --store "$u" &&
    umask 077 && echo "*:*:*:someone:wrong" >passwords && refused "password authentication failed" idtree init --store "$u" && ! grep right err &&
    echo "*:*:*:someone:right" >passwords && umask 022 && idtree init --store "$u" --name locked && idtree state show --store "$u" | grep locked
'

# --- a folder -----------------------------------------------------------------------------------------

broker() { idtree broker -o statedir="$PWD/state" -o broker.modules=fluid,compressor,job-ingest "$@"; }
test_expect_success 'a folder with ids, documents and jobs' '
    idtree init --statedir "$PWD/state" --name moved --epoch 2026-01-01 && uuid=$(sed -n "s/^uuid //p" state/instance) &&
    broker sh -c "idtree id new --to dec >last; idtree doc new a; idtree doc new b; idtree job submit -n 5 -k key -- true >jobs; idtree job watch -n 2 --ack" &&
    cat jobs && sql_in postgres "CREATE DATABASE target" && sql_in postgres "CREATE DATABASE wrong"
'
test_expect_success 'a folder in use is not moved' '
    broker sh -c "! idtree init --store \"$(all target)\" --from \"$PWD/state\" 2>err" && cat err && grep "in use" err &&
    refused "is not complete\|no state" idtree state show --store "$(all target)"
'
content() { sql_in target "SELECT (SELECT count (*) FROM idtree.documents), (SELECT count (*) FROM idtree.jobs), (SELECT count (*) FROM idtree.specs), acked > 0, jobs, remembered, newest > acked FROM idtree.ingest"; }
test_expect_success 'a move that was interrupted leaves a folder that is used, and a database that is not' '
    idtree init --store "$(all target)" --name moved --uuid "$uuid" --epoch 2026-01-01 && sql_in target "UPDATE idtree.instance SET filled = false" &&
    sql_in target "INSERT INTO idtree.documents VALUES (1, \$\$a\$\$, \$\$x\$\$, 0, 0, \$\$x\$\$)" && broker true &&
    refused "is not complete: run idtree init --store=URI --from=DIR again" idtree state show --store "$(all target)"
'
# Let the command stop at its first row of a table.
stop_at() { # table
    sql_in target "CREATE OR REPLACE FUNCTION stop () RETURNS trigger LANGUAGE plpgsql AS \$\$BEGIN PERFORM pg_sleep (10000); RETURN NEW; END\$\$" &&
        sql_in target "CREATE TRIGGER stop BEFORE INSERT ON idtree.$1 EXECUTE FUNCTION stop ()"
}
sleeps() { test "$(pgs_sql 0 "SELECT count (*) FROM pg_stat_activity WHERE wait_event = \$\$PgSleep\$\$")" = "$1"; } # number of sessions
test_expect_success 'the command is killed at each table: the folder is used, the database is not' '
    for table in horizon documents jobs specs acks; do
        stop_at $table && { idtree init --store "$(all target)" --from "$PWD/state" & } && wait_until "it writes to $table" sleeps 1 && kill -9 $! && { wait $! || :; } &&
        pgs_sql 0 "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE wait_event = '\''PgSleep'\''" && wait_until "its session has ended" sleeps 0 && sql_in target "DROP TRIGGER stop ON idtree.$table" &&
        broker true && refused "is not complete: run idtree init --store=URI --from=DIR again" idtree state show --store "$(all target)" || return 1
    done
'
test_expect_success 'a root.store that is not complete is not used' '
    test_expect_code 3 idtree-broker -o broker.modules=fluid -o root.store="$(all target)" true 2>err </dev/null; cat err && grep "is not complete: run idtree init --store=URI --from=DIR again" err
'
test_expect_success 'the command is run again, and moves all' '
    idtree init --store "$(all target)" --from "$PWD/state" >made && cat made && grep "$uuid (moved), epoch 2026-01-01" made &&
    content >got && cat got && test "$(cat got)" = "2|5|3|t|3|2|t" && idtree state show --store "$(all target)" >shown && cat shown && grep "^horizon *20" shown
'
test_expect_success 'no broker uses the folder any longer' '
    test_expect_code 3 broker true 2>err && cat err && grep "was moved to PostgreSQL: set root.store instead of statedir" err &&
    test_expect_code 3 idtree start -s 1 -o statedir="$PWD/state" true 2>err </dev/null; cat err && grep "was moved to PostgreSQL" err &&
    refused "was moved to PostgreSQL" idtree state show state && refused "was moved to PostgreSQL" idtree init --statedir "$PWD/state"
'
test_expect_success 'a move that ended before its last step is completed' '
    sql_in target "UPDATE idtree.instance SET filled = false" && refused "is not complete" idtree state show --store "$(all target)" &&
    idtree init --store "$(all target)" --from "$PWD/state" && idtree state show --store "$(all target)" && content >again && test_cmp got again
'
test_expect_success 'a folder that was moved is not moved to another database' '
    refused "moved to another database" idtree init --store "$(all wrong)" --from "$PWD/state" &&
    refused "moved to another database: this one has instance .* (site)" idtree init --store "$(all)" --from "$PWD/state"
'
test_expect_success 'a folder of another instance is not moved into a database that has one' '
    idtree init --statedir "$PWD/other" && refused "the database has the state of instance .* (moved) already" idtree init --store "$(all target)" --from "$PWD/other"
'
test_expect_success 'a damaged store is not moved' '
    idtree broker -o statedir="$PWD/other" idtree id new && printf x | dd of=other/fluid.sqlite bs=1 seek=20 conv=notrunc 2>/dev/null &&
    refused "fluid.sqlite" idtree init --store "$(all wrong)" --from "$PWD/other"
'
test_done

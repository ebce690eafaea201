# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# postgresql.sh - run a private PostgreSQL server with the built extension for a test; source it after
# idtree-sharness.sh
#
# A server finds an extension only in its own folders, whose paths are relative to its program. Therefore the program is
# copied to a folder with the same layout. The server refuses to run as root; if the test is root, the server runs as
# nobody. It listens at a UNIX socket, and ends with the test.

pg_built=$IDTREE_BUILDDIR/src/bindings/postgresql/.libs/idtree.so
pg_config=$(sed -n 's/^PG_CONFIG = //p' "$IDTREE_BUILDDIR/Makefile")
pg_missing() {
    test -f "$pg_built" || { echo 'the extension of PostgreSQL is not built'; return; }
    test -x "$("$pg_config" --bindir)/initdb" || { echo 'no server of PostgreSQL is installed'; return; }
    test "$(id -u)" -ne 0 || id nobody >/dev/null 2>&1 || echo 'PostgreSQL refuses to run as root, and there is no nobody'
}

pg_as() { if test "$(id -u)" -eq 0; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi; }

# Lay out the folders, make a database cluster, and start it with additional settings. Sets PG (the folder), PGHOST,
# PGDATABASE.
pg_start() { # setting=value...
    PG=$(mktemp -d "${TMPDIR:-/tmp}/idtree-pg.XXXXXX") && chmod 755 "$PG" || return 1
    pg_bin=$PG$("$pg_config" --bindir) && pg_lib=$PG$("$pg_config" --pkglibdir) && pg_share=$PG$("$pg_config" --sharedir)
    mkdir -p "$pg_bin" "$pg_lib" "$pg_share/extension" "$PG/run" "$PG/libs" &&
        cp "$("$pg_config" --bindir)"/postgres "$("$pg_config" --bindir)"/initdb "$pg_bin" &&
        ln -s "$("$pg_config" --pkglibdir)"/* "$pg_lib" &&
        find "$("$pg_config" --sharedir)" -mindepth 1 -maxdepth 1 ! -name extension -exec ln -s {} "$pg_share" \; &&
        ln -s "$("$pg_config" --sharedir)"/extension/plpgsql* "$pg_share/extension" &&
        cp "$IDTREE_SRCDIR"/src/bindings/postgresql/idtree.control "$IDTREE_SRCDIR"/src/bindings/postgresql/idtree--*.sql "$pg_share/extension" &&
        cp "$pg_built" "$pg_lib" &&
        cp "$IDTREE_BUILDDIR"/src/common/libidtree/.libs/libidtree.so.1 "$IDTREE_BUILDDIR"/src/common/libpage/.libs/libidtree-page.so.1 "$PG/libs" || return 1
    test "$(id -u)" -ne 0 || chown nobody "$PG" "$PG/run" || return 1
    pg_as "$pg_bin/initdb" -D "$PG/data" -U postgres -A trust -N --no-instructions -E UTF8 --locale=C.UTF-8 >"$PG/initdb.log" 2>&1 || { cat "$PG/initdb.log"; return 1; }
    PGHOST=$PG/run PGUSER=postgres PGDATABASE=postgres PGOPTIONS=
    export PGHOST PGUSER PGDATABASE PGOPTIONS
    pg_run "$@"
}

# Start the server that pg_start made, and wait until it answers or has ended.
pg_run() { # setting=value...
    # shellcheck disable=SC2046
    set -- $(printf -- ' -c %s' "$@")
    (cd "$PG" && LD_LIBRARY_PATH=$PG/libs pg_as "$pg_bin/postgres" -D data -k "$PG/run" -c listen_addresses= -c fsync=off \
        -c autovacuum=off "$@" >server.log 2>&1 </dev/null 5>&-; : >ended) &
    wait_until "the server answers" pg_answers && test ! -e "$PG/ended" || { cat "$PG/server.log"; return 1; }
}
pg_answers() { test -e "$PG/ended" || psql -qXc 'SELECT' >/dev/null; }

pg_stop() {
    test -n "$PG" || return 0
    kill -INT "$(head -n 1 "$PG/data/postmaster.pid")"
    wait_until "the server has ended" test -e "$PG/ended" && rm -rf "$PG"
    PG=
}

# Print the rows of a query, without headers.
sql() { psql -qXAtv ON_ERROR_STOP=1 -c "$@"; }

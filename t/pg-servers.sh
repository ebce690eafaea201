# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# pg-servers.sh - run private PostgreSQL servers for a test: a primary, and copies of it; source it after wait.sh
#
#     pgs_start              # server 0 is the primary, server 1 a copy that each commit waits for
#     pgs_uri                # print a connection string of all servers
#     pgs_kill 0             # the primary's host is lost
#     pgs_promote 1 ""       # the copy becomes the primary, and no commit waits
#     pgs_add_copy 0 1       # server 0 becomes a copy of server 1
#     pgs_names 1 "ANY 1 (*)" # commits wait for it again
#     pgs_end
#
# A server has the folder $PGS/NUMBER, and a socket in $PGS. If the test is root, servers run as nobody. A test with
# hosts of its own (hosts.sh) replaces pgs_address, which prints the address of a server, and pgs_in, which runs a
# command on the server's host. With PGS_AUTOVACUUM=on the servers remove dead rows.

PGS=
pgs_bin=$(for d in /usr/lib/postgresql/*/bin; do echo "$d"; done | tail -n 1)
pgs_address() { echo "$PGS"; } # number
pgs_in() { shift && "$@"; }    # number, command...
pgs_port() { echo $((5400 + $1)); }

# Print why idtree cannot use servers, or none can be started; print nothing if all is there.
pgs_lack() {
    grep -q "define HAVE_LIBPQ 1" "$IDTREE_BUILDDIR/config.h" || { echo 'built without libpq'; return; }
    test -x "$pgs_bin/initdb" || { echo 'no server of PostgreSQL is installed'; return; }
    test "$(id -u)" -ne 0 || id nobody >/dev/null 2>&1 || echo 'PostgreSQL refuses to run as root, and there is no nobody'
}
pgs_as() { if test "$(id -u)" -eq 0; then setpriv --reuid nobody --regid nogroup --clear-groups "$@"; else "$@"; fi; }

# --- statements -------------------------------------------------------------------------------------

# Print a connection string of all servers, or of some.
pgs_uri() { # number...
    # shellcheck disable=SC2012,SC2046 # the names are digits
    test $# -gt 0 || set -- $(cd "$PGS" && ls -d [0-9])
    pgs_hosts='' pgs_ports=''
    for pgs_i in "$@"; do
        pgs_hosts="$pgs_hosts,$(pgs_address "$pgs_i")" pgs_ports="$pgs_ports,$(pgs_port "$pgs_i")"
    done
    echo "postgresql:///postgres?user=postgres&host=${pgs_hosts#,}&port=${pgs_ports#,}"
}

# Run a statement in a session that does not wait for copies and may always write. Its rows are printed.
pgs_sql() { # number, statement
    PGOPTIONS='-c synchronous_commit=local -c default_transaction_read_only=off' \
        psql -qXAt -v ON_ERROR_STOP=1 "postgresql:///postgres?user=postgres&host=$PGS&port=$(pgs_port "$1")" -c "$2"
}
pgs_says() { test "$(pgs_sql "$1" "$2")" = "$3"; } # number, statement, its only value

# Change a setting. Returns when new sessions have it.
pgs_set() { # number, setting, value
    pgs_sql "$1" "ALTER SYSTEM SET $2 = '$3'" && pgs_sql "$1" "SELECT pg_reload_conf ()" >/dev/null &&
        wait_until "server $1 has $2 '$3'" pgs_says "$1" \
            "SELECT count (*) FROM pg_file_settings f JOIN pg_settings s USING (name) WHERE name = '$2' AND f.setting = '$3' AND (s.reset_val = '$3' OR name = 'default_transaction_read_only')" 1
}
pgs_names() { pgs_set "$1" synchronous_standby_names "$2"; } # number, names; "": no commit waits
pgs_read_only() { pgs_set "$1" default_transaction_read_only on; } # number
pgs_read_write() { pgs_set "$1" default_transaction_read_only off; }

# Wait until a primary has a number of copies that commits wait for, or could wait for.
pgs_wait_copies() { # number, copies
    wait_until "server $1 has $2 copies" pgs_says "$1" "SELECT count (*) FROM pg_stat_replication WHERE state = 'streaming'" "$2"
}

# --- servers ----------------------------------------------------------------------------------------

# Make a primary and copies. Commits wait for one copy.
pgs_start() { # number of copies (1)
    PGS=$(mktemp -d "${TMPDIR:-/tmp}/idtree-pgs.XXXXXX") && chmod 755 "$PGS" || return 1
    test "$(id -u)" -ne 0 || chown nobody "$PGS" || return 1
    pgs_as "$pgs_bin/initdb" -D "$PGS/0" -U postgres -A trust -N --no-instructions --wal-segsize=1 -E UTF8 --locale=C.UTF-8 >"$PGS/log.init" 2>&1 ||
        { cat "$PGS/log.init"; return 1; }
    printf 'host %s all all trust\n' all replication >>"$PGS/0/pg_hba.conf" && pgs_run 0 || return 1
    for pgs_copy in $(seq 1 "${1:-1}"); do pgs_add_copy "$pgs_copy" 0 || return 1; done
    pgs_wait_copies 0 "${1:-1}" && pgs_names 0 "ANY 1 (*)"
}

# Start a server that has a folder, and wait until it answers.
pgs_run() { # number, setting=value...
    pgs_n=$1 && shift
    # shellcheck disable=SC2046
    set -- $(test $# -eq 0 || printf -- ' -c %s' "$@")
    pgs_listen=$(pgs_address "$pgs_n")
    case $pgs_listen in /*) pgs_listen= ;; esac
    rm -f "$PGS/ended.$pgs_n"
    (cd "$PGS" && pgs_as_in "$pgs_n" "$pgs_bin/postgres" -D "$PGS/$pgs_n" -k "$PGS" -p "$(pgs_port "$pgs_n")" -c "listen_addresses=$pgs_listen" \
        -c "cluster_name=copy$pgs_n" -c fsync=off -c "autovacuum=${PGS_AUTOVACUUM:-off}" -c autovacuum_naptime=5s -c min_wal_size=2MB -c wal_keep_size=64MB -c wal_retrieve_retry_interval=100ms "$@" \
        >>"log.$pgs_n" 2>&1 </dev/null; : >"ended.$pgs_n") 5>&- 6>&- &
    wait_until "server $pgs_n answers" pgs_answers "$pgs_n" && test ! -e "$PGS/ended.$pgs_n" || { tail -n 20 "$PGS/log.$pgs_n"; return 1; }
}
pgs_as_in() { # number, command...
    pgs_host=$1 && shift
    if test "$(id -u)" -eq 0; then set -- setpriv --reuid nobody --regid nogroup --clear-groups "$@"; fi
    pgs_in "$pgs_host" "$@"
}
pgs_answers() { test -e "$PGS/ended.$1" || pgs_sql "$1" SELECT >/dev/null; }

# Make a copy of a server, and start it; a folder of the same number is replaced.
pgs_add_copy() { # number, number of the primary
    rm -rf "${PGS:?}/$1" &&
        pgs_as "$pgs_bin/pg_basebackup" -h "$PGS" -p "$(pgs_port "$2")" -U postgres -D "$PGS/$1" -X stream -c fast >"$PGS/log.copy" 2>&1 ||
        { cat "$PGS/log.copy"; return 1; }
    pgs_as touch "$PGS/$1/standby.signal" && pgs_as sed -i '/^primary_conninfo/d' "$PGS/$1/postgresql.auto.conf" || return 1
    pgs_primary "$2" >>"$PGS/$1/postgresql.auto.conf" && pgs_run "$1"
}
pgs_primary() { echo "primary_conninfo = 'host=$(pgs_address "$1") port=$(pgs_port "$1") user=postgres'"; } # number

# Let a copy follow another primary.
pgs_follow() { # number, number of the primary
    pgs_set "$1" primary_conninfo "host=$(pgs_address "$2") port=$(pgs_port "$2") user=postgres"
}

# Make a copy the primary.
pgs_promote() { # number, synchronous_standby_names
    pgs_sql "$1" "SELECT pg_promote ()" >/dev/null && wait_until "server $1 is the primary" pgs_says "$1" "SELECT pg_is_in_recovery ()" f &&
        pgs_names "$1" "$2"
}

# --- failures ---------------------------------------------------------------------------------------

pgs_pid() { head -n 1 "$PGS/$1/postmaster.pid"; } # number

# End a server as kill -9 does. Its processes end when the main process has ended.
pgs_kill() { # number
    pgs_shm=$(sed -n '7s/.* //p' "$PGS/$1/postmaster.pid") && kill -9 "$(pgs_pid "$1")" &&
        wait_until "server $1 is dead" test -e "$PGS/ended.$1" && wait_until "its processes have ended" pgs_release "$pgs_shm"
}
# The segment of shared memory is in use until the last process has ended.
pgs_release() { # number of the segment
    ipcs -m -i "$1" 2>/dev/null | grep -q "nattch=0" || ! ipcs -m -i "$1" 2>/dev/null | grep -q nattch= || return 1
    ipcrm -m "$1" 2>/dev/null || :
}

# Stop all processes of a server, which does not end their connections; let them go on.
pgs_stop() { kill -STOP "$(pgs_pid "$1")" && pkill -STOP -P "$(pgs_pid "$1")"; } # number
pgs_continue() { pkill -CONT -P "$(pgs_pid "$1")"; kill -CONT "$(pgs_pid "$1")"; }

# A server removes its pid file at its end. (The subshell that notes the end may have been killed with the test.)
pgs_has_ended() { test -e "$PGS/ended.$1" || ! kill -0 "$(pgs_pid "$1" 2>/dev/null)" 2>/dev/null; } # number

# End all servers, and remove their folders.
pgs_end() {
    test -n "$PGS" || return 0
    for pgs_f in "$PGS"/[0-9]; do
        pgs_f=${pgs_f##*/}
        test ! -e "$PGS/ended.$pgs_f" && test -e "$PGS/$pgs_f/postmaster.pid" || continue
        pgs_continue "$pgs_f" 2>/dev/null
        kill -QUIT "$(pgs_pid "$pgs_f")" && wait_until "server $pgs_f has ended" pgs_has_ended "$pgs_f"
    done
    rm -rf "$PGS"
    PGS=
}

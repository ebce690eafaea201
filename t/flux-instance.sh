# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# flux-instance.sh - instances of Flux for tests of the module there; source it after wait.sh
#
# An instance runs until flux_end, or until who started it is gone.  The ranks 0 1 2 3 are a tree of two levels: 3 is
# below 1.
# Of the broker of rank R the address is $flux_uri_prefix and R.

flux_module=$IDTREE_BUILDDIR/src/flux/.libs/idtree-flux.so
flux_topology=-Stbon.topo=kary:2
flux_dir= # of an instance whose brokers can be run again

# Print why there can be no test; nothing where there can.
flux_lacks() {
    command -v flux >/dev/null || { echo "flux is not installed"; return; }
    test -f "$flux_module" || { echo "the module for Flux was not built: configure has found no flux-core"; return; }
    ! nm -D "$flux_module" | grep -q "__[at]san" || echo "a broker without sanitizers cannot load what has them"
}

flux_uri() { echo "$flux_uri_prefix$1"; }

# The initial program ends when descriptor 5 is closed.
flux_run() { # option of flux start...
    rm -f flux-uri flux-hold
    mkfifo flux-uri flux-hold && exec 5<>flux-hold || return 1
    # shellcheck disable=SC2016
    flux start -s 4 "$flux_topology" "$@" \
        sh -c 'exec 5>&-; echo $FLUX_URI $FLUX_START_URI >flux-uri; read line <flux-hold' \
        </dev/null >flux-out 2>&1 5>&- 6>&- &
    flux_pid=$!
    timeout "$WAIT_S" cat flux-uri >flux-uris || { cat flux-out; return 1; }
    read -r flux_uri_zero flux_start_uri <flux-uris
    flux_uri_prefix=${flux_uri_zero%0}
}

# An instance as users have it.
flux_begin() { # option of flux start...
    flux_run "$@"
}

# One whose brokers can be killed and run again: they find each other by a configuration.  It has no rc scripts.
# 'state' is its statedir, and outlives it, as the addresses do until flux_end.
flux_begin_restartable() {
    test -n "$flux_dir" || flux_dir=$(mktemp -d) || return 1
    mkdir -p state flux-conf &&
    { test -f flux-cert || flux keygen --name test flux-cert; } &&
    cat >flux-conf/boot.toml <<END &&
[bootstrap]
curve_cert = "$PWD/flux-cert"
default_bind = "ipc://$flux_dir/tbon-%h"
default_connect = "ipc://$flux_dir/tbon-%h"
hosts = [ { host = "fake[0-3]" } ]
END
    flux_run --test-rundir="$flux_dir" "--test-hosts=fake[0-3]" --config-path="$PWD/flux-conf" \
        --test-exit-mode=leader --test-exit-timeout=0 -Sbroker.rc1_path= -Sbroker.rc3_path= -Sstatedir="$PWD/state"
}

# Rank 0 is killed, and with it all.
flux_crash() {
    kill -9 "$(flux_pid_of 0)"
    echo end >&5
    wait "$flux_pid"
    exec 5>&-
}

# Returns the exit status of the instance.
flux_end() {
    echo end >&5
    wait "$flux_pid"
    flux_rc=$?
    exec 5>&-
    test -z "$flux_dir" || rm -rf "$flux_dir"
    flux_dir=
    return $flux_rc
}

# Ask flux start to do something with a broker.
flux_start() { # method, request
    IDTREE_URI=$flux_start_uri "$IDTREE_BUILDDIR/t/ask" 0 "start.$1" "$2"
}
flux_pid_of() { flux_start status '{}' | jq ".procs[$1].pid"; }

flux_kill() { # rank
    flux_start kill "{\"rank\":$1,\"signum\":9}" && flux_start wait "{\"rank\":$1}"
}

flux_load() { # rank, argument of the module...
    flux_load_rank=$1
    shift
    FLUX_URI=$(flux_uri "$flux_load_rank") flux module load "$flux_module" "$@"
}
flux_unload() { FLUX_URI=$(flux_uri "$1") flux module remove idtree-flux; }

# Run a broker that has ended again, and the module there.
flux_again() { # rank, argument of the module...
    flux_start run "{\"rank\":$1}" && wait_until "the broker of rank $1 takes the module" flux_load "$@"
}

flux_served() { # rank
    wait_until "rank $1 gives ids" flux_makes_id "$1"
}
flux_makes_id() { idtree id new --uri "$(flux_uri "$1")" >/dev/null; }

# Clients of all ranks ask until flux_load_end, which prints what came; it fails where an id came twice, out of order,
# or a request was not answered once.
flux_load_begin() {
    rm -f load-stop
    mkfifo load-stop || return 1
    "$IDTREE_BUILDDIR/t/idload" "$flux_uri_prefix" 0 1 2 3 <load-stop >load-result 5>&- 6>&- &
    flux_load_pid=$!
    exec 6>load-stop
}
flux_load_end() {
    exec 6>&-
    wait "$flux_load_pid"
    flux_rc=$?
    cat load-result
    return $flux_rc
}

# One round of what befalls brokers, under the arguments that the module has: a leaf and an inner rank are killed, a
# leaf is cut off.  Who is below one that is killed ends when that is back, and so does who is cut off.
flux_round() { # argument of the module...
    flux_kill 3 && flux_again 3 "$@" && flux_served 3 &&
    flux_kill 1 && flux_start run '{"rank":1}' && flux_start wait '{"rank":3}' &&
    wait_until "the broker of rank 1 takes the module" flux_load 1 "$@" && flux_again 3 "$@" && flux_served 3 &&
    FLUX_URI=$(flux_uri 0) flux overlay disconnect 2 && flux_start wait '{"rank":2}' && flux_again 2 "$@" &&
    flux_served 2 && flux_served 1
}

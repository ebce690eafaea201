# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# flux-instance.sh - instances of Flux for tests of the module for Flux; source it after wait.sh
#
# An instance runs until flux_end, or until the process that started it ends. The ranks 0 1 2 3 are a tree of two
# levels: 3 is the child of 1. The address of the broker of rank R is $flux_uri_prefix followed by R.

flux_module=$IDTREE_BUILDDIR/src/flux/.libs/idtree-flux.so
flux_topology=-Stbon.topo=kary:2
flux_dir= # the folder of an instance whose brokers can be run again

# Print why the tests cannot run; print nothing if they can.
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

# Start an instance as users do.
flux_begin() { # option of flux start...
    flux_run "$@"
}

# Start an instance whose brokers can be killed and run again, because they find each other by a configuration. It has
# no rc scripts. Its statedir is the folder 'state', which remains when the instance ends. The addresses of its brokers
# remain until flux_end.
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

# Kill rank 0, which ends all brokers.
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

# Send a request about a broker to flux start.
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

# Run a broker that has ended again, and load the module there.
flux_again() { # rank, argument of the module...
    flux_start run "{\"rank\":$1}" && wait_until "the broker of rank $1 takes the module" flux_load "$@"
}

flux_served() { # rank
    wait_until "rank $1 gives ids" flux_makes_id "$1"
}
flux_makes_id() { idtree id new --uri "$(flux_uri "$1")" >/dev/null; }

# Clients of all ranks request ids until flux_load_end, which prints the result. It fails if an id was issued twice or
# out of order, or if a request was not answered exactly once.
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

# Make one round of faults; the arguments are those of the module. A leaf and an inner rank are killed, and a leaf is
# cut off. If a rank was killed, its child ends when the rank runs again. A leaf that was cut off ends, too.
flux_round() { # argument of the module...
    flux_kill 3 && flux_again 3 "$@" && flux_served 3 &&
    flux_kill 1 && flux_start run '{"rank":1}' && flux_start wait '{"rank":3}' &&
    wait_until "the broker of rank 1 takes the module" flux_load 1 "$@" && flux_again 3 "$@" && flux_served 3 &&
    FLUX_URI=$(flux_uri 0) flux overlay disconnect 2 && flux_start wait '{"rank":2}' && flux_again 2 "$@" &&
    flux_served 2 && flux_served 1
}

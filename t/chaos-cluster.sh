#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# chaos-cluster.sh [-n HOSTS] [-d DURATION | -s STEPS] [-r SEED] [-v] - faults in a configured instance
#
# Runs HOSTS hosts (7) with one broker each, and two spare hosts, for DURATION (1m; such as 90s, 10m, 2h), or for STEPS
# steps of half a second or more. Brokers are killed, terminated, stopped, and cut off from the network. Hosts are
# replaced by spare ones; the replaced host is dead, or still runs behind an unplugged cable. If the host of rank 0 is
# replaced, its disk moves to the spare host. Sometimes all brokers are killed together. A broker that has ended is
# started again, as the manager of its unit would do. Clients on each host request ids continuously. The exit status is
# 0 if and only if all brokers are back, no broker ended by itself, and t/idload found no duplicate id, exactly one
# answer to each request, and increasing ids on each connection. The seed determines which fault occurs in which step.
set -u
: "${IDTREE_SRCDIR:=$(cd "$(dirname "$0")/.." && pwd)}"
: "${IDTREE_BUILDDIR:=$PWD}"
N=7 SPARES=2 duration=1m steps=0 seed=$RANDOM verbose=
usage() { echo "usage: chaos-cluster.sh [-n HOSTS] [-d DURATION | -s STEPS] [-r SEED] [-v]" >&2; exit 2; }
while getopts n:d:s:r:v c; do
    case $c in
    n) N=$OPTARG ;;
    d) duration=$OPTARG ;;
    s) steps=$OPTARG ;;
    r) seed=$OPTARG ;;
    v) verbose=1 ;;
    *) usage ;;
    esac
done
case $duration in *h) seconds=$((${duration%h} * 3600)) ;; *m) seconds=$((${duration%m} * 60)) ;; *) seconds=${duration%s} ;; esac
{ [ $# -lt $OPTIND ] && [ "$N" -ge 2 ] && [ "$N" -le 200 ] && [ "$seconds" -gt 0 ] && [ "$steps" -ge 0 ] && [ "$seed" -ge 0 ]; } 2>/dev/null || usage

PATH=$IDTREE_BUILDDIR/src/broker:$IDTREE_BUILDDIR/src/cmd:$PATH
unset IDTREE_URI FLUX_URI
. "$IDTREE_SRCDIR/t/wait.sh"
. "$IDTREE_SRCDIR/t/hosts.sh"
why=$(hosts_lack)
[ -z "$why" ] || { echo "chaos-cluster: $why" >&2; exit 1; }
exec 3>&2
T=$(mktemp -d "${TMPDIR:-/tmp}/idtree-cluster.XXXXXX") && cd "$T" || exit 1
trap hosts_end EXIT
trap 'exit 130' INT TERM
exec 2>complaints # bash reports each broker that is killed

step=0 bad=0
declare -A faults=() undo=() due=() # faults of each kind; for each host: the function that ends its fault, and its step
RANDOM=$seed
pick() { picked=$((RANDOM % $1)); } # must not run in a subshell, where RANDOM is another sequence
tell() { [ -z "$verbose" ] || echo "step $step: $*"; }
wrong() {
    echo "chaos-cluster: step $step: $*" >&3
    bad=$((bad + 1))
}

# --- faults of a host that has a rank and no fault; each one sets by "hold" the function that ends it ----

hold() { # host, function
    pick 16
    undo[$1]=$2 due[$1]=$((step + 1 + picked))
}
fault_kill() { kill_host "$1" && hold "$1" start; }
fault_end() { # end the broker in order
    kill "$(pid "$1")" && wait_until "the broker of host $1 ends" is_gone "$(pid "$1")" && status_is "$1" 0 && hold "$1" start
}
fault_stop() { kill -STOP "$(pid "$1")" && hold "$1" continue_host; }
fault_cut() { link "$1" down && hold "$1" link_up; }
continue_host() { kill -CONT "$(pid "$1")"; }
link_up() { link "$1" up; }

# Set $spare to a host without a rank and without a broker. The search runs from the last host down.
find_spare() {
    for spare in $(all_hosts | tac); do
        [ -n "${undo[$spare]-}" ] || grep -qx "$spare" "$T"/rank.* || return 0
    done
    return 1
}
# Replace the host of a rank by the spare host, in the files of all hosts except an unreachable one.
take_over() { # rank, unreachable host, if any
    echo "$spare" >"$T/rank.$1"
    for h in $(all_hosts); do
        [ "$h" = "${2-}" ] || case ${undo[$h]-} in come_back | learn) ;; *) write_file "$h" && reload "$h" ;; esac
    done
    start "$spare"
}
fault_replace() { # host, rank
    find_spare || return 2
    kill_host "$1" && { [ "$2" != 0 ] || move_disk "$1" "$spare"; } && take_over "$2"
}
# The broker of the replaced host still runs and does not know of its replacement. It may run until its cable is plugged
# in and its file is updated.
fault_oust() { # host, rank
    find_spare && [ "$2" != 0 ] || return 2
    link "$1" down && take_over "$2" "$1" && hold "$1" come_back
}
come_back() { link "$1" up && hold "$1" learn; }
learn() {
    write_file "$1" && reload "$1" &&
        wait_until "host $1 has learned that it is replaced" is_gone "$(pid "$1")" && status_is "$1" 2
}

fault_all() {
    heal
    for h in "${running[@]}"; do kill -9 "$(pid "$h")"; done
    for h in "${running[@]}"; do wait_until "the broker of host $h is gone" is_gone "$(pid "$h")" || return 1; done
    start_all
}

# --- steps ---------------------------------------------------------------------------------------------

start_all() { # in random order
    local n=$N h
    hosts_of_ranks
    while [ $n -gt 0 ]; do
        pick $n
        n=$((n - 1)) h=${running[picked]} running[picked]=${running[n]} running[n]=$h
        start "$h"
    done
}
hosts_of_ranks() { mapfile -t running < <(for r in $(all_ranks); do host_of "$r"; done); }

end_fault() { # host
    local what=${undo[$1]}
    unset "undo[$1]" "due[$1]"
    tell "$what of host $1"
    $what "$1" || wrong "$what of host $1 failed"
}
heal() { while [ ${#undo[@]} -gt 0 ]; do for h in "${!undo[@]}"; do end_fault "$h"; done; done; }

status_is() { # host, expected status of its broker, which has ended
    local status=0
    wait "$(pid "$1")" || status=$?
    rm "$T/pid.$1"
    [ $status = "$2" ] || { tail -n 5 "$T/err.$1" >&3; wrong "the broker of host $1 ended with status $status, and not $2"; }
}
# If a broker has ended without a fault, start it again, as the manager of its unit would do, and count an error.
look() {
    hosts_of_ranks
    for h in "${running[@]}"; do
        [ "${undo[$h]-}" != start ] && is_gone "$(pid "$h")" || continue
        status_is "$h" "none, as nobody ended it"
        start "$h"
    done
}

kinds=(kill kill kill end stop stop cut cut cut replace replace oust oust oust all)
fault() {
    local rank host kind
    pick "$N"
    rank=$picked host=$(host_of "$picked")
    pick ${#kinds[@]}
    kind=${kinds[picked]}
    [ -z "${undo[$host]-}" ] || return 0
    tell "$kind, host $host, rank $rank"
    "fault_$kind" "$host" "$rank"
    case $? in
    0) faults[$kind]=$((${faults[$kind]-0} + 1)) ;;
    2) ;; # the fault is not possible now
    *) wrong "$kind of host $host, rank $rank, failed" ;;
    esac
}
one_step() {
    step=$((step + 1))
    for h in "${!due[@]}"; do [ "${due[$h]}" -gt $step ] || end_fault "$h"; done
    pick 10
    sleep "0.$picked" # a random time in which the last faults have their effect
    look
    fault
}

echo "seed $seed, $N hosts and $SPARES spare ones, $([ "$steps" = 0 ] && echo "$duration" || echo "$steps steps")"
hosts_make >init && start_all && wait_full && load_start || { echo "chaos-cluster: no instance came to be" >&3; exit 1; }
end=$(($(wait_now) + seconds))
goes_on() { if [ "$steps" = 0 ]; then [ "$(wait_now)" -lt $end ]; else [ $step -lt "$steps" ]; fi; }
while goes_on; do one_step; done
heal
look
wait_full && all_serve || wrong "not all are there again"
load_end || wrong "ids are not as promised"
no_id_twice || wrong "ids came twice after the faults"
hosts_of_ranks
idtree shutdown --uri "$(uri 0)" || wrong "it cannot be shut down"
for h in "${running[@]}"; do wait_until "host $h ends" is_gone "$(pid "$h")" && status_is "$h" 0; done
echo "$step steps:$(for kind in "${!faults[@]}"; do echo " $kind ${faults[$kind]}"; done | sort | tr -d '\n')"
tail -n 1 result
! grep -v ': line [0-9]*: *[0-9]* Killed ' complaints || bad=$((bad + 1))
[ $bad = 0 ] || {
    mkdir -p "$IDTREE_BUILDDIR/chaos-cluster.log" && cp init err.* result "$IDTREE_BUILDDIR/chaos-cluster.log"
    echo "FAILED: seed $seed; what brokers said is in chaos-cluster.log"
    exit 1
}
echo "passed: seed $seed"

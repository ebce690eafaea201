#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# chaos-standby.sh [-d DURATION | -s STEPS] [-r SEED] [-v] - faults in an instance whose rank 0 has three candidates
#
# Runs six hosts for DURATION (1m; such as 90s, 10m, 2h), or for STEPS steps of half a second or more. Hosts 0 to 2 have
# a candidate for rank 0 and a rank each, host 3 has a rank, host 4 the primary of PostgreSQL and host 5 its synchronous
# copy. A candidate is killed, terminated, stopped, cut off from all hosts, from the database, or from the other
# candidates, or with one rank from all others; its host is lost, or loses its power; its wall clock is wrong by an hour;
# its modules are reloaded; it gives its role back. All candidates are killed at a time. The instance is shut down and
# started again. The database is killed, replaced by its copy, stopped, full, read-only; it refuses logins, has no copy,
# or is configured to need none, and an administrator cancels commits that wait for the copy. An ended candidate is
# started again, as the manager of its unit would do. Meanwhile clients request ids at all ranks, submit and consume
# jobs, and work in documents. On a busy machine rank 0 moves ten times a minute.
#
# The exit status is 0 if and only if the instance recovered, no broker ended in a wrong way, each term had one root,
# terms grew, no id was issued twice, ids and jobs kept their order, no job was lost or stored twice, and no final id of
# a document changed. The seed determines which fault occurs in which step.
set -u
: "${IDTREE_SRCDIR:=$(cd "$(dirname "$0")/.." && pwd)}"
: "${IDTREE_BUILDDIR:=$PWD}"
duration=1m steps=0 seed=$RANDOM verbose=
usage() { echo "usage: chaos-standby.sh [-d DURATION | -s STEPS] [-r SEED] [-v]" >&2; exit 2; }
while getopts d:s:r:v c; do
    case $c in
    d) duration=$OPTARG ;;
    s) steps=$OPTARG ;;
    r) seed=$OPTARG ;;
    v) verbose=1 ;;
    *) usage ;;
    esac
done
case $duration in *h) seconds=$((${duration%h} * 3600)) ;; *m) seconds=$((${duration%m} * 60)) ;; *) seconds=${duration%s} ;; esac
{ [ $# -lt $OPTIND ] && [ "$seconds" -gt 0 ] && [ "$steps" -ge 0 ] && [ "$seed" -ge 0 ]; } 2>/dev/null || usage

PATH=$IDTREE_BUILDDIR/src/broker:$IDTREE_BUILDDIR/src/cmd:$PATH
unset IDTREE_URI FLUX_URI
. "$IDTREE_SRCDIR/t/wait.sh"
. "$IDTREE_SRCDIR/t/standby-hosts.sh"
# If a sanitizer reports an error, the exit status must differ from that of a broker that cannot start.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0:detect_leaks=0:exitcode=99"
why=$(standby_lack)
[ -z "$why" ] || { echo "chaos-standby: $why" >&2; exit 1; }
exec 3>&2
T=$(mktemp -d "${TMPDIR:-/tmp}/idtree-standby.XXXXXX") && chmod 711 "$T" && cd "$T" || exit 1
trap standby_end EXIT
trap 'exit 130' INT TERM
exec 2>complaints # bash reports each process that is killed

apart="" begun=$(wait_now) step=0 bad=0 most=0 failed_starts=0 lost_roles=0
declare -A faults=() undo=() due=() # faults of each kind; for each host and "store": how its fault ends, and when
declare -A root_of=()               # for each term that a root answered in: its host and process
RANDOM=$seed
pick() { picked=$((RANDOM % $1)); } # must not run in a subshell, where RANDOM is another sequence
tell() { [ -z "$verbose" ] || echo "step $step, $(($(wait_now) - begun)) s: $*"; }
wrong() {
    echo "chaos-standby: step $step: $*" >&3
    bad=$((bad + 1))
}
pick 2
lease=$((picked == 0 ? 5 : 20))s # short: leases end while the database is away; long: they should not

# --- hosts -----------------------------------------------------------------------------------------------------

more() {
    cat <<END
compressor.window = 8
compressor.compact = 16
event.replay = 4
ingest.max-waiting = 80
ingest.max-jobs = 20000
END
}

# Run a broker whose wall clock is wrong by what the page says (t/chaos/host.h).
on_candidate() { # host, command...
    clock_of=$1
    shift
    export CHAOS_RANK=$clock_of CHAOS_PAGE=$T/clocks CHAOS_STATE=/nowhere
    become_host "$clock_of" env LD_PRELOAD="$IDTREE_BUILDDIR/t/chaos/.libs/host.so" "$@"
}
set_clock() { # host, seconds
    python3 -c 'import sys; sys.stdout.buffer.write ((int (sys.argv[1]) * 10**6).to_bytes (8, sys.byteorder, signed=True))' "$2" |
        dd of="$T/clocks" bs=8 seek="$1" conv=notrunc status=none
}

# Let packets from a host to some hosts vanish, or no longer.
route() { # host, "add" or "del", hosts
    for h in $3; do ip -n "$(ns "$1")" route "$2" blackhole "10.77.0.$((10 + h))/32" || return 1; done
}

# --- the role --------------------------------------------------------------------------------------------------

store_answers() { case ${undo[store]-} in store_up | store_continue | store_free) false ;; esac; }
leads() { # host: ask it for its term, and check that no other root had this term
    local term
    [ -e "$T/root.$1" ] && [ -S "$T/host$1/root/local-0" ] && [ "${undo[$1]-}" != continue_root ] || return 1
    term=$(timeout 10 idtree getattr --uri "$(root_uri "$1")" root.term) || return 1
    : "${root_of[$term]:=$1 $(root "$1")}"
    [ "${root_of[$term]}" = "$1 $(root "$1")" ] || wrong "two roots in term $term: ${root_of[$term]}, and $1 $(root "$1")"
    [ "$term" -le "$most" ] || most=$term
}
find_leader() { # sets $lead, if a leader is known
    local host term
    for h in $CANDIDATES; do leads "$h" 2>/dev/null && host=$h; done
    ! store_answers || {
        IFS=\| read -r term host < <(role "term, substr (host, 5)")
        [ "${term:-0}" -ge "$most" ] || wrong "the term fell from $most to $term"
    }
    lead=${host:-$lead}
}

# A candidate that has ended is started again. A root may lose its role (76); if it cannot open the stores in the
# beginning because the database is away, it ends with 1.
reap() { # host, allowed exit statuses
    local status=0
    wait "$(root "$1")" || status=$?
    rm "$T/root.$1"
    case " $2 " in *" $status "*) ;; *)
        tail -n 5 "$T/err.root.$1" >&3
        wrong "the candidate of host $1 ended with status $status, and not $2" ;;
    esac
    [ $status != 76 ] || lost_roles=$((lost_roles + 1))
    [ $status != 1 ] || failed_starts=$((failed_starts + 1))
}
look() {
    for h in $CANDIDATES; do
        [ -e "$T/root.$h" ] && is_gone "$(root "$h")" || continue
        reap "$h" "76 1"
        candidate "$h"
    done
    for h in $CANDIDATES $LAST; do
        [ -e "$T/pid.$h" ] && is_gone "$(pid "$h")" || continue
        status_is "$h" "none, as nothing ended it"
        start "$h"
    done
    :
}
is_whole() { look && is_led && stand_by; } # a root that lost its role may end late
wait_whole() { wait_until "one candidate leads, and two stand by" is_whole; }
status_is() { # host, expected status of its rank, which has ended
    local status=0
    wait "$(pid "$1")" || status=$?
    rm "$T/pid.$1"
    [ $status = "$2" ] || { tail -n 5 "$T/err.$1" >&3; wrong "the rank of host $1 ended with status $status, and not $2"; }
}

# --- faults of a candidate; each one sets by "hold" the function that ends its fault -----------------------------

# Most faults last some steps, so that the role moves often. Some last longer than leases and timeouts.
hold() { # host or "store", function
    pick 8
    pick $((picked == 0 ? 16 : 4))
    undo[$1]=$2 due[$1]=$((step + 1 + picked))
}
kill_root() { # it may have ended just before
    kill -9 "$(root "$1")" 2>/dev/null || { reap "$1" "76 1" && return; }
    wait_until "the candidate of host $1 is dead" is_gone "$(root "$1")" && rm "$T/root.$1"
}
fault_kill() { kill_root "$1" && hold "$1" candidate; }
fault_restart() { # its unit is restarted
    kill "$(root "$1")" 2>/dev/null || return 2
    wait_until "the candidate of host $1 ends" is_gone "$(root "$1")" && reap "$1" "0 76 1" && candidate "$1"
}
fault_release() { # the leader gives its role back
    [ "$1" = "$lead" ] || return 2
    timeout 60 idtree root release --uri "$(root_uri "$1")" 2>/dev/null || return 2
    wait_until "the candidate of host $1 ends" is_gone "$(root "$1")" && reap "$1" "0 76 1" && candidate "$1"
}
fault_stop() {
    kill -STOP "$(root "$1")" 2>/dev/null || return 2
    hold "$1" continue_root
}
continue_root() { kill -CONT "$(root "$1")"; }
fault_cut() { link "$1" down && hold "$1" link_up; }
link_up() { link "$1" up; }
fault_cut_store() { route "$1" add "4 5" && hold "$1" reach_store; }
reach_store() { route "$1" del "4 5"; }
fault_cut_others() { route "$1" add "$(others "$1")" && hold "$1" reach_others; }
reach_others() { route "$1" del "$(others "$1")"; }
fault_split() { # the leader and the last rank can reach each other only
    [ "$1" = "$lead" ] && [ -z "${undo[$LAST]-}" ] || return 2
    apart=$(others "$1" && echo 4 5)
    route "$1" add "$apart" && route "$LAST" add "$apart" && hold "$1" rejoin && hold "$LAST" rejoin
}
rejoin() { route "$1" del "$apart"; }
fault_vanish() { link "$1" down && kill_root "$1" && kill_host "$1" && hold "$1" boot; }
boot() { link "$1" up && candidate "$1" && start "$1"; }
fault_power_off() { # nothing is left that could answer, or end a connection
    link "$1" down && kill_root "$1" && kill_host "$1" && ip link del "${bridge:?}-$1" && ip netns del "$(ns "$1")" && hold "$1" power_on
}
power_on() { # its disk is as it was
    mv "host$1" off && rm -r "/etc/netns/$(ns "$1")" && make_host "$1" && rm -r "host$1" && mv off "host$1" && candidate "$1" && start "$1"
}
fault_clock() {
    pick 3
    set_clock "$1" $((picked * 3600 - 3600))
}
fault_reload() { # if the module cannot be loaded because the database is away, the candidate is restarted
    pick 3
    [ "$1" = "$lead" ] || return 2
    set -- "$1" fluid compressor job-ingest
    local host=$1
    shift $((picked + 1))
    timeout 60 idtree module remove --uri "$(root_uri "$host")" "$1" 2>/dev/null || return 2
    timeout 60 idtree module load --uri "$(root_uri "$host")" "$1" 2>/dev/null ||
        is_gone "$(root "$host")" || { kill_root "$host" && candidate "$host"; }
}
fault_all() {
    for h in $CANDIDATES; do [ -z "${undo[$h]-}" ] || return 2; done
    for h in $CANDIDATES; do kill_root "$h" || return 1; done
    for h in $CANDIDATES; do candidate "$h"; done
}
fault_shutdown() {
    heal
    shut_down && start_all
}
shut_down() {
    wait_whole && idtree shutdown --uri "$(root_uri "$lead")" || return 1
    for h in $CANDIDATES; do wait_until "candidate $h ends" is_gone "$(root "$h")" && reap "$h" 0 || return 1; done
    for h in $CANDIDATES $LAST; do rank_ends "$h" || return 1; done
}
# A rank without a parent does not hear that the instance is shut down. Its manager stops its unit.
rank_ends() { # host
    WAIT_S=5 wait_until "rank $(($1 + 1)) ends" is_gone "$(pid "$1")" 2>/dev/null || kill "$(pid "$1")"
    wait_until "rank $(($1 + 1)) ends" is_gone "$(pid "$1")" && status_is "$1" 0
}

# --- faults of the database --------------------------------------------------------------------------------------

store_hold() { hold store "$1"; }
fault_store_kill() { pgs_kill "$primary" && store_hold store_up; }
store_up() { pgs_run "$primary" && pgs_wait_copies "$primary" 1; }
fault_store_promote() {
    pick 2
    [ $picked = 0 ] || link $((4 + primary)) down
    pgs_kill "$primary" && promote
}
promote() {
    local old=$primary
    pick 2
    primary=$copy copy=$old
    store_hold store_copy # if no commit waits for a copy, idtree stores nothing
    pgs_promote "$primary" "$([ $picked = 0 ] || echo "ANY 1 (*)")"
}
store_copy() {
    link $((4 + copy)) up
    pgs_add_copy "$copy" "$primary" && pgs_wait_copies "$primary" 1 && pgs_names "$primary" "ANY 1 (*)"
}
fault_store_stop() { pgs_stop "$primary" && store_hold store_continue; }
store_continue() { pgs_continue "$primary" && pgs_wait_copies "$primary" 1; }
fault_store_cut() { link $((4 + primary)) down && store_hold store_plug; }
store_plug() { link $((4 + primary)) up && pgs_wait_copies "$primary" 1; }
fault_store_full() { # both servers; with no place for its log, a server ends
    wait_until "the disk is full" fill && store_hold store_free
}
fill() { # fails if a server has written meanwhile
    mount -o "remount,size=$(df --output=used -k "$T/disk" | tail -n 1 | tr -d ' ')k" "$T/disk"
}
store_free() { mount -o remount,size=2g "$T/disk" && wait_until "both servers run" stores_run; }
stores_run() { # with no place for its log, a server ends, perhaps later
    for s in "$primary" "$copy"; do [ ! -e "$PGS/ended.$s" ] || pgs_run "$s" || return 1; done
    pgs_says "$primary" "SELECT count (*) FROM pg_stat_replication WHERE state = 'streaming'" 1
}
fault_store_read_only() { pgs_read_only "$primary" && store_hold store_read_write; }
store_read_write() { pgs_read_write "$primary"; }
fault_store_login() { logins "$primary" scram-sha-256 && store_hold store_login; }
store_login() { logins "$primary" trust; }
logins() { # number, method
    sed -i "s/^\(host all all all\) .*/\1 $2/" "$PGS/$1/pg_hba.conf" && pgs_sql "$1" "SELECT pg_reload_conf ()" >/dev/null &&
        pgs_sql "$1" "SELECT pg_terminate_backend (pid) FROM pg_stat_activity WHERE application_name LIKE 'idtree%'" >/dev/null
}
fault_store_names() { pgs_names "$primary" "" && store_hold store_names; }
store_names() { pgs_names "$primary" "ANY 1 (*)"; }
fault_store_no_copy() { pgs_kill "$copy" && store_hold store_copy_up; }
store_copy_up() { pgs_run "$copy" && pgs_wait_copies "$primary" 1; }
cancel() { # some times: cancel the commits that wait for the copy; there may be none if no candidate leads
    local n=0 found
    link $((4 + copy)) down
    for _ in $(seq 60); do
        found=$(pgs_sql "$primary" "SELECT count (pg_cancel_backend (pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") || return 1
        n=$((n + found))
        [ $n -lt 4 ] || return 0
        sleep 0.05
    done
    [ $n -gt 0 ] || { link $((4 + copy)) up && return 2; }
}
fault_store_cancel() { cancel && store_hold store_plug_copy; }
store_plug_copy() { link $((4 + copy)) up && pgs_wait_copies "$primary" 1; }
fault_store_lose() { cancel && pgs_kill "$primary" && link $((4 + copy)) up && promote; } # cancelled commits are lost

# --- steps -------------------------------------------------------------------------------------------------------

end_fault() { # host or "store"
    local what=${undo[$1]}
    unset "undo[$1]" "due[$1]"
    tell "$what $1"
    $what "$1" >>faults.out || wrong "$what of $1 failed"
}
heal() {
    [ -z "${undo[store]-}" ] || end_fault store
    while [ ${#undo[@]} -gt 0 ]; do for h in "${!undo[@]}"; do end_fault "$h"; done; done
    look
}

kinds=(kill kill kill kill kill kill kill kill kill restart restart restart restart restart release release release
    stop stop stop stop cut cut cut cut cut_store cut_store cut_store cut_others cut_others split split vanish vanish power_off power_off
    clock clock reload reload all shutdown
    store_kill store_promote store_promote store_stop store_cut store_full store_read_only store_login store_names store_no_copy
    store_cancel store_lose)
fault() {
    local host kind
    pick ${#kinds[@]}
    kind=${kinds[picked]}
    pick 8 # mostly the leader
    host=$([ $picked -lt 3 ] && echo $picked || echo "$lead")
    case $kind in store_*) host=store ;; esac
    [ -z "${undo[$host]-}" ] || return 0
    tell "$kind $host; $lead leads"
    "fault_$kind" "$host" >>faults.out
    case $? in
    0) faults[$kind]=$((${faults[$kind]-0} + 1)) ;;
    2) ;; # the fault is not possible now
    *) wrong "$kind of $host failed" ;;
    esac
}
one_step() {
    step=$((step + 1))
    for h in "${!due[@]}"; do [ "${due[$h]}" -gt $step ] || end_fault "$h"; done
    pick 10
    sleep "0.$picked" # a random time in which the last faults have their effect
    look
    find_leader
    fault
}

# --- load --------------------------------------------------------------------------------------------------------

# All loads read the same fifo, and end when it is closed.
declare -A load=()
run_load() { # name, command...
    local name=$1
    shift
    "$IDTREE_BUILDDIR/t/$1" "${@:2}" <stop >"result.$name" 2>&1 6>&- &
    load[$name]=$!
}
load_start() {
    mkfifo stop && mkdir records || return 1
    for r in $RANKS; do ln -s "host$(host_of "$r")/run/local-$r" "local-$r" || return 1; done
    # shellcheck disable=SC2046,SC2086
    run_load ids idload -p -c 20 "local://$T/" $(printf 'local-%s ' $RANKS) $(printf 'host%s/root/local-0 ' $CANDIDATES)
    # shellcheck disable=SC2086
    run_load jobs jobs/jobload crowd "$T/records" "$seed" "local://$T/local-" $RANKS
    # shellcheck disable=SC2086
    run_load documents document-load "local://$T/local-" own $RANKS
    # shellcheck disable=SC2086
    run_load sessions idcomp-load "local://$T/local-" sessions "$T/record" $RANKS
    exec 6>stop
}
load_end() {
    exec 6>&-
    for name in "${!load[@]}"; do wait "${load[$name]}" || { tail -n 12 "result.$name"; wrong "$name are not as promised"; }; done
}

goes_on() { if [ "$steps" = 0 ]; then [ "$(wait_now)" -lt $end ]; else [ $step -lt "$steps" ]; fi; }

echo "seed $seed, leases of $lease, $([ "$steps" = 0 ] && echo "$duration" || echo "$steps steps")"
truncate -s 4096 clocks && standby_make >made && load_start || { cat made complaints >&3; tail -n 5 err.* >&3; echo "chaos-standby: no instance came to be" >&3; exit 1; }
end=$(($(wait_now) + seconds))
while goes_on; do one_step; done
heal
wait_whole && all_serve || wrong "the instance did not recover"
load_end
no_id_twice || wrong "ids came twice: $(head -n 3 twice)"
term=$(role term)
shut_down || wrong "it cannot be shut down"
! grep -E 'Sanitizer|runtime error|Assert|assert|double free|corrupted' err.* >&3 || wrong "a broker reported an error of the program"
echo "$step steps:$(for kind in "${!faults[@]}"; do echo " $kind ${faults[$kind]}"; done | sort | tr -d '\n')"
echo "takeovers $((term - 1)), roots that lost the role $lost_roles, roots that could not open the stores $failed_starts"
sed -n "s/^rank local-\([0-9]\): .* longest-gap-ms \([0-9]*\)/longest gap of rank \1: \2 ms/p" result.ids
tail -qn 1 result.ids result.jobs result.documents result.sessions
! grep -v ': line [0-9]*: *[0-9]* Killed ' complaints >&3 || bad=$((bad + 1))
[ $bad = 0 ] || {
    mkdir -p "$IDTREE_BUILDDIR/chaos-standby.log" && cp -r made faults.out complaints err.* result.* records "$PGS"/log.* "$IDTREE_BUILDDIR/chaos-standby.log"
    echo "FAILED: seed $seed; what all said is in chaos-standby.log"
    exit 1
}
echo "passed: seed $seed"

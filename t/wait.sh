# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# wait.sh - how shell tests wait: for an event, and not for ever
#
# idtree-sharness.sh reads it; what a test runs inside of an instance reads it by itself: . "$IDTREE_SRCDIR/t/wait.sh"

# Far above what anything takes that a test waits for, on a machine that is busy with something else, under sanitizers.
: "${WAIT_S:=300}"
export WAIT_S

# The seconds that this host is up, without a process.
wait_now() {
    read -r wait_up wait_rest </proc/uptime
    echo "${wait_up%.*}"
}

# Run a command until it succeeds.  What it prints is there, what it complains of only where we give up: then the last
# try is made aloud, and we say what was awaited.  Pauses leave the processor to those who are waited for, and grow: a
# command that asks a broker costs more than the wait does.
wait_until() { # what is awaited, command...
    local wait_for wait_end wait_ms # the command sees them
    wait_for=$1 wait_end=$(($(wait_now) + WAIT_S)) wait_ms=20
    shift
    until "$@" 2>/dev/null; do
        if test "$(wait_now)" -ge "$wait_end"; then
            "$@" && return 0
            echo "gave up after $WAIT_S s of waiting until $wait_for" >&2
            return 1
        fi
        sleep "$(printf "0.%03d" $wait_ms)"
        test $wait_ms -ge 200 || wait_ms=$((wait_ms * 5 / 4))
    done
}

# As a command to wait for: a line of the shell's.
holds() { eval "$1"; }

# Print what comes out of a fifo until those who write have closed it.
wait_fifo() { # fifo
    timeout "$WAIT_S" cat "$1" || { echo "gave up after $WAIT_S s of waiting for what comes from $1" >&2; return 1; }
}

# The same for a descriptor: a fifo that is opened anew would wait for a writer who may be gone by now.
wait_end() { # descriptor
    timeout "$WAIT_S" cat <&"$1" || { echo "gave up after $WAIT_S s of waiting for the end of descriptor $1" >&2; return 1; }
}

# Print the next line that comes to a descriptor, and read no more than that.
wait_line() { # descriptor
    timeout "$WAIT_S" sh -c 'IFS= read -r line && printf "%s\n" "$line"' <&"$1" ||
        { echo "no line came to descriptor $1 within $WAIT_S s, or its writers are gone" >&2; return 1; }
}

# That ids come from rank $1 (again).
wait_served() { # rank, option of idtree id new...
    wait_until "rank $1 serves" wait_make_id -r "$@"
}
wait_make_id() { idtree id new "$@" >/dev/null; }

# That rank $1 is attached to rank $2.
wait_attached() { wait_until "rank $1 is attached to rank $2" wait_is_child "$1" "$2"; }
wait_is_child() { idtree module stats --json -r "$1" overlay | grep -q "\"parent-rank\": *$2[,}]"; }

# That so many clients of rank $1 have subscribed to events.
wait_subscribers() { wait_until "rank $1 has $2 subscribers" wait_has_subscribers "$1" "$2"; }
wait_has_subscribers() { idtree module stats --json -r "$1" event | grep -q "\"subscribers\": *$2[,}]"; }

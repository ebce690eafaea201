# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# wait.sh - functions by which shell tests wait for an event, with a time limit
#
# idtree-sharness.sh sources it. A script that a test runs inside an instance sources it itself:
#
#     . "$IDTREE_SRCDIR/t/wait.sh"

# A limit that is far longer than any wait of a test, even on a busy machine and under sanitizers.
: "${WAIT_S:=300}"
export WAIT_S

# Print the uptime of this host in seconds, without starting a process.
wait_now() {
    read -r wait_up wait_rest </proc/uptime
    echo "${wait_up%.*}"
}

# Run a command until it succeeds. Its output is printed. After the limit, the command runs once more with its error
# messages, and this function prints what it has waited for. The pauses leave the processor to other processes. They
# grow, because a command that sends a request to a broker needs much processor time.
wait_until() { # what is awaited, command...
    local wait_for wait_end wait_ms # the command can read these variables
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

# A command for wait_until that runs a line of shell.
holds() { eval "$1"; }

# Print what is written to a fifo until all writers have closed it.
wait_fifo() { # fifo
    timeout "$WAIT_S" cat "$1" || { echo "gave up after $WAIT_S s of waiting for what comes from $1" >&2; return 1; }
}

# Do the same for a descriptor. Opening the fifo again would wait for a writer, which may have ended.
wait_end() { # descriptor
    timeout "$WAIT_S" cat <&"$1" || { echo "gave up after $WAIT_S s of waiting for the end of descriptor $1" >&2; return 1; }
}

# Print the next line from a descriptor, and read no further.
wait_line() { # descriptor
    timeout "$WAIT_S" sh -c 'IFS= read -r line && printf "%s\n" "$line"' <&"$1" ||
        { echo "no line came to descriptor $1 within $WAIT_S s, or its writers are gone" >&2; return 1; }
}

# Wait until rank $1 serves ids (again).
wait_served() { # rank, option of idtree id new...
    wait_until "rank $1 serves" wait_make_id -r "$@"
}
wait_make_id() { idtree id new "$@" >/dev/null; }

# Wait until rank $1 makes ids with its own generator. Before, it serves too: it forwards requests.
wait_active() { wait_until "rank $1 uses its generator" wait_is_active "$1"; }
wait_is_active() { idtree overlay status --json | grep -q "\"rank\":$1,[^{}]*\"fluid\":\"active\""; }

# Wait until rank $1 is attached to rank $2.
wait_attached() { wait_until "rank $1 is attached to rank $2" wait_is_child "$1" "$2"; }
wait_is_child() { idtree module stats --json -r "$1" overlay | grep -q "\"parent-rank\": *$2[,}]"; }

# Wait until rank $1 has $2 clients that have subscribed to events.
wait_subscribers() { wait_until "rank $1 has $2 subscribers" wait_has_subscribers "$1" "$2"; }
wait_has_subscribers() { idtree module stats --json -r "$1" event | grep -q "\"subscribers\": *$2[,}]"; }

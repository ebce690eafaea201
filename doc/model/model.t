#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# model.t [--long] - let spin search the models: as they are they hold, and without any one rule they do not
#
# A case that holds must have been searched to its end; one with a rule taken away must be found by the property named,
# and by nothing else.  --long takes larger worlds, and prints a table (make model).  Each case takes at most 5 minutes
# of computing and 7 GiB.
set -u
here=$(cd "$(dirname "$0")" && pwd)
long=false
[ "${1-}" = --long ] && long=true

# small or large: when the case is run; all: always.  Model, what is expected, and the world (see the models).
cases() {
    cat <<'CASES'
all   sublease HOLDS     -DROOT -DOWNERS=2 -DS=1
all   sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DL=1 -DT=2
small sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DT=2 -DPASS
small sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1
small sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1 -DT=2 -DPASS
small sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1 -DT=2 -DLATE
all   sublease HOLDS     -DOWNERS=2 -DCHILD -DT=2
all   sublease HOLDS     -DCHILD -DMODULE -DT=2
all   sublease HOLDS     -DCHILD -DPAGE -DT=2
all   sublease HOLDS     -DCLOCKS
small sublease HOLDS     -DCLOCKS -DSLOW=0 -DSUSPENDS=1
small sublease HOLDS     -DCLOCKS -DSLOW=0 -DJUMPS=1
small sublease HOLDS     -DCLOCKS -DSLOW=0 -DCRASHES=1
all   sublease HOLDS     -DRENEWAL
large sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DFAULTS=2 -DL=2
large sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DT=4 -DFAULTS=2
large sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DWANTS=3
large sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DFAULTS=2 -DPASS
large sublease HOLDS     -DROOT -DOWNERS=2 -DS=1 -DLATE
large sublease HOLDS     -DROOT -DOWNERS=2 -DCHILD -DS=1
large sublease HOLDS     -DROOT -DOWNERS=2 -DMODULE -DT=2
large sublease HOLDS     -DCHILD -DGRANDCHILD -DT=2
large sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1 -DT=4
large sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1 -DPASS
large sublease HOLDS     -DCHILD -DGRANDCHILD -DS=1 -DLATE
large sublease HOLDS     -DCHILD -DGRANDCHILD -DMODULE -DT=2
large sublease HOLDS     -DCHILD -DGRANDCHILD -DPAGE -DT=2
large sublease HOLDS     -DCHILD -DPAGE
large sublease HOLDS     -DOWNERS=2 -DCHILD -DGRANDCHILD -DT=2
large sublease HOLDS     -DCLOCKS -DSLOW=2
large sublease HOLDS     -DCLOCKS -DSUSPENDS=2
large sublease HOLDS     -DCLOCKS -DJUMPS=2
large sublease HOLDS     -DCLOCKS -DCRASHES=2
large sublease HOLDS     -DCLOCKS -DSLOW=0 -DSUSPENDS=1 -DJUMPS=1 -DCRASHES=1
large sublease HOLDS     -DCLOCKS -DT=3 -DUSE=3
large sublease HOLDS     -DRENEWAL -DFAULTS=8
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_HORIZON_FIRST
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_START_AT_HORIZON
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_STOP_ABOVE_GRANTED
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_STOP_CLOSES
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_ONE_ROOT
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_OWN_INCARNATION
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DFAULTS=2 -DNO_STOP_NOT_BELOW_BASE
all   sublease NOT_FAR   -DROOT -DOWNERS=2 -DS=1 -DL=1 -DNO_END_A_LEASE_FROM_NOW
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_NEVER_USE_GRANTED
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_GRANT_ONCE
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_BEGIN_ABOVE_MADE
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_INSIDE_HELD
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_MAKE_ABOVE_BEGIN
all   sublease NOT_TWICE -DROOT -DOWNERS=2 -DS=1 -DNO_MAKE_BELOW_END
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_KEEP_UNTIL_PASSED
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_ANSWER_ITS_OWN
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_OWN_ANSWER
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_NEWEST_ANSWER_ONLY
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_NEWEST_WANT_ONLY
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DT=2 -DNO_END_ITS_OWN
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DS=1 -DNO_NEVER_USE_RETURNED
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DS=1 -DNO_END_ABOVE_MADE
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DS=1 -DNO_END_ABOVE_GRANTED
all   sublease NOT_TWICE -DCHILD -DGRANDCHILD -DS=1 -DT=2 -DPASS -DNO_END_ABOVE_PASSED
all   sublease NOT_TWICE -DCHILD -DPAGE -DT=2 -DNO_TAKE_BACK_IN_ONE
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_USE_UNTIL_OVER
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_NEVER_REVIVE
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_COUNT_FROM_ASKED
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DSUSPENDS=1 -DNO_AGE_WHAT_IS_HELD
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DSUSPENDS=1 -DNO_AGE_WHAT_IS_ASKED
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_USE_WITHIN_OWN_USE
all   sublease TOLD      -DCLOCKS -DNO_WAIT_FOR_SLOW_CLOCKS
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DJUMPS=1 -DNO_WAIT_AFTER_JUMP
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DJUMPS=1 -DNO_LOOK_TWICE
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_POSITION_COUNTS_GRANTED
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_BEGIN_ABOVE_TOLD
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DNO_TELL_TIME_LEFT
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DCRASHES=1 -DNO_TELL_BELOW_HORIZON
all   sublease TOLD      -DCLOCKS -DSLOW=0 -DCRASHES=1 -DNO_WAIT_AFTER_START
all   sublease RENEWED   -DRENEWAL -DNO_REPEAT_WANT
all   sublease RENEWED   -DRENEWAL -DNO_ANSWER_AGAIN
all   sublease RENEWED   -DRENEWAL -DNO_OWN_INCARNATION
all   sublease RENEWED   -DRENEWAL -DNO_HIGHEST_HORIZON
small tree  HOLDS      -DT=1 -DWANTS=1
small tree  HOLDS      -DT=1 -DWANTS=1 -DRESTARTS=0 -DBACKS=1 -DCRASHES=0
large tree  HOLDS      -DT=2 -DWANTS=2
large tree  HOLDS      -DT=2 -DWANTS=2 -DRESTARTS=0 -DG1=0 -DG2=1 -DG3=2 -DGENS=3
large tree  HOLDS      -DT=2 -DWANTS=1 -DRESTARTS=0 -DBACKS=1
large tree  HOLDS      -DT=2 -DWANTS=1 -DRESTARTS=0 -DBACKS=1 -DG1=0 -DG2=0 -DG3=0 -DGENS=1
large tree  HOLDS      -DT=1 -DWANTS=1 -DRESTARTS=1 -DBACKS=1 -DCRASHES=0
all   tree  NOT_TWICE  -DT=2 -DWANTS=2 -DNO_OWN_ANSWER
all   tree  NOT_TWICE  -DT=2 -DWANTS=2 -DNO_OWN_INCARNATION
large tree  DISJOINT   -DT=1 -DRESTARTS=0 -DG1=0 -DG2=0 -DG3=0 -DGENS=1 -DNO_HORIZON_FIRST
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_START_AT_HORIZON
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_GRANT_ONCE
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_ANSWER_ITS_OWN
large tree  DISJOINT   -DT=2 -DWANTS=2 -DBACKS=1 -DNO_NEVER_USE_RETURNED
large tree  DISJOINT   -DT=2 -DWANTS=2 -DBACKS=1 -DNO_END_ITS_OWN
large tree  DISJOINT   -DT=2 -DWANTS=2 -DBACKS=1 -DNO_RETURN_INSIDE
small serve HOLDS      -DFAULTS=1
large serve HOLDS      -DFAULTS=3
large serve HOLDS      -DFAULTS=2 -DWHO=2
large serve HOLDS      -DFAULTS=1 -DCHAIN
all   serve SERVED     -DFAULTS=2 -DNO_RESEND
all   serve SERVED     -DFAULTS=2 -DNO_RETRY
all   serve SERVED     -DFAULTS=2 -DNO_ANY_ANCESTOR
all   serve SERVED     -DFAULTS=2 -DNO_FORWARD
all   serve SERVED     -DFAULTS=2 -DNO_SEND_THE_REST
all   serve ONCE       -DFAULTS=2 -DNO_ABANDON
small page  HOLDS      -DCLIENTS=1
all   page  HOLDS      -DCLIENTS=1 -DLOOK
large page  HOLDS      -DCLIENTS=2
all   page  NOT_TWICE  -DNO_COMPARE_WORD
all   page  NOT_TWICE  -DNO_WORD_FIRST
all   page  NOT_TWICE  -DNO_CLOSE_IN_ONE
all   page  NOT_TWICE  -DNO_NUMBERS_IN_WORD
all   page  TOLD       -DNO_PAST_FIRST
all   page  TOLD       -DNO_LOOK_AGAIN
all   page  HONEST     -DCLIENTS=1 -DLOOK -DNO_CLOCK_AFTER
small order HOLDS      -DT=3 -DFAULTS=1
large order HOLDS      -DT=4 -DFAULTS=1
all   order ORDER      -DT=4 -DFAULTS=1 -DNO_WAIT_FOR_MODULE
all   order ORDER      -DT=4 -DFAULTS=1 -DNO_HAND_OVER_LAST
all   order ORDER      -DT=4 -DFAULTS=1 -DNO_CARRY_LAST
all   order ORDER      -DT=4 -DFAULTS=1 -DNO_FOLLOW_IDS
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DNO_STOP_IN_DOUBT
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DNO_TIME_ASKED_IN_DOUBT
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DNO_SKIP_MISSED_TIME
all   order TOLD       -DT=4 -DFAULTS=1 -DNO_AGE_WHAT_IS_HELD
all   order TOLD       -DT=4 -DFAULTS=1 -DNO_AGE_WHAT_IS_ASKED
all   order HOLDS      -DPARTS
all   order ORDER      -DPARTS -DNO_CARRY_LAST
all   order ORDER      -DPARTS -DNO_COMPARE_WHOLE_IDS
all   order ORDER      -DPARTS -DNO_FOLLOW_IDS
all   order ORDER      -DPARTS -DNO_FOLLOW_WHOLE_IDS
all   order ORDER      -DPARTS -DNO_CONTINUE_ABOVE_NEWEST
all   order ORDER      -DPARTS -DNO_WAIT_FOR_FORWARD
all   order ORDER      -DPARTS -DNO_ANSWER_TO_THIS_FORWARD
small standby HOLDS    -DFAILS=0
large standby HOLDS    -DFAILS=1
large standby HOLDS    -DTOP=3
large standby HOLDS    -DCOPIES
large standby HOLDS    -DFAILS=0 -DLIVES=1 -DTAKES=3
all   standby DISJOINT -DFAILS=0 -DNO_FENCE_TERM
all   standby DISJOINT -DFAILS=0 -DNO_FENCE_SERIAL
all   standby DISJOINT -DFAILS=0 -DLIVES=1 -DTAKES=3 -DNO_FENCE_STOP
all   standby DISJOINT -DFAILS=0 -DLIVES=1 -DNO_FENCE_EACH_LIFE
all   standby DISJOINT -DFAILS=0 -DNO_FENCE_NEW_BLOCK
all   standby DISJOINT -DFAILS=0 -DNO_READ_AFTER_FENCE
all   standby DISJOINT -DFAILS=0 -DNO_ASK_AGAIN
all   standby DISJOINT -DFAILS=0 -DNO_ASK_WHOSE
all   standby DISJOINT -DFAILS=0 -DBLOCK=6 -DNO_SETTLE_BY_TWO
all   standby DISJOINT -DFAILS=0 -DCOPIES -DNO_UNKNOWN_STAYS
all   standby DISJOINT -DFAILS=1 -DNO_ACKNOWLEDGED
all   standby DISJOINT -DFAILS=0 -DNO_STOP_ABOVE_GRANTED
large standby DISJOINT -DCOPIES -DNO_COPY_FIRST
large standby DISJOINT -DFAILS=0 -DTERMS=3 -DTAKES=3 -DNO_BEGIN_ANEW
small jobs  HOLDS      -DIDS=3
large jobs  HOLDS      -DIDS=4
all   jobs  HOLDS      -DIDS=2 -DWATCH
large jobs  HOLDS      -DIDS=3 -DWATCH
all   jobs  ONCE       -DIDS=3 -DNO_J_FENCE
all   jobs  ORDER      -DIDS=3 -DNO_J_READ
all   jobs  TOLD       -DIDS=2 -DWATCH -DNO_J_FIRST
all   jobs  ORDER      -DIDS=3 -DNO_J_LINE
all   jobs  ORDER      -DIDS=3 -DNO_J_SHOW
all   jobs  ORDER      -DIDS=3 -DNO_J_LATE
all   jobs  ONCE       -DIDS=3 -DNO_J_LIFE
all   jobs  ONCE       -DIDS=3 -DNO_J_DENY
CASES
}

for tool in spin "${CC:=cc}"; do
    command -v "${tool%% *}" >/dev/null || {
        echo "1..0 # SKIP ${tool%% *} is not installed"
        $long && exit 1
        exit 0
    }
done
dir=$(mktemp -d) && cd "$dir" || exit 1
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

# What the search in 'out' came to: HOLDS, a property, or that it was not one.
outcome() { # model
    case $(sed -n 's/^pan:[0-9]*: //p' out | head -n 1) in
    *'b<='* | *'e<='*) echo NOT_FAR ;;
    *'==me)'* | *'(made&'* | *'(made['*) echo NOT_TWICE ;;
    *'issuer['* | *'.lo<'* | *'(granted['*) echo DISJOINT ;;
    *'pending['* | *'(denied['* | *'(stored['*) echo ONCE ;;
    *'>seen'* | *'>=seen'*) echo ORDER ;;
    *'>=watermark'* | *'>=told'* | *'(late)'*) echo TOLD ;;
    *'>=asked'*) echo NOT_OLD ;;
    *'(m<=n)'*) echo HONEST ;;
    'acceptance cycle'*) [ "$1" = serve ] && echo SERVED || echo RENEWED ;;
    '') grep -q 'errors: 0$' out && ! grep -qE '^error: |not completed' out && echo HOLDS || echo 'NOT SEARCHED TO THE END' ;;
    *) echo 'A FAULT OF THE MODEL' ;;
    esac
}

# -E: that a process cannot go on is no fault.  -f: with weak fairness.  What breaks early is not worth an optimizer.
search() { # model, flag...
    case "$1 $*" in
    serve* | *-DRENEWAL*) how='-DNFAIR=3' run='-a -f' ;;
    *) how='-DSAFETY -DNOFAIR' run='-E' ;;
    esac
    case $* in
    *-DNO_*) how="$how -O0" run="$run -w18 -m1000000" ;;
    *) if $long; then how="$how -O2" run="$run -w22 -m3000000"; else how="$how -O1" run="$run -w20 -m1000000"; fi ;;
    esac
    rm -f pan out
    model=$1
    shift
    # shellcheck disable=SC2086
    spin -a "$@" "$here/$model.pml" >spin.out 2>&1 &&
        nice $CC -w $how -DMEMLIM=7168 -o pan pan.c >>spin.out 2>&1 &&
        (ulimit -t 300 && exec nice ./pan $run) >out 2>&1
    [ -f out ] || cp spin.out out
}

n=0
bad=0
while read -r when model expected flags; do
    case $when:$long in small:true | large:false) continue ;; esac
    n=$((n + 1))
    # shellcheck disable=SC2086
    search "$model" $flags
    got=$(outcome "$model")
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
    mib=$(sed -n 's/^ *\([0-9]*\)[.0-9]*[[:space:]]total actual memory.*/\1/p' out)
    seconds=$(sed -n 's/.*elapsed time \([0-9.e+]*\) seconds.*/\1/p' out)
    ok=ok
    if [ "$got" != "$expected" ]; then
        ok='not ok'
        bad=$((bad + 1))
        sed 's/^/# /' out | tail -n 30
    fi
    echo "$ok $n - $model.pml $flags: $expected"
    row=$(printf '%-8s %-23s %-10s %10s %6s %8s  %s' "$model" \
        "$(echo "$flags" | sed -n 's/.*-DNO_\([A-Z_]*\).*/\1/p')" "$got" "$states" "$mib" "$seconds" \
        "$(echo "$flags" | sed 's/ *-DNO_[A-Z_]*//; s/-D//g')")
    table="${table-}$row
"
done <<LIST
$(cases)
LIST
echo "1..$n"
if $long; then
    printf '\n%-8s %-23s %-10s %10s %6s %8s  %s\n' model 'without rule' result states MiB seconds world
    printf %s "$table"
fi
[ "$bad" -eq 0 ]

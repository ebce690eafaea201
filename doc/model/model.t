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
small lease HOLDS      -DLIVES=2 -DT=4 -DFAULTS=1
small lease HOLDS      -DLIVES=2 -DT=2 -DFAULTS=2
large lease HOLDS      -DLIVES=3 -DT=3 -DFAULTS=2
large lease HOLDS      -DLIVES=2 -DT=5 -DFAULTS=3
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_HORIZON_FIRST
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_START_AT_HORIZON
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_START_AT_LAST_END
all   lease NOT_FAR    -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_END_A_LEASE_FROM_NOW
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_OWN_RANGE
all   lease NOT_TWICE  -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_NEW_INCARNATION
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_CHECK_END
all   lease NOT_TWICE  -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_CHECK_BEGIN
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_CLOSE_FIRST
all   lease DISJOINT   -DLIVES=3 -DT=3 -DFAULTS=1 -DNO_RETURN_BY_LESSEE
all   lease DISJOINT   -DLIVES=3 -DT=3 -DFAULTS=1 -DNO_RETURN_INSIDE
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_STOP_AT_LAST_END
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=2 -DNO_STOP_NOT_BELOW_BASE
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_STOP_CLOSES
all   lease DISJOINT   -DLIVES=2 -DT=3 -DFAULTS=1 -DNO_ONE_ROOT
large lease HOLDS      -DLIVES=2 -DT=4 -DFAULTS=2 -DS_NEWEST
large lease HOLDS      -DLIVES=2 -DT=4 -DFAULTS=2 -DS_FORGET
small tree  HOLDS      -DT=1 -DWANTS=1
small tree  HOLDS      -DT=1 -DWANTS=1 -DRESTARTS=0 -DBACKS=1 -DCRASHES=0
large tree  HOLDS      -DT=2 -DWANTS=2
large tree  HOLDS      -DT=2 -DWANTS=2 -DRESTARTS=0 -DG1=0 -DG2=1 -DG3=2 -DGENS=3
large tree  HOLDS      -DT=2 -DWANTS=1 -DRESTARTS=0 -DBACKS=1
large tree  HOLDS      -DT=2 -DWANTS=1 -DRESTARTS=0 -DBACKS=1 -DG1=0 -DG2=0 -DG3=0 -DGENS=1
large tree  HOLDS      -DT=1 -DWANTS=1 -DRESTARTS=1 -DBACKS=1 -DCRASHES=0
all   tree  NOT_TWICE  -DT=2 -DWANTS=2 -DNO_OWN_ANSWER
all   tree  NOT_TWICE  -DT=2 -DWANTS=2 -DNO_NEW_INCARNATION
large tree  DISJOINT   -DT=1 -DRESTARTS=0 -DG1=0 -DG2=0 -DG3=0 -DGENS=1 -DNO_HORIZON_FIRST
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_START_AT_HORIZON
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_START_AT_LAST_END
large tree  DISJOINT   -DT=2 -DWANTS=2 -DNO_OWN_RANGE
large tree  DISJOINT   -DT=2 -DWANTS=2 -DBACKS=1 -DNO_CLOSE_FIRST
large tree  DISJOINT   -DT=2 -DWANTS=2 -DBACKS=1 -DNO_RETURN_BY_LESSEE
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
all   renew HOLDS      -DFAULTS=4
large renew HOLDS      -DFAULTS=8
all   renew RENEWED    -DFAULTS=4 -DNO_REPEAT_WANT
all   renew RENEWED    -DFAULTS=4 -DNO_ANSWER_AGAIN
all   renew RENEWED    -DFAULTS=4 -DNO_NEW_INCARNATION
all   renew RENEWED    -DFAULTS=4 -DNO_HIGHEST_HORIZON
small page  HOLDS      -DCLIENTS=1
all   page  HOLDS      -DCLIENTS=1 -DLOOK
large page  HOLDS      -DCLIENTS=2
all   page  NOT_TWICE  -DNO_COMPARE_WORD
all   page  NOT_TWICE  -DNO_WORD_FIRST
all   page  NOT_TWICE  -DNO_CLOSE_IN_ONE
all   page  NOT_TWICE  -DNO_LENT_IN_WORD
all   page  TOLD       -DNO_PAST_FIRST
all   page  TOLD       -DNO_LOOK_AGAIN
all   page  HONEST     -DCLIENTS=1 -DLOOK -DNO_CLOCK_AFTER
all   order HOLDS      -DT=4 -DFAULTS=1
all   order ORDER      -DT=4 -DFAULTS=1 -DL_WAIT
all   order ORDER      -DT=4 -DFAULTS=1 -DL_LAST
all   order ORDER      -DT=4 -DFAULTS=1 -DL_CARRY
all   order ORDER      -DT=4 -DFAULTS=1 -DL_FOLLOW
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DT_DOUBT
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DT_SENT
all   order NOT_OLD    -DT=4 -DFAULTS=1 -DT_PAST
all   order TOLD       -DT=4 -DFAULTS=1 -DT_AGED
all   order TOLD       -DT=4 -DFAULTS=1 -DT_ASKED
all   shares HOLDS     -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN
small shares HOLDS     -DT=2 -DS=2 -DWANTS=2 -DFWDS=2 -DALONE -DOWNERS=1
large shares HOLDS     -DT=2 -DWANTS=1
large shares HOLDS     -DT=3 -DS=2 -DWANTS=1
large shares HOLDS     -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1
large shares HOLDS     -DT=3 -DS=2 -DWANTS=2 -DALONE
large shares HOLDS     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1
large shares HOLDS     -DT=3 -DWANTS=2 -DFWDS=2 -DALONE -DOWNERS=1
large shares HOLDS     -DT=3 -DS=2 -DWANTS=2 -DFWDS=2 -DALONE
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=1 -DS_ASIDE
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_AREA
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_PAST
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_WITHIN
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_KEEP
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_CLAIM
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DTWIN -DS_INC
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_MINE
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN -DS_OLD
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN -DS_GIVEN
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN -DS_USED
large shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DS_LENTON
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN -DS_NUMBER
all   shares NOT_TWICE -DT=2 -DS=2 -DWANTS=2 -DOWNERS=1 -DTWIN -DS_ANY
all   shares NOT_TWICE -DT=2 -DWANTS=1 -DS_REST
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_AFTER
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_SERVER
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_FOLLOW
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_MS
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_FRESH
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=1 -DALONE -DO_WAIT
all   shares ORDER     -DT=2 -DS=2 -DWANTS=1 -DFWDS=2 -DALONE -DO_TAG
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
    *'b<='*) echo NOT_FAR ;;
    *'==me)'* | *'issued['* | *'(made&'* | *'(made['*) echo NOT_TWICE ;;
    *'issuer['* | *'.lo['* | *'.lo<'*) echo DISJOINT ;;
    *'pending['*) echo ONCE ;;
    *'>seen'* | *'>=left['*) echo ORDER ;;
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
    case $1 in
    serve | renew) how='-DNFAIR=3' run='-a -f' ;;
    *) how='-DSAFETY -DNOFAIR' run='-E' ;;
    esac
    case $* in
    *-D[BLOT]_* | shares*-DS_*) how="$how -O0" run="$run -w18 -m1000000" ;;
    *) how="$how -O2" run="$run -w22 -m3000000" ;;
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
    row=$(printf '%-6s %-14s %-10s %10s %6s %8s  %s' "$model" \
        "$(echo "$flags" | sed -n 's/.*-D\([BLOST]_[A-Z]*\).*/\1/p')" "$got" "$states" "$mib" "$seconds" \
        "$(echo "$flags" | sed 's/ *-D[BLOST]_[A-Z]*//; s/-D//g')")
    table="${table-}$row
"
done <<LIST
$(cases)
LIST
echo "1..$n"
if $long; then
    printf '\n%-6s %-14s %-10s %10s %6s %8s  %s\n' model 'without rule' result states MiB seconds world
    printf %s "$table"
fi
[ "$bad" -eq 0 ]

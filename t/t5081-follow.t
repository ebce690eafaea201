#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5081-follow.t - idtree id new --follow answers each line of stdin with the number of ids that the line requests
test_description='id new --follow prints ids for programs that request them line by line'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 2 --topology kary:1 -o fluid.share=off

ids() { idtree module stats --json fluid | sed 's/.*"ids": *\([0-9]*\).*/\1/'; }
requests() { idtree module stats --json fluid | sed 's/.*"requests": *\([0-9]*\).*/\1/'; }

# Start a coprocess. It reads lines that are written to descriptor 6, and its output is read from descriptor 5.
begin() { # option...
    rm -f in out && mkfifo in out && { idtree id new --follow "$@" <in >out 2>err 5<&- 6>&- & } && pid=$! && exec 6>in 5<out
}
ended() { exec 6>&- 5<&- && wait $pid; }
next() { # file, lines
    for i in $(seq "$2"); do wait_line 5 >>"$1" || return 1; done
}

test_expect_success 'id new --follow answers each line before it reads the next' '
    before=$(ids) && rm -f got && begin && echo >&6 && next got 1 && echo 3 >&6 && next got 3 && echo >&6 && next got 1 && ended &&
    test_must_be_empty err && idtree id sort - <got >sorted && test_cmp sorted got && test "$(sort -u got | wc -l)" = 5 &&
    test $(($(ids) - before)) = 5
'
test_expect_success 'id new --follow sends one request for lines that arrive together, and makes only the requested ids' '
    ids_before=$(ids) requests_before=$(requests) && yes "" | head -n 1000 >thousand && idtree id new --follow <thousand >got &&
    test "$(wc -l <got)" = 1000 && idtree id sort -u - <got >sorted && test_cmp sorted got &&
    test $(($(ids) - ids_before)) = 1000 && test $(($(requests) - requests_before)) = 1 &&
    begin && ended && test_must_be_empty err && test $(($(ids) - ids_before)) = 1000
'
test_expect_success 'id new --follow prints ids in order for a count above the limit of one request' '
    echo 200000 | idtree id new --follow >got && test "$(wc -l <got)" = 200000 && idtree id sort -u - <got >sorted && test_cmp sorted got
'
test_expect_success 'id new --follow reads a last line without a newline, and requests no id for an empty stdin' '
    printf "2\n3" | idtree id new --follow >got && test "$(wc -l <got)" = 5 && idtree id new --follow </dev/null >got && test_must_be_empty got
'
test_expect_success 'id new --follow reports a line that is not a number as an error, after it has answered the lines before' '
    long=$(printf "%02000d" 1) &&
    for bad in x -1 0 1.5 " 1" "1 2" 1000000000001 18446744073709551617 "$long"; do
        before=$(ids) && printf "2\n\n%s\n5\n" "$bad" | test_expect_code 1 idtree id new --follow >got 2>err &&
            test "$(wc -l <got)" = 3 && grep "^idtree id new: line 3: .*: a number from 1 to 1000000000000 is needed, or nothing for 1" err &&
            test $(($(ids) - before)) = 3 || { echo "$bad"; return 1; }
    done &&
    printf "1\0002\n" | test_expect_code 1 idtree id new --follow 2>err && grep "line 1:" err &&
    test_expect_code 2 idtree id new --follow -n 3 2>err </dev/null && grep "exclude each other: each line of stdin" err
'
test_expect_success 'id new --follow ends without a message when its reader ends, while it waits or writes, with and without SIGPIPE ignored' '
    for how in "" "trap \"\" PIPE;"; do
        begin && echo >&6 && next got 1 && exec 5<&- && wait $pid && test_must_be_empty err && exec 6>&- || return 1
        for which in "" "--scheme flax --local"; do
            rm -f in status && mkfifo in && { sh -c "$how idtree id new --follow $which <in; echo \$? >status" 2>err | head -n 3 >got & } &&
                exec 6>in && echo 1000000000000 >&6 && wait_until "it has ended" test -s status && test "$(cat status)" = 0 &&
                test_must_be_empty err && test "$(wc -l <got)" = 3 && exec 6>&- || return 1
        done
    done
'
test_expect_success 'id new --follow reports a write error' '
    test -e /dev/full && echo 3 | test_expect_code 1 idtree id new --follow 2>err >/dev/full && grep "cannot write: No space left" err
'
test_expect_success 'id new --follow works with other schemes, forms and ranks' '
    for s in "-s flax --to hex" "-s sno" "-s uid --local" "-s flax --local" "--to dec --to words" "--json" "-r 1"; do
        printf "2\n\n" | idtree id new --follow $s >got && test "$(wc -l <got)" = 3 && test "$(sort -u got | wc -l)" = 3 || { echo "$s"; return 1; }
    done
'
test_expect_success 'id new --follow reconnects to a broker that was run again' '
    rm -f got && begin --uri "${IDTREE_URI%0}1" && echo >&6 && next got 1 && idtree startctl kill 1 && idtree startctl run 1 &&
    wait_served 1 && echo 2 >&6 && next got 2 && ended && idtree id sort -u - <got >sorted && test_cmp sorted got
'
test_expect_success 'id new --follow reports a broker that does not answer' '
    begin --uri "${IDTREE_URI%0}1" --timeout 1 && echo >&6 && next got 1 && idtree startctl stop 1 && echo >&6 &&
    test_expect_code 1 wait $pid && cat err && grep "no answer within 1 s: the broker at .* does not answer" err && idtree startctl cont 1 && exec 6>&- 5<&-
'

# The examples, cut out of the manual.
example() { # name
    sed -n "/^\.\\\\\" example: $1\$/,/^\.fi/p" "$IDTREE_SRCDIR/doc/man/idtree.1" | sed '/^\./d; s/\\-/-/g; s/\\e/\\/g'
}
four() { cat got && test "$(wc -w <got)" = 4 && tr ' ' '\n' <got | idtree id sort -u - | wc -l | grep -x 4; }

command -v bash >/dev/null && test_set_prereq BASH
command -v python3 >/dev/null && test_set_prereq PYTHON
command -v gawk >/dev/null && test_set_prereq GAWK
test_expect_success BASH 'the example of id new --follow in bash works' 'example bash >ex && bash ex >got && four'
test_expect_success PYTHON 'the example of id new --follow in Python works' 'example python >ex && python3 ex >got && four'
test_expect_success GAWK 'the example of id new --follow in gawk works' 'example gawk >ex && gawk -f ex >got && four'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t5084-top.t - idtree top shows the current state of ranks
test_description='idtree top shows ranks in a terminal or as JSON'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 4 --topology kary:2

test_expect_success 'top --json prints one object for each poll' '
    idtree top --json -n 2 -i 0.05 >out && test "$(wc -l <out)" = 2 && grep -c "\"ranks\":\[{\"rank\":0,\"parent\":0,\"host\"" out | grep -x 2 &&
    idtree top --json -n 1 -r 1 >out && grep "{\"rank\":1,.*{\"rank\":3," out && ! grep "\"rank\":2" out &&
    idtree top --json -n 1 --filter 3 --sort ids/s >out && grep "\"ranks\":\[{\"rank\":3,[^{]*\]" out
'
test_expect_success 'top reports that stdout is not a terminal, an unknown column, and a missing rank' '
    test_expect_code 1 idtree top 2>err </dev/null && grep "stdout is not a terminal: idtree overlay status" err &&
    test_expect_code 2 idtree top --sort nosuch 2>err && grep "tree, rank, host" err &&
    test_expect_code 1 idtree top --json -r 9 2>err && grep "there is no rank 9" err
'
command -v python3 >/dev/null && test_set_prereq PYTHON
test_expect_success PYTHON 'keys and events change what top displays' '
    timeout "$WAIT_S" python3 "$IDTREE_SRCDIR/t/top_keys.py" >out 2>&1 </dev/null; status=$?; cat out; test $status = 0
'
test_done

#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t7071-prefetch.t - clients with prefetched ids, while brokers are killed, stopped and run again
test_description='prefetched ids are issued once, and each client gets its ids in order, whatever happens to brokers'
. "$(dirname "$0")/idtree-sharness.sh"

cat >clients.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
set -e
client=$IDTREE_BUILDDIR/t/reconnect
here=${IDTREE_URI%0}
go() { # name, rank, descriptor: start a client that ends when the descriptor is closed
    mkfifo $1.in
    IDTREE_URI=$here$2 "$client" prefetch <$1.in >$1.out 2>$1.err 3>&- 4>&- 5>&- & eval "$1_pid=$!"
    eval "exec $3>$1.in"
}
lines() { wc -l <$1.out; }
goes_on() {
    for c; do
        from=$(lines $c) && wait_until "client $c goes on" holds "test \$(lines $c) -ge $((from + 100))"
    done
}
ended() { eval "exec $2>&-; wait \$$1_pid" || { cat $1.out; return 1; }; tail -n1 $1.out; }
END
cat >killed.sh <<'END'
. ./clients.sh
go a 3 3; go b 3 4; go c 0 5
goes_on a b c
for rank in 3 1 2 0; do
    idtree startctl stop $rank
    test $rank = 0 || goes_on c
    idtree startctl kill $rank; idtree startctl run $rank
    goes_on a b c
done
ended a 3; ended b 4; ended c 5
cat a.out b.out c.out | grep -v done | sort -n >ids
test -z "$(uniq -d ids)"
END
test_expect_success 'clients that prefetch continue while each broker in a chain, where rank 0 makes the ids, is killed and run again' '
    init_state state && idtree start -s 4 --topology kary:1 -o statedir="$PWD/state" -o fluid.max-generators=1 \
        -o fluid.share=off sh killed.sh >out && cat out && test $(grep -c "^done: " out) = 3
'
lib=$IDTREE_BUILDDIR/src/common/libidtree/.libs
nm -D --undefined-only "$lib/libidtree.so" | grep -qE '__(asan|tsan|ubsan)_' || test_set_prereq PLAIN
test_expect_success PLAIN 'the program in the guide to prefetching compiles and prints ten different ids' '
    sed -n "/^\`\`\`c/,/^\`\`\`/p" "$IDTREE_SRCDIR/doc/guide/c-programs.md" | sed "/^\`\`\`/d" >ids.c &&
    ${CC:-cc} -Wall -Wextra -Werror -I "$IDTREE_SRCDIR/src/include" -o ids ids.c -L "$lib" -lidtree &&
    LD_LIBRARY_PATH=$lib idtree start ./ids >out && cat out && test $(idtree id convert --to=dec - <out | sort -u | wc -l) = 10
'
test_done

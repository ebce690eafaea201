#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3021-shares.t - ranks without a generator make ids of parts; granters and holders are killed under load
test_description='ranks hold parts: no id is issued twice, and each request is answered, whichever rank is killed'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o fluid.max-generators=1 -o fluid.share=64 -o fluid.lease=4s \
    -o tbon.timeout=500ms -o fluid.forward-timeout=5s

load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" -a "${IDTREE_URI%0}" 0 1 2 3 4 5 6 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() {
    exec 6>&- && wait $load_pid && cat result && ! grep "ids 0 " result
}
info() { "$IDTREE_BUILDDIR/t/ask" "$1" fluid.info; }
is() { info "$1" | grep -q "\"state\":\"$2\""; }
shares() { wait_until "rank $1 holds a part" is "$1" sharing; }
all_share() { for r in 1 2 3 4 5 6; do shares $r || return 1; done; }
made() { idtree module stats --json -r "$1" fluid | sed 's/.*"ids": *\([0-9]*\).*/\1/'; }
# Send requests to the rank itself: a broker on the way that is stopped for tbon.timeout would be bypassed.
reload() { idtree module remove --uri "${IDTREE_URI%0}$1" fluid && idtree module load --uri "${IDTREE_URI%0}$1" fluid; }

has() { info "$1" | grep -q "$2"; }
test_expect_success 'all ranks hold parts, and some of them hold parts of parts' '
    all_share && wait_until "rank 0 has granted some" has 0 "\"granted\":{\"parts\":[1-9]" &&
    wait_until "rank 1 has granted some" has 1 "\"granted\":{\"parts\":[1-9]" &&
    wait_until "rank 6 serves itself" has 6 "\"served_by\":6.*\"part\":{\"generator\":0,"
'
test_expect_success 'a rank makes ids of its part without a message' '
    makes_itself() { shares 6 && before=$(made 6) && idtree id new -r 6 -n 1 >one && test "$(made 6)" -gt "$before"; } &&
    wait_until "rank 6 makes an id" makes_itself &&
    test "$(idtree id show --json - <one | sed "s/.*\"generator\": *\([0-9]*\).*/\1/")" = 0
'
test_expect_success 'overlay status shows whose generator each rank has a part of, and these ranks as sets' '
    shown() {
        idtree overlay status >tree && test "$(grep -cE " sharing +0 +[1-6]\$" tree)" = 6 && grep -E "^0 .* active +0 +0$" tree
    } &&
    wait_until "each row tells" shown && cat tree &&
    told() { idtree overlay status --fluid >sets && grep -A1 "^PART OF " sets | grep -E "^0 +6  1-6$"; } &&
    wait_until "the sets tell" told && cat sets &&
    in_json() { test "$(idtree overlay status --fluid --json | jq -r ".part_of.\"0\".ranks")" = 1-6; } &&
    wait_until "so do objects" in_json && idtree overlay status --summary >sets && ! grep "PART OF" sets
'
test_expect_success 'id show names the ranks that may have made an id' '
    told() { idtree id show - <one >shown && grep -E "made by +rank 0, or one that holds a part of it: 1-2 now, and ranks below$" shown; } &&
    wait_until "rank 0 has granted parts to both" told &&
    in_json() { test "$(idtree id show --json - <one | jq -c .maker)" = "{\"rank\":0,\"holders\":\"1-2\"}"; } &&
    wait_until "objects tell, too" in_json &&
    on_a_screen() { idtree info --json | jq -e ".fluid.grants and .fluid.granted.ranks"; } && wait_until "so does info" on_a_screen
'
test_expect_success 'ranks with parts answer each request under load' '
    all_share && load_start && for r in 0 1 2 3 4 5 6; do wait_served $r; done && load_end && grep "^ids .* failed 0 connections-lost 0" result
'
test_expect_success 'a rank that holds a part and grants parts of it is killed and runs again' '
    load_start && for i in 1 2 3; do
        idtree startctl kill 1 && wait_served 3 && wait_served 4 && idtree startctl run 1 && wait_served 1 || return 1
    done && load_end && all_share
'
test_expect_success 'a leaf that holds a part is killed and runs again' '
    load_start && for i in 1 2 3; do idtree startctl kill 6 && idtree startctl run 6 && wait_served 6 || return 1; done &&
    load_end && all_share
'
test_expect_success 'the owner of the generator is killed and runs again' '
    load_start && for i in 1 2; do idtree startctl kill 0 && idtree startctl run 0 && wait_served 0 && wait_served 5 || return 1; done &&
    load_end && all_share
'
made_by_3() { IDTREE_URI=${IDTREE_URI%0}3 made 3; }
test_expect_success 'a rank uses its part while its parent is stopped' '
    alone() {
        all_share && idtree startctl stop 1 && before=$(made_by_3) && idtree id new --uri "${IDTREE_URI%0}3" -n 5 >five;
        idtree startctl cont 1 && test "$(wc -l <five)" = 5 && test "$(made_by_3)" -ge $((before + 5))
    } &&
    wait_until "rank 3 makes five ids" alone
'
test_expect_success 'a rank that granted a part is stopped for longer than the part lasts, and continued' '
    load_start && idtree startctl stop 1 && wait_attached 3 0 && wait_served 3 && idtree startctl cont 1 && wait_attached 3 1 &&
    load_end && all_share
'
test_expect_success 'granters and holders of parts reload fluid' '
    load_start && for i in 1 2 3; do reload 0 && reload 1 && reload 5 || { load_end; return 1; }; done && load_end && all_share
'
mark() { idtree watermark --json | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/"; }
goes_on() { test "$(mark)" -gt "$1"; }
test_expect_success 'the watermark advances while ranks hold parts' '
    all_share && now=$(info 0 | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/") && wait_until "it passes $now" goes_on "$now"
'
cat >off.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_served 2 && for i in 1 2 3 4 5 6 7 8; do idtree id new -t dec -r 2 >>off.ids || exit 1; done
"$IDTREE_BUILDDIR/t/ask" 2 fluid.info | grep '"state":"idle"' && sort -c -n off.ids &&
    idtree module stats --json -r 2 fluid | grep '"part_messages": *0[,}]' &&
    head -n 1 off.ids | idtree id show - >shown && ! grep "made by" shown
END
test_expect_success 'with fluid.share=off a rank without a generator forwards all requests' '
    idtree start -s 3 --topology kary:1 -o fluid.max-generators=1 -o fluid.share=off sh off.sh
'
cat >auto.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
messages() { idtree module stats --json -r 1 fluid | grep -q "\"part_messages\": *$1[,}]"; }
is() { "$IDTREE_BUILDDIR/t/ask" 1 fluid.info | grep -q "\"state\":\"$1\""; }
grants() { "$IDTREE_BUILDDIR/t/ask" 0 fluid.info | grep -q "\"granted\":"; }
grants_nothing() { ! grants; }
idtree getattr fluid.share | grep -x auto && wait_served 1 || exit 1
for i in 1 2 3 4 5 6 7 8; do idtree id new -t dec -r 1 >>auto.ids || exit 1; done
messages 0 && is idle || { echo "asked seldom, it holds a part" >&2; exit 1; }
mkfifo go && { "$IDTREE_BUILDDIR/t/idload" -c 1 "${IDTREE_URI%0}" 1 <go >load 6>&- & } && exec 6>go &&
    wait_until "rank 1, asked often, holds a part" is sharing && wait_until "rank 0 tells" grants && exec 6>&- && wait && cat load && grep "failed 0 " load &&
    wait_until "rank 1, asked nothing, is idle" is idle && wait_until "rank 0 has all again" grants_nothing &&
    idtree id new -t dec -r 1 >>auto.ids && sort -c -n auto.ids && is idle
END
test_expect_success 'by default a rank without a generator holds a part if it has many requests, and forwards if it has few' '
    idtree start -s 2 -o fluid.max-generators=1 sh auto.sh
'
test_expect_success 'an invalid value of fluid.share is refused with a message' '
    ! idtree start -s 1 -o fluid.share=17 true 2>err && grep "fluid.share=17: must be auto, off, or a multiple of 16 from 16 to 1008" err
'
test_done

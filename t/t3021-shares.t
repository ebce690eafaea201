#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3021-shares.t - ranks without a generator make ids under subleases; ranks at both ends are killed under load
test_description='ranks borrow: no id is issued twice, and each request is answered, whichever rank is killed'
. "$(dirname "$0")/idtree-sharness.sh"
test_under_idtree 7 --topology kary:2 -o fluid.max-generators=1 -o fluid.share=64 -o fluid.lease=4s \
    -o tbon.timeout=500ms -o fluid.forward-timeout=5s

load_start() {
    rm -f stop && mkfifo stop &&
    { "$IDTREE_BUILDDIR/t/idload" "${IDTREE_URI%0}" 0 1 2 3 4 5 6 <stop >result 6>&- & } && load_pid=$! && exec 6>stop
}
load_end() {
    exec 6>&- && wait $load_pid && cat result && ! grep "ids 0 " result
}
info() { "$IDTREE_BUILDDIR/t/ask" "$1" fluid.info; }
is() { info "$1" | grep -q "\"state\":\"$2\""; }
borrows() { wait_until "rank $1 borrows" is "$1" borrowing; }
all_borrow() { for r in 1 2 3 4 5 6; do borrows $r || return 1; done; }
made() { idtree module stats --json -r "$1" fluid | sed 's/.*"ids": *\([0-9]*\).*/\1/'; }
# Send requests to the rank itself: a broker on the way that is stopped for tbon.timeout would be bypassed.
reload() { idtree module remove --uri "${IDTREE_URI%0}$1" fluid && idtree module load --uri "${IDTREE_URI%0}$1" fluid; }

has() { info "$1" | grep -q "$2"; }
test_expect_success 'all ranks borrow, and some of them borrow from borrower ranks' '
    all_borrow && wait_until "rank 0 lends" has 0 "\"lent\":{\"loans\":[1-9]" &&
    wait_until "rank 1 lends" has 1 "\"lent\":{\"loans\":[1-9]" &&
    wait_until "rank 6 serves itself" has 6 "\"served_by\":6.*\"share\":{\"generator\":0,"
'
test_expect_success 'a borrower rank makes ids under its sublease without a message' '
    makes_itself() { borrows 6 && before=$(made 6) && idtree id new -r 6 -n 1 >one && test "$(made 6)" -gt "$before"; } &&
    wait_until "rank 6 makes an id" makes_itself &&
    test "$(idtree id show --json - <one | sed "s/.*\"generator\": *\([0-9]*\).*/\1/")" = 0
'
test_expect_success 'overlay status shows the generator of each borrower rank, and borrower ranks as sets' '
    shown() {
        idtree overlay status >tree && test "$(grep -cE " borrowing +0 +[1-6]\$" tree)" = 6 && grep -E "^0 .* active +0 +0$" tree
    } &&
    wait_until "each row tells" shown && cat tree &&
    told() { idtree overlay status --fluid >sets && grep -A1 "^BORROWED OF " sets | grep -E "^0 +6  1-6$"; } &&
    wait_until "the sets tell" told && cat sets &&
    in_json() { test "$(idtree overlay status --fluid --json | jq -r ".borrowed_of.\"0\".ranks")" = 1-6; } &&
    wait_until "so do objects" in_json && idtree overlay status --summary >sets && ! grep BORROWED sets
'
test_expect_success 'id show names the ranks that may have made an id' '
    told() { idtree id show - <one >shown && grep -E "made by +rank 0, or one that borrowed of it: 1-2 now, and ranks below$" shown; } &&
    wait_until "rank 0 has lent to both" told &&
    in_json() { test "$(idtree id show --json - <one | jq -c .maker)" = "{\"rank\":0,\"borrowers\":\"1-2\"}"; } &&
    wait_until "objects tell, too" in_json &&
    on_a_screen() { idtree info --json | jq -e ".fluid.lends and .fluid.lent.ranks"; } && wait_until "so does info" on_a_screen
'
test_expect_success 'borrower ranks answer each request under load' '
    all_borrow && load_start && for r in 0 1 2 3 4 5 6; do wait_served $r; done && load_end && grep "^ids .* failed 0 connections-lost 0" result
'
test_expect_success 'a borrower rank that grants subleases is killed and runs again' '
    load_start && for i in 1 2 3; do
        idtree startctl kill 1 && wait_served 3 && wait_served 4 && idtree startctl run 1 && wait_served 1 || return 1
    done && load_end && all_borrow
'
test_expect_success 'a borrower rank that is a leaf is killed and runs again' '
    load_start && for i in 1 2 3; do idtree startctl kill 6 && idtree startctl run 6 && wait_served 6 || return 1; done &&
    load_end && all_borrow
'
test_expect_success 'the owner of the generator is killed and runs again' '
    load_start && for i in 1 2; do idtree startctl kill 0 && idtree startctl run 0 && wait_served 0 && wait_served 5 || return 1; done &&
    load_end && all_borrow
'
made_by_3() { IDTREE_URI=${IDTREE_URI%0}3 made 3; }
test_expect_success 'a borrower rank uses its sublease while its parent is stopped' '
    alone() {
        all_borrow && idtree startctl stop 1 && before=$(made_by_3) && idtree id new --uri "${IDTREE_URI%0}3" -n 5 >five;
        idtree startctl cont 1 && test "$(wc -l <five)" = 5 && test "$(made_by_3)" -ge $((before + 5))
    } &&
    wait_until "rank 3 makes five ids" alone
'
test_expect_success 'a rank that granted a sublease is stopped for longer than the sublease, and continued' '
    load_start && idtree startctl stop 1 && wait_attached 3 0 && wait_served 3 && idtree startctl cont 1 && wait_attached 3 1 &&
    load_end && all_borrow
'
test_expect_success 'ranks that grant subleases and ranks that borrow reload fluid' '
    load_start && for i in 1 2 3; do reload 0 && reload 1 && reload 5 || { load_end; return 1; }; done && load_end && all_borrow
'
mark() { idtree watermark --json | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/"; }
goes_on() { test "$(mark)" -gt "$1"; }
test_expect_success 'the watermark advances while ranks borrow' '
    all_borrow && now=$(info 0 | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/") && wait_until "it passes $now" goes_on "$now"
'
cat >off.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_served 2 && for i in 1 2 3 4 5 6 7 8; do idtree id new -t dec -r 2 >>off.ids || exit 1; done
"$IDTREE_BUILDDIR/t/ask" 2 fluid.info | grep '"state":"idle"' && sort -c -n off.ids &&
    idtree module stats --json -r 2 fluid | grep '"share_messages": *0[,}]' &&
    head -n 1 off.ids | idtree id show - >shown && ! grep "made by" shown
END
test_expect_success 'with fluid.share=off a rank without a generator forwards all requests' '
    idtree start -s 3 --topology kary:1 -o fluid.max-generators=1 -o fluid.share=off sh off.sh
'
cat >auto.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
messages() { idtree module stats --json -r 1 fluid | grep -q "\"share_messages\": *$1[,}]"; }
is() { "$IDTREE_BUILDDIR/t/ask" 1 fluid.info | grep -q "\"state\":\"$1\""; }
lends() { "$IDTREE_BUILDDIR/t/ask" 0 fluid.info | grep -q "\"lent\":"; }
lends_nothing() { ! lends; }
idtree getattr fluid.share | grep -x auto && wait_served 1 || exit 1
for i in 1 2 3 4 5 6 7 8; do idtree id new -t dec -r 1 >>auto.ids || exit 1; done
messages 0 && is idle || { echo "asked seldom, it borrows" >&2; exit 1; }
mkfifo go && { "$IDTREE_BUILDDIR/t/idload" -c 1 "${IDTREE_URI%0}" 1 <go >load 6>&- & } && exec 6>go &&
    wait_until "rank 1, asked often, borrows" is borrowing && wait_until "rank 0 tells" lends && exec 6>&- && wait && cat load && grep "failed 0 " load &&
    wait_until "rank 1, asked nothing, is idle" is idle && wait_until "rank 0 has all again" lends_nothing &&
    idtree id new -t dec -r 1 >>auto.ids && sort -c -n auto.ids && is idle
END
test_expect_success 'by default a rank without a generator borrows if it has many requests, and forwards if it has few' '
    idtree start -s 2 -o fluid.max-generators=1 sh auto.sh
'
test_expect_success 'an invalid value of fluid.share is refused with a message' '
    ! idtree start -s 1 -o fluid.share=17 true 2>err && grep "fluid.share=17: must be auto, off, or one of 16, 32" err
'
test_done

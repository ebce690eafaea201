#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# t3021-shares.t - ranks without a generator make ids of what they borrow; lenders and borrowers are killed under load
test_description='idle ranks borrow: no id comes twice, and each request is answered, whoever is killed'
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
# At the rank itself: one between that stands still for tbon.timeout is passed by.
reload() { idtree module remove --uri "${IDTREE_URI%0}$1" fluid && idtree module load --uri "${IDTREE_URI%0}$1" fluid; }

has() { info "$1" | grep -q "$2"; }
test_expect_success 'all borrow, those below of those that borrow' '
    all_borrow && wait_until "rank 0 lends" has 0 "\"lent\":{\"loans\":[1-9]" &&
    wait_until "rank 1 lends" has 1 "\"lent\":{\"loans\":[1-9]" &&
    wait_until "rank 6 serves itself" has 6 "\"served_by\":6.*\"share\":{\"generator\":0,"
'
test_expect_success 'what they borrow they make ids of, without a message' '
    makes_itself() { borrows 6 && before=$(made 6) && idtree id new -r 6 -n 1 >one && test "$(made 6)" -gt "$before"; } &&
    wait_until "rank 6 makes an id" makes_itself &&
    test "$(idtree id show --json - <one | sed "s/.*\"generator\": *\([0-9]*\).*/\1/")" = 0
'
test_expect_success 'a borrower is shown with the generator that it borrows of, and they as sets' '
    shown() {
        idtree overlay status >tree && test "$(grep -cE " borrowing +0 +[1-6]\$" tree)" = 6 && grep -E "^0 .* active +0 +0$" tree
    } &&
    wait_until "each row tells" shown && cat tree &&
    told() { idtree overlay status --fluid >sets && grep -A1 "^BORROWED OF " sets | grep -E "^0 +6  1-6$"; } &&
    wait_until "the sets tell" told && cat sets &&
    in_json() { test "$(idtree overlay status --fluid --json | jq -r ".borrowed_of.\"0\".ranks")" = 1-6; } &&
    wait_until "so do objects" in_json && idtree overlay status --summary >sets && ! grep BORROWED sets
'
test_expect_success 'an id tells who may have made it' '
    told() { idtree id show - <one >shown && grep -E "made by +rank 0, or one that borrowed of it: 1-2 now, and ranks below$" shown; } &&
    wait_until "rank 0 has lent to both" told &&
    in_json() { test "$(idtree id show --json - <one | jq -c .maker)" = "{\"rank\":0,\"borrowers\":\"1-2\"}"; } &&
    wait_until "objects tell, too" in_json &&
    on_a_screen() { idtree info --json | jq -e ".fluid.lends and .fluid.lent.ranks"; } && wait_until "so does info" on_a_screen
'
test_expect_success 'under load each request is answered' '
    all_borrow && load_start && for r in 0 1 2 3 4 5 6; do wait_served $r; done && load_end && grep "^ids .* failed 0 connections-lost 0" result
'
test_expect_success 'a borrower that lends is killed and runs again' '
    load_start && for i in 1 2 3; do
        idtree startctl kill 1 && wait_served 3 && wait_served 4 && idtree startctl run 1 && wait_served 1 || return 1
    done && load_end && all_borrow
'
test_expect_success 'a borrower at the end is killed and runs again' '
    load_start && for i in 1 2 3; do idtree startctl kill 6 && idtree startctl run 6 && wait_served 6 || return 1; done &&
    load_end && all_borrow
'
test_expect_success 'the owner of the generator is killed and runs again' '
    load_start && for i in 1 2; do idtree startctl kill 0 && idtree startctl run 0 && wait_served 0 && wait_served 5 || return 1; done &&
    load_end && all_borrow
'
made_by_3() { IDTREE_URI=${IDTREE_URI%0}3 made 3; }
test_expect_success 'while nobody above runs, what was borrowed is used' '
    alone() {
        all_borrow && idtree startctl stop 1 && before=$(made_by_3) && idtree id new --uri "${IDTREE_URI%0}3" -n 5 >five;
        idtree startctl cont 1 && test "$(wc -l <five)" = 5 && test "$(made_by_3)" -ge $((before + 5))
    } &&
    wait_until "rank 3 makes five ids" alone
'
test_expect_success 'a lender is stopped for longer than a loan, and continued' '
    load_start && idtree startctl stop 1 && wait_attached 3 0 && wait_served 3 && idtree startctl cont 1 && wait_attached 3 1 &&
    load_end && all_borrow
'
test_expect_success 'fluid is loaded anew at lenders and borrowers' '
    load_start && for i in 1 2 3; do reload 0 && reload 1 && reload 5 || { load_end; return 1; }; done && load_end && all_borrow
'
mark() { idtree watermark --json | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/"; }
goes_on() { test "$(mark)" -gt "$1"; }
test_expect_success 'the watermark goes on' '
    all_borrow && now=$(info 0 | sed "s/.*\"timestamp_ms\":\"\([0-9]*\).*/\1/") && wait_until "it passes $now" goes_on "$now"
'
cat >off.sh <<'END'
. "$IDTREE_SRCDIR/t/wait.sh"
wait_served 2 && for i in 1 2 3 4 5 6 7 8; do idtree id new -t dec -r 2 >>off.ids || exit 1; done
"$IDTREE_BUILDDIR/t/ask" 2 fluid.info | grep '"state":"idle"' && sort -c -n off.ids &&
    idtree module stats --json -r 2 fluid | grep '"share_messages": *0[,}]' &&
    head -n 1 off.ids | idtree id show - >shown && ! grep "made by" shown
END
test_expect_success 'with fluid.share=off all is forwarded' '
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
test_expect_success 'by itself a rank that is asked often borrows, and one that is not forwards' '
    idtree start -s 2 -o fluid.max-generators=1 sh auto.sh
'
test_expect_success 'nonsense is refused with a sentence' '
    ! idtree start -s 1 -o fluid.share=17 true 2>err && grep "fluid.share=17: must be auto, off, or one of 16, 32" err
'
test_done

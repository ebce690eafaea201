#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# mutants.sh [RULE...] - remove one safety rule after the other, and report which test notices
#
# mutants.sh --apply - check that each rule can be removed: that the source still has the lines that the edits change
#
# Run by make mutants in its own build tree. A changed file is put in that tree, where make finds it before the one in
# the source tree. An edit that changes nothing, or that does not compile, is an error, and so is a rule whose removal
# no test notices. For each rule a row of the table in doc/design/fluid.md is printed: the unit tests that fail, the
# seed of the first simulated history that breaks a promise, the result of real brokers under chaos (run only if the
# other tests notice nothing, or always with CHAOS=always), and the promise that breaks in the model (from
# doc/model/model.t).
set -u
: "${IDTREE_SRCDIR:?is the source tree}" "${MAKE:=make}" "${HISTORIES:=1000}" "${CHAOS:=silent}" "${STEPS:=150}"
fluid=src/modules/fluid
tests="lease/lease lease/authority lease/clock_debt lease/watermark lease/clock_check lease/lessee lease/lender lease/borrower lease/shares lease/lease_relay node/waiting node/node node/share node/spill service/horizon_store service/fluid"

# Rule, files below src/, the sed edits of these files (separated by @; each edit changes at least one of them), and the
# rule in words. If a rule is kept in two places, both are removed. If only a broker keeps it, the simulator removes it
# in its place.
mutants() {
    cat <<'MUTANTS'
HORIZON_FIRST|modules/fluid/lease/lease.c|s/hi_ms = min_u64 (hi_ms, t->stored_ms);//|ranges are granted before the horizon above them is stored
START_AT_LAST_END|modules/fluid/lease/lease.c|s/max_u64 (t->base_ms, h->hi_ms)/max_u64 (t->base_ms, now_ms)/|a range begins now, not at the end of the last one
START_AT_HORIZON|modules/fluid/lease/lease.c|s/t->base_ms = horizon_ms;/t->base_ms = 0;/|a restarted root forgets its horizon
END_A_LEASE_FROM_NOW|modules/fluid/lease/lease.c|s/min_u64 (now_ms + t->lease_ms, END_MS);/min_u64 (lo_ms + t->lease_ms, END_MS);/|a range ends a lease after its begin
OWN_RANGE|modules/fluid/lease/lease.c|s/if (!same .. want->number > h->number) {/if (h->hi_ms <= now_ms \|\| (same \&\& want->number > h->number)) {/@s/memcpy (grant->incarnation, h->incarnation/memcpy (grant->incarnation, want->incarnation/@s/\.number = h->number, \.lo_ms/.number = want->number, .lo_ms/@s/if (same && want->number < h->number)/if (0)/|a second claimant gets the range of the first
RETURN_BY_LESSEE|modules/fluid/lease/lease.c|s/!same_incarnation (h, back->incarnation) || //|a return is accepted from any sender
RETURN_INSIDE|modules/fluid/lease/lease.c|s/ || back->end_ms >= h->hi_ms//@s/max_u64 (back->end_ms, h->from_ms)/back->end_ms/|a return is accepted with any end
STOP_AT_LAST_END|modules/fluid/lease/lease.c|s/end_ms = max_u64 (end_ms, t->holding\[g\].hi_ms);/(void) g;/|a clean stop stores only the end of the root's own lease
STOP_NOT_BELOW_BASE|modules/fluid/lease/lease.c|s/uint64_t end_ms = t->base_ms;/uint64_t end_ms = 0;/|a clean stop stores less than was stored before
STOP_CLOSES|modules/fluid/lease/lease.c modules/fluid/lease/authority.c|s/if (t->closed || t->fenced_by_foreign ||/if (t->fenced_by_foreign ||/@s/a->closed ? 0 : serve (/serve (/|lease requests are answered after the last end was stored
CHECK_END|modules/fluid/node/now.c|s/if (ms < n->cur.range.lo_ms || ms >= n->cur.range.hi_ms || now_us >= n->cur.until_us) {/if (n->cur.range.hi_ms == 0) {/@s/page_gen_set_range (&n->gen, area->range.lo_ms, area->range.hi_ms)/page_gen_set_range (\&n->gen, 0, FLUID_TIMESTAMP_MAX + 1)/|a range that was valid once is not checked again after a wake-up
OWN_ANSWER|modules/fluid/lease/lessee.c modules/fluid/lease/lease_relay.c|s/ *&& strcmp (grant->incarnation, h->incarnation) == 0;/;/@s/return strcmp (x->incarnation, y->incarnation);/return 0;/|an answer to another incarnation is accepted
CLOSE_FIRST|modules/fluid/node/lease.c|s/lessee_close (&n->lessee, end_ms, &back)/lessee_close (\&n->lessee, 0, \&back)/|used time is returned, too
NEW_INCARNATION|modules/fluid/service/fluid_options.c sim/life.c|s/"%.23s-%012llx", uuid,/"00000000-0000-4000-8000-%012llx",/@s/(unsigned long long) *(n >> 16)/0ULL/@s/(unsigned)rank, (unsigned)l->id)/(unsigned)rank, 0U)/|all brokers have one incarnation
ONE_ROOT|common/libsqlite/database.c sim/sim.c|s/if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)/if (0)/@s/    if (rc != SQLITE_OK)$/    if (0)/@s/if (set_up (d, errp) < 0)/if (0)/@s/locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;/locking_mode = NORMAL;/@s/if (rank == 0 \&\& root_lives (w))/if (0 \&\& root_lives (w))/|two roots run on one statedir
A_REACH|modules/fluid/lease/clock.c|s/uint64_t max_ms = AHEAD_MAX_MS (a->lease_ms), reach_ms/uint64_t max_ms = a->debt_ms + AHEAD_MAX_MS (a->lease_ms), reach_ms/|each crash adds two leases, even if the debt is large
A_WAIT|modules/fluid/lease/clock.c|s/wait_ms = at_most (.*;/wait_ms = 0;/|a root does not wait if its debt is above the limit
J_LOG|modules/fluid/service/horizon_store.c sim/life_events.c|s/\.journal = true,/.journal = false,/@s/if (!w->disk_failing || world_chance (w, 300))/if (world_chance (w, 900))/|the store has a write-ahead log
J_FILLED|common/libsqlite/database.c sim/life.c|s/if (d->is_new \&\& (d->filled || (d->listed \&\& !d->kind->anew)))/if (0)/@s/stored = w->disk;/stored = world_chance (w, 100) ? (struct lease_record){ .horizon_ms = 0 } : w->disk;/|a database that a journal has emptied is taken for a new one
J_PLACE|common/libsqlite/database.c sim/life_events.c|s/if (!d->locked || is_in_place (/if (1 || is_in_place (/@s/ if (w->disk_failing)$/ if (0)/|a commit counts wherever the file is now
L_LAST|modules/fluid/node/node.c|s/n->last_id = p->last_id;/(void) p->last_id;/@s/page_gen_advance (&n->gen, fluid_split.*;/(void) 0;/|a reload forgets the last id
L_SAME|modules/fluid/lease/authority.c|s/!same_record (&p->stored, start->stored)/(0 \&\& !same_record (\&p->stored, start->stored))/|a reload takes over the leases even if there was another root meanwhile
T_LOST|modules/fluid/lease/clock.c|s/if (most_us - boot_us > limit_us (boot_us))/if (0)/|time that CLOCK_BOOTTIME missed is not noticed
T_DOUBT|modules/fluid/node/now.c|s/ || n->doubt.now) .. rule T_DOUBT ../)/|a node whose clock missed time continues
T_SENT|modules/fluid/node/now.c|s/if (n->doubt.since_us > 0 && s->sent_us < n->doubt.since_us)/if (0)/|an answer to an older request ends the doubt
T_AGED|modules/fluid/lease/lessee.c|s/h->until_us = earlier (h->until_us, us);//|ranges are not counted as older by the missed time
T_ASKED|modules/fluid/lease/lessee.c|s/h->asked_us = earlier (h->asked_us, us);//|a lease request under way is not counted as older by the missed time
T_STEP|modules/fluid/lease/watermark.c|s/w->stepped_us += us;/(void) w, (void) us;/|steps of the root's clock count as time that passed for lessees
T_PAST|modules/fluid/node/now.c|/^void node_close_past/,/^}/s/uint64_t ms = node_now_ms (n, now_us);/uint64_t ms = 0; (void) now_us;/|milliseconds that were missed are filled after the step
W_USE|modules/fluid/lease/lessee.c modules/fluid/node/now.c|s/if (!lessee_in_use (h, now_us)) .. rule W_USE ../if ((void) now_us, h->closed)/@s/ || now_us >= n->cur.until_us) {/) {/|a range is used however long ago it was granted
W_LAPSED|modules/fluid/lease/lessee.c|s/if (!lessee_in_use (h, now_us)) .. rule W_LAPSED.*/if (0)/|a new lease revives ranges that were held for too long
W_SET|modules/fluid/lease/watermark.c|s/if (!same (&live, &all->lessees)) .. rule W_SET ../if (0 \&\& !same (\&live, \&all->lessees))/|the watermark is raised although a rank has not reported
W_BEGIN|modules/fluid/lease/watermark.c|s/ms = min_u64 (ms, bound_of_silent (.*));$/ms = bound_of_silent (w, at_ms, \&live, \&all->lessees) > 0 ? ms : 0;/|for a broker that was replaced, the begin of its ranges is not considered
W_SETTLE|modules/fluid/lease/watermark.c|s/if (at_ms < w->settled_ms) .. rule W_SETTLE ../if (0)/|the watermark is raised while ranks may hold ranges of an earlier root
W_HOR|modules/fluid/lease/watermark.c|s/min_u64 (min_u64 (all->low_ms, now_ms), horizon_ms);/min_u64 (all->low_ms, now_ms); (void)horizon_ms;/|the watermark is raised above the stored horizon
W_LO|modules/fluid/lease/lease.c|s/t->base_ms = max_u64 (t->base_ms, floor_ms);/(void) t, (void) floor_ms;/|ranges are granted below the watermark
S_ASIDE|modules/fluid/lease/lender.c|s/return whole->granules & not_lent (l, whole->generator, .*;/return whole->granules;/|a lender continues to use what it has subleased
S_AREA|modules/fluid/lease/lender.c|s/whole->granules & not_lent (l, whole->generator, &loan->range);/whole->granules;/|a part that is subleased is subleased again
S_PAST|modules/fluid/lease/lender.c|s/max_u64 (stock->from_ms, had ? had->range.hi_ms : 0);/(had ? had->range.hi_ms : 0);/|a sublease begins where its lender made ids
S_WITHIN|modules/fluid/lease/lender.c|s/min_u64 (whole->range.hi_ms, now_ms + l->term_ms);/now_ms + l->term_ms;/|a sublease ends after what its lender holds
S_KEEP|modules/fluid/lease/lender.c|s/return o->range.hi_ms > arg\[0\] || in_use (o, arg\[1\]);/return in_use (o, arg[1]);/|a sublease is forgotten before its lender's time is past its end
S_CLAIM|modules/fluid/lease/lender.c|s/return is_life (o, want->rank, want->incarnation);/return o->borrower[0] != '\\0' \&\& want;/|a request gets the sublease of another borrower
S_ANY|modules/fluid/lease/lender.c|/^static void hear/,/^}/s/if (!is_of (o, want))/if (0)/|a request ends the sublease of another borrower
S_NUMBER|modules/fluid/lease/lender.c|s/if (want->number < heard)/if (0)/@s/if (want->number > heard)/if (want->number != heard)/|a request is served after one with a higher number
S_MINE|modules/fluid/lease/borrower.c|s/ && strcmp (share->incarnation, b->incarnation) == 0;/;/|an answer to another borrower is accepted
S_OLD|modules/fluid/lease/borrower.c|s/share->number == b->want.number/share->number <= b->want.number/|an answer to a request that another followed is accepted
S_GIVEN|modules/fluid/lease/borrower.c|s/    cut (b, b->want.end_ms);/    (void) cut;/|a borrower continues above the end that it reported
S_USED|modules/fluid/lease/borrower.c|s/b->want.end_ms = max_u64 (end_ms, low_ms);/b->want.end_ms = end_ms; (void) low_ms;/|the reported end is below ids that it made
S_LENTON|modules/fluid/lease/lender.c|s/end_ms = max_u64 (end_ms, o->range.hi_ms);/(void) o;/|the reported end is below the end of what it subleased further
O_FOLLOW|common/libpage/page_gen.c|/^void page_gen_follow/,/^}/s/move_up (.*;/(void) used;/|ids from an ancestor do not advance the generator
O_MS|common/libfluid/fluid.c|s/gen->used = f.sequence + 1;/(void) f;/|they advance it only to their millisecond
W_FIRST|modules/fluid/lease/lender.c|s/max_u64 (max_u64 (lo_ms, l->floor_ms), whole->range.lo_ms);/max_u64 (lo_ms, whole->range.lo_ms);/|a sublease begins below the position that its lender reported
W_LOAN|modules/fluid/lease/lender.c|s/low_ms = min_u64 (low_ms, position (o));/(void) o;/|a position leaves out what was subleased
W_TERM|modules/fluid/lease/lender.c|s/min_u64 (left_ms, LEASE_USE_MS (l->term_ms));/LEASE_USE_MS (l->term_ms) + 0 * left_ms;/|a sublease is used longer than its lender may use its own lease
S_REST|modules/fluid/node/lease.c|s/end_ms = max_u64 (end_ms, lender_end (&n->sharing.lender));/(void) end_ms;/|an owner returns to the root what it has subleased
S_ANEW|modules/fluid/node/share.c|s/node_look_anew (n); .. rule S_GIVEN.*/(void) node_look_anew;/|a borrower that reported an end continues with what it looked up before
L_LENT|modules/fluid/node/node.c|s/if (!lender_restore (.*))$/if (!lender_restore (\&n->sharing.lender, p->floor_ms, p + 1, 0))/|a module that is loaded again at rank 0 does not know what was subleased
O_SERVER|modules/fluid/node/now.c|s/return granules != 0 .*O_SERVER.*/return granules != 0;/|the server of a forward compares milliseconds only
O_FRESH|modules/fluid/node/now.c|s/page_gen_follow (&n->gen, n->last_id); .. rule O_FRESH ../(void) 0;/@s/page_gen_advance (&n->gen, n->cursor_ms);/(void) 0;/|a rank that starts to use a sublease does not advance its generator above its newest id
O_WAIT|modules/fluid/node/ids.c|s/        node_forward_abandon (n);/        if (n->owner) node_forward_abandon (n);/@/^static bool is_for_above/,/^}/s/return node_forward_is_busy (n);/return false;/|ids are made while a forward is under way
P_ASKER|modules/fluid/node/ids.c|s/if (node_forward_has_spilled (n, a)) .. rule P_ASKER.*/if (0)/|later ids of a requester are made before its passed-on request is answered
P_HERE|modules/fluid/node/ids.c|s/if (node_forward_has_spilled (n, a)) .. rule P_ASKER.*/if (0)/@s/p->asked == 0 \&\& is_ripe/is_ripe/|passed-on requests are served here, too
P_AFTER|modules/fluid/node/forward.c|s/n->up.spilled.after = n->last_id;/n->up.spilled.after = 0;/|a passed-on request does not name the newest id that the requester has
P_KEEP|modules/fluid/node/forward.c|s/ + keep > n->waiting.missing)/ > n->waiting.missing + 0 * keep)/|an owner passes on all waiting requests
P_BACK|modules/fluid/node/forward.c|s/if (!unwanted \&\& now_us < spill_end_us (n))/if (!unwanted)/|an owner waits for its parent without limit
LANE_SIZE|modules/fluid/lease/authority.c|s/if ((want->size == 0 .. want->size == size) .*$/if (want \&\& size < UINT32_MAX)/|ranks that disagree on the size use lanes of each other
T_SEEN|modules/fluid/lease/lender.c|s/ && o->lapsed_us > 0 .*T_SEEN ../;/|a sublease is over after a single reading of the clock says so
W_SLOW|modules/fluid/lease/lender.c|s/LEASE_AT_MOST_MS (loan->use_ms)/loan->use_ms/@s/LEASE_AT_MOST_MS (left_ms)/left_ms/|a lender assumes that a borrower's clock is as fast as its own
T_LENT|modules/fluid/lease/lender.c|s/o->until_us += us;/(void) us, (void) o;/|subleases seem over to a lender whose CLOCK_BOOTTIME went too far
W_BACK|modules/fluid/lease/watermark.c|s/if (back->left_ms == 0)/if (1)/|the root does not wait for the borrowers of a rank that returns everything
W_LENT|modules/fluid/lease/lender.c|s/until_us = max_u64 (until_us, last_use_us .*$/(void) last_use_us;/|a rank that returns everything does not report that borrowers still use it
MUTANTS
}

die() {
    echo "mutants: $*" >&2
    exit 1
}

# Remove the object files of source files below src/, whatever prefix automake gives their names.
forget() { # file...
    for f; do
        dir=src/${f%/*} base=${f##*/} && base=${base%.c}
        rm -f "$dir/$base.c" "$dir/$base".[lo]* "$dir"/*-"$base".[lo]* "$dir/.libs/$base.o" "$dir"/.libs/*-"$base.o"
    done
}

# Each edit must change something.
applies() { # rule, files, edits
    echo "$3" | tr @ '\n' >mutants.sed
    while read -r edit; do
        for f in $2; do sed "$edit" "$IDTREE_SRCDIR/src/$f" | cmp -s - "$IDTREE_SRCDIR/src/$f" || continue 2; done
        die "$1 is not taken away, for this changes nothing in $2 any more: $edit"
    done <mutants.sed
}

# Put changed files in the build tree.
change() { # rule, files, edits
    applies "$1" "$2" "$3"
    for f in $2; do sed -f mutants.sed "$IDTREE_SRCDIR/src/$f" >"src/$f" || die "$1: sed fails"; done
}

build() {
    targets=src/sim/fluid-sim
    for t in $tests; do targets="$targets $fluid/${t}_test.t"; done
    timeout 900 $MAKE -s $targets src/modules/fluid.la >mutants.log 2>&1
}

unit() { # files; without files all tests run. The test of the store is slow, and depends only on the store
    said=
    for t in $tests; do
        case "$t $*" in
        service/horizon_store\ *sqlite* | service/horizon_store\ *store.c* | service/horizon_store\ ) ;;
        service/horizon_store\ *) continue ;;
        esac
        timeout 120 $fluid/${t}_test.t >mutants.out 2>&1 || said="$said, \`${t##*/}_test\`"
    done
    echo "${said#, }"
}

simulated() {
    timeout 600 src/sim/fluid-sim -s 1 -c "$HISTORIES" >mutants.out 2>&1 && return
    seed=$(sed -n 's/.*-s \([0-9][0-9]*\).*/\1/p' mutants.out | head -n 1)
    echo "seed ${seed:-?}"
}

# Chaos is meant to find duplicates; any other failure at least shows that something is wrong.
chaotic() {
    timeout 600 t/chaos/chaos --seed 1 --steps "$STEPS" >mutants.out 2>&1 </dev/null && return
    sed -n 's/^duplicates: \([1-9][0-9]*\)$/\1 duplicates/p' mutants.out | grep . || echo "fails"
}

modelled() { # rule
    sed -n "s/^[a-z]* *[a-z]* *\([A-Z_]*\) .*-D\(NO_\)\{0,1\}$1\$/\1/p" "$IDTREE_SRCDIR/doc/model/model.t" | sort -u | sed 's/.*/`&`/' | paste -sd' '
}

cell() { printf ' %s |' "${1:--}"; }

try() { # rule, files, edits, words
    # shellcheck disable=SC2086
    forget $2
    change "$1" "$2" "$3"
    build || die "$1: $2 does not compile: $(tail -n 5 mutants.log)"
    tested=$(unit "$2") seed=$(simulated) broken=
    if test "$CHAOS" = always || test -z "$tested$seed"; then broken=$(chaotic); fi
    echo "| \`$1\` | $4 |$(cell "$tested")$(cell "$seed")$(cell "$broken")$(cell "$(modelled "$1")")"
    test -n "$tested$seed$broken" || echo "$1" >>mutants.missed
    # shellcheck disable=SC2086
    forget $2
}

wanted() { # rule; true if the rule was requested, or if no rules were
    case " $asked " in '  ' | *" $1 "*) ;; *) return 1 ;; esac
}

# Call a command with the arguments rule, files, edits and words, for each rule that was requested.
each() { # command
    mutants | while IFS='#' read -r line; do
        rule=${line%%|*} rest=${line#*|}
        file=${rest%%|*} rest=${rest#*|}
        words=${rest##*|} edit=${rest%|*}
        wanted "$rule" || continue
        "$1" "$rule" "$file" "$edit" "$words" </dev/null || exit 1
    done
}

case ${1-} in
--apply)
    asked=
    trap 'rm -f mutants.sed' EXIT
    each applies
    exit
    ;;
esac
asked=$*
test ! -e src/sim/sim.c || die "run by make mutants: in a build tree of its own"
each applies || exit 1
trap 'forget $(mutants | cut -d"|" -f2); build' EXIT
trap 'exit 1' HUP INT TERM
rm -f mutants.missed
build || die "the tree does not compile: $(tail -n 5 mutants.log)"
test -z "$(unit)$(simulated)" || die "something fails before anything was changed"
echo "| rule | without it | unit tests | simulator | chaos | model |"
echo "|---|---|---|---|---|---|"
each try || exit 1
test ! -s mutants.missed || die "nobody misses $(paste -sd' ' mutants.missed)"

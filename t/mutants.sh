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
# no test notices. For each rule a row of a table is printed: the unit tests that fail, the seed of the first simulated
# history that breaks a promise, the result of real brokers under chaos (run only if the other tests notice nothing, or
# always with CHAOS=always), and the promise that breaks in the model (from doc/model/model.t).
set -u
: "${IDTREE_SRCDIR:?is the source tree}" "${MAKE:=make}" "${HISTORIES:=1000}" "${CHAOS:=silent}" "${STEPS:=150}"
fluid=src/modules/fluid
tests="lease/grants lease/authority lease/clock_debt lease/watermark lease/clock_check lease/held lease/boxes lease/lease_relay node/waiting node/node node/part service/horizon_store service/fluid"

# Rule, files below src/, the sed edits of these files (separated by @; each edit changes at least one of them), and the
# rule in words. If a rule is kept in two places, both are removed. If only a broker keeps it, the simulator removes it
# in its place.
mutants() {
    cat <<'MUTANTS'
HORIZON_FIRST|modules/fluid/lease/authority.c|s/{ 0, a->horizon.stored_ms } };/{ 0, END_MS } };/|ranges are granted before the horizon above them is stored
GRANT_ONCE|modules/fluid/lease/grants.c|s/lo_ms = max_u64 (lo_ms, last_end_ms (.*;/(void) last_end_ms;/@s/stock->whole->granules & not_granted (g, next.box.generator, &next.box.range);/stock->whole->granules;/|a range begins at the horizon, not at the end of the last one
START_AT_HORIZON|modules/fluid/lease/authority.c|s/a->grants.floor_ms = start->stored->horizon_ms;/a->grants.floor_ms = 0;/|a restarted root forgets its horizon
END_A_LEASE_FROM_NOW|modules/fluid/lease/grants.c|s/min_u64 (stock->whole->range.hi_ms, now_ms + g->term_ms),/min_u64 (stock->whole->range.hi_ms, max_u64 (now_ms, last_end_ms (g, stock->whole->generator)) + g->term_ms),/|a range ends a lease after its begin
ANSWER_ITS_OWN|modules/fluid/lease/grants.c|s/return is_life (o, want->rank, want->incarnation);/return want->size == BOX_WHOLE ? o->rank == want->rank : is_life (o, want->rank, want->incarnation);/@s/if (want->number < heard)/if (want->size != BOX_WHOLE \&\& want->number < heard)/@s/\.rank = o->rank, \.number = o->answered,/.rank = want->rank, .number = want->number,/@s/memcpy (grant\[n++\].incarnation, o->incarnation,/memcpy (grant[n++].incarnation, want->incarnation,/|a second claimant gets the range of the first
END_ITS_OWN|modules/fluid/lease/grants.c|/^static void hear (/,/^}/s/if (is_of (o, want))/if (is_of (o, want) || (g->generators > 0 \&\& want->end_ms > 0 \&\& (cut (o, want->end_ms), false)))/|a return is accepted from any sender
RETURN_INSIDE|modules/fluid/lease/grants.c|s/    if (end_ms < r->hi_ms)/    if (end_ms > 0)/@s/r->hi_ms = max_u64 (end_ms, r->lo_ms);/r->hi_ms = end_ms;/|a return is accepted with any end
STOP_ABOVE_GRANTED|modules/fluid/lease/authority.c|s/last->horizon_ms = grants_end (&a->grants);/last->horizon_ms = max_u64 (a->grants.floor_ms, a->grants.entry[0].box.range.hi_ms);/|a clean stop stores only the end of the root's own lease
STOP_NOT_BELOW_BASE|modules/fluid/lease/grants.c|s/uint64_t end_ms = g->floor_ms;/uint64_t end_ms = g->generators > 0 ? 0 : g->floor_ms;/|a clean stop stores less than was stored before
STOP_CLOSES|modules/fluid/lease/authority.c|s/a->closed ? 0 : serve (/serve (/|lease requests are answered after the last end was stored
MAKE_BELOW_END|modules/fluid/node/now.c|s/if (ms < range->lo_ms || ms >= range->hi_ms || now_us >= n->cur.until_us) {/if (range->hi_ms == 0) {/@s/page_gen_set_range (&n->gen, b->range.lo_ms, b->range.hi_ms)/page_gen_set_range (\&n->gen, 0, FLUID_TIMESTAMP_MAX + 1)/|a range that was valid once is not checked again after a wake-up
OWN_ANSWER|modules/fluid/lease/held.c modules/fluid/lease/lease_relay.c|s/ && strcmp (grant->incarnation, h->want.incarnation) == 0;/ \&\& (!h->whole || strcmp (grant->incarnation, h->want.incarnation) == 0);/@s/return strcmp (x->incarnation, y->incarnation);/return 0;/|an answer to another incarnation is accepted
NEVER_USE_RETURNED|modules/fluid/node/lease.c|s/held_return (&n->held, low_ms, grants_left_ms/held_return (\&n->held, low_ms > 0, grants_left_ms/|used time is returned, too
OWN_INCARNATION|modules/fluid/service/fluid_options.c sim/life.c|s/"%.23s-%012llx", uuid,/"00000000-0000-4000-8000-%012llx",/@s/(unsigned long long) *(n >> 16)/0ULL/@s/(unsigned)rank, (unsigned)l->id)/(unsigned)rank, 0U)/|all brokers have one incarnation
ONE_ROOT|common/libsqlite/database.c sim/sim.c|s/if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)/if (0)/@s/    if (rc != SQLITE_OK)$/    if (0)/@s/if (set_up (d, errp) < 0)/if (0)/@s/locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;/locking_mode = NORMAL;/@s/if (rank == 0 \&\& root_lives (w))/if (0 \&\& root_lives (w))/|two roots run on one statedir
LIMIT_CLOCK_DEBT|modules/fluid/lease/clock.c|s/uint64_t max_ms = AHEAD_MAX_MS (a->lease_ms), reach_ms/uint64_t max_ms = a->debt_ms + AHEAD_MAX_MS (a->lease_ms), reach_ms/|each crash adds two leases, even if the debt is large
WAIT_WITH_DEBT|modules/fluid/lease/clock.c|s/wait_ms = at_most (.*;/wait_ms = 0;/|a root does not wait if its debt is above the limit
STORE_HAS_JOURNAL|modules/fluid/service/horizon_disk.c sim/life_events.c|s/\.journal = true,/.journal = false,/@s/if (!w->disk_failing || world_chance (w, 300))/if (world_chance (w, 900))/|the store has a write-ahead log
REFUSE_EMPTIED|common/libsqlite/database.c sim/life.c|s/if (d->is_new \&\& (d->filled || (d->listed \&\& !d->kind->anew)))/if (0)/@s/stored = w->disk;/stored = world_chance (w, 100) ? (struct lease_record){ .horizon_ms = 0 } : w->disk;/|a database that a journal has emptied is taken for a new one
COMMIT_IN_PLACE|common/libsqlite/database.c sim/life_events.c|s/if (!d->locked || is_in_place (/if (1 || is_in_place (/@s/ if (w->disk_failing)$/ if (0)/|a commit counts wherever the file is now
HAND_OVER_LAST|modules/fluid/node/node.c|s/n->last_id = p->last_id;/(void) p->last_id;/@s/page_gen_advance (&n->gen, fluid_split.*;/(void) 0;/|a reload forgets the last id
SAME_RECORD|modules/fluid/lease/authority.c|s/!same_record (&p->stored, start->stored)/(0 \&\& !same_record (\&p->stored, start->stored))/|a reload takes over the leases even if there was another root meanwhile
LIMIT_LOST_TIME|modules/fluid/lease/clock.c|s/if (most_us - boot_us > limit_us (boot_us))/if (0)/|time that CLOCK_BOOTTIME missed is not noticed
STOP_IN_DOUBT|modules/fluid/node/now.c|s/ || n->doubt.now) .. rule STOP_IN_DOUBT ../)/|a node whose clock missed time continues
TIME_ASKED_IN_DOUBT|modules/fluid/node/now.c|s/if (n->doubt.since_us > 0 && s->sent_us < n->doubt.since_us)/if (0)/|an answer to an older request ends the doubt
AGE_WHAT_IS_HELD|modules/fluid/lease/held.c|s/h->lease\[i\].until_us = earlier (.*;/(void) us;/|what a rank holds is not counted as older by the missed time
AGE_WHAT_IS_ASKED|modules/fluid/lease/held.c|s/h->asked_us = earlier (h->asked_us, us);//|a lease request under way is not counted as older by the missed time
STEPS_AGE_NOTHING|modules/fluid/lease/watermark.c|s/w->stepped_us += us;/(void) w, (void) us;/|steps of the root's clock count as time that passed for holders
SKIP_MISSED_TIME|modules/fluid/node/now.c|/^void node_close_past/,/^}/s/uint64_t ms = node_now_ms (n, now_us);/uint64_t ms = 0; (void) now_us;/|milliseconds that were missed are filled after the step
USE_UNTIL_OVER|modules/fluid/lease/held.c|s/return now_us < l->until_us; .. rule USE_UNTIL_OVER ../return now_us > 0 \&\& l;/@s/^        \*lease = all;/        *lease = all, lease->until_us = UINT64_MAX \/ 2;/|a range is used however long ago it was granted
NEVER_REVIVE|modules/fluid/lease/held.c|s/ && h->lease\[i\].until_us > now_us)/)/@s/    h->lease\[h->count++\] = \*lease;/    h->lease[h->count++] = *lease, h->lease[0].until_us = lease->until_us;/|a new lease revives ranges that were held for too long
POSITION_COUNTS_GRANTED|modules/fluid/lease/watermark.c|s/if (!same (&live, &all->holders)) .. rule POSITION_COUNTS_GRANTED ../if (0 \&\& !same (\&live, \&all->holders))/|the watermark is raised although a rank has not reported
SILENT_ABOVE_BEGIN|modules/fluid/lease/watermark.c|s/ms = min_u64 (ms, bound_of_silent (.*));$/ms = bound_of_silent (w, at_ms, \&live, \&all->holders) > 0 ? ms : 0;/|for a broker that was replaced, the begin of its ranges is not considered
WAIT_AFTER_START|modules/fluid/lease/watermark.c|s/if (at_ms < w->settled_ms) .. rule WAIT_AFTER_START ../if (0)/|the watermark is raised while ranks may hold ranges of an earlier root
TELL_BELOW_HORIZON|modules/fluid/lease/watermark.c|s/min_u64 (min_u64 (all->low_ms, now_ms), horizon_ms);/min_u64 (all->low_ms, now_ms); (void)horizon_ms;/|the watermark is raised above the stored horizon
BEGIN_ABOVE_TOLD|modules/fluid/lease/authority.c|s/grants_raise (&a->grants, ms); .. rule BEGIN_ABOVE_TOLD.*/(void) grants_raise;/|ranges are granted below the watermark
NEVER_USE_GRANTED|modules/fluid/lease/grants.c|s/return whole->granules & not_granted (g, whole->generator, .*;/return whole->granules;/|a granter continues to use what it has granted
GRANT_ONCE_BESIDE|modules/fluid/lease/grants.c|s/stock->whole->granules & not_granted (g, next.box.generator, &next.box.range);/stock->whole->granules;/|a part that is granted is granted again
BEGIN_ABOVE_MADE|modules/fluid/lease/grants.c|s/lo_ms = max_u64 (stock->from_ms, stock->whole->range.lo_ms);/lo_ms = stock->whole->range.lo_ms;/|a part begins where its granter made ids
INSIDE_HELD|modules/fluid/lease/grants.c|s/min_u64 (stock->whole->range.hi_ms, now_ms + g->term_ms),/g->generators > 0 ? min_u64 (stock->whole->range.hi_ms, now_ms + g->term_ms) : now_ms + g->term_ms,/|a part ends after what its granter holds
KEEP_UNTIL_PASSED|modules/fluid/lease/grants.c|s/o->box.range.hi_ms > arg\[0\]/false/|a part is forgotten before its granter's time is past its end
ANSWER_ITS_OWN_LIFE|modules/fluid/lease/grants.c|s/return is_life (o, want->rank, want->incarnation);/return want->size == BOX_WHOLE ? is_life (o, want->rank, want->incarnation) : o->incarnation[0] > 0;/@s/\.rank = o->rank, \.number = o->answered,/.rank = want->rank, .number = want->number,/@s/memcpy (grant\[n++\].incarnation, o->incarnation,/memcpy (grant[n++].incarnation, want->incarnation,/|a request gets the part of another holder
END_ITS_OWN_PART|modules/fluid/lease/grants.c|/^static void hear (/,/^}/s/if (is_of (o, want))/if (is_of (o, want) || (g->generators == 0 \&\& want->end_ms > 0 \&\& (cut (o, want->end_ms), false)))/|a request ends the part of another holder
NEWEST_WANT_ONLY|modules/fluid/lease/grants.c|s/if (want->number < heard)/if (0)/@s/if (want->number > heard)/if (want->number != heard)/|a request is served after one with a higher number
OWN_ANSWER_PART|modules/fluid/lease/held.c|s/ && strcmp (grant->incarnation, h->want.incarnation) == 0;/ \&\& (h->whole || strcmp (grant->incarnation, h->want.incarnation) == 0);/|an answer to another holder is accepted
NEWEST_ANSWER_ONLY|modules/fluid/lease/held.c|s/grant->number == h->want.number/grant->number <= h->want.number/|an answer to a request that another followed is accepted
NEVER_USE_RETURNED_BOX|modules/fluid/lease/held.c|s/^        cut (h, end_ms, kept);/        (void) cut;/|a holder continues above the end that it reported
END_ABOVE_MADE|modules/fluid/lease/held.c|s/max_u64 (min_u64 (held_end (h), soon_ms), low_ms)/min_u64 (held_end (h), soon_ms)/@s/promise (h, 0, low_ms, 0, left_ms);/promise (h, 0, h->whole ? low_ms : low_ms > 0, 0, left_ms);/|the reported end is below ids that the holder made
END_ABOVE_GRANTED|modules/fluid/node/lease.c|s/return max_u64 (n->cursor_ms + 1, grants_end (&n->parts));/return n->owner ? max_u64 (n->cursor_ms + 1, grants_end (\&n->parts)) : n->cursor_ms + 1;/|the reported end is below the end of what the holder granted on
FOLLOW_IDS|common/libpage/page_gen.c|/^void page_gen_follow/,/^}/s/move_up (.*;/(void) used;/|ids from an ancestor do not advance the generator
FOLLOW_WHOLE_IDS|common/libfluid/fluid.c|s/gen->used = f.sequence + 1;/(void) f;/|they advance it only to their millisecond
BEGIN_ABOVE_TOLD_PART|modules/fluid/lease/grants.c|s/return max_u64 (lo_ms, g->floor_ms); .. rules BEGIN_ABOVE_TOLD.*/return want->size == BOX_WHOLE ? max_u64 (lo_ms, g->floor_ms) : lo_ms;/|a part begins below the position that its granter reported
POSITION_COUNTS_GRANTED_PART|modules/fluid/lease/grants.c|s/low_ms = min_u64 (low_ms, position (o));/(void) o;/|a position leaves out what was granted on
USE_WITHIN_OWN_USE|modules/fluid/lease/grants.c|s/min_u64 (left_ms, LEASE_USE_MS (g->term_ms)),/LEASE_USE_MS (g->term_ms) + 0 * left_ms,/|a part is used longer than its granter may use what it holds
END_ABOVE_GRANTED_STOP|modules/fluid/node/lease.c|s/max_u64 (max_u64 (end_ms (n), grants_end (&n->time)), n->spoilt.end_ms);/max_u64 (max_u64 (n->owner ? n->cursor_ms + 1 : end_ms (n), grants_end (\&n->time)), n->spoilt.end_ms);/|an owner returns to the root what it has granted on
NEVER_USE_RETURNED_LOOKED_UP|modules/fluid/node/lease.c|s/node_look_anew (n); .. rule NEVER_USE_RETURNED.*/(void) node_look_anew;/|a holder that reported an end continues with what it looked up before
KEEP_UNTIL_PASSED_RELOAD|modules/fluid/node/node.c|s/grants_restore (&n->parts, p->floor_ms, parts, p->parts_size)/grants_restore (\&n->parts, p->floor_ms, parts, 0)/|a module that is loaded again does not know what was granted
COMPARE_WHOLE_IDS|modules/fluid/node/now.c|s/return (uint32_t)__builtin_ctzll .*COMPARE_WHOLE_IDS.*/return true;/|the server of a forward compares milliseconds only
CONTINUE_ABOVE_NEWEST|modules/fluid/node/now.c|s/page_gen_follow (&n->gen, n->last_id); .. rule CONTINUE_ABOVE_NEWEST ../(void) 0;/@s/page_gen_advance (&n->gen, n->cursor_ms);/(void) 0;/|a rank that starts to use a part does not advance its generator above its newest id
WAIT_FOR_FORWARD|modules/fluid/node/ids.c|s/        node_forward_abandon (n);/        if (n->owner) node_forward_abandon (n);/@/^static bool is_for_above/,/^}/s/return node_forward_is_busy (n);/return false;/|ids are made while a forward is under way
LANE_SIZE|modules/fluid/lease/authority.c|s/if ((want->ranks == 0 .. want->ranks == size) .*$/if (want \&\& size < UINT32_MAX)/|ranks that disagree on the size use lanes of each other
LOOK_TWICE|modules/fluid/lease/grants.c|s/ && o->lapsed_us > 0 .*LOOK_TWICE ../;/|a grant is over after a single reading of the clock says so
WAIT_FOR_SLOW_CLOCKS|modules/fluid/lease/grants.c|s/LEASE_AT_MOST_MS (t.use_ms)/t.use_ms/@s/LEASE_AT_MOST_MS (left_ms)/left_ms/|a granter assumes that a holder's clock is as fast as its own
WAIT_AFTER_JUMP|modules/fluid/lease/grants.c|s/o->until_us += us;/(void) us, (void) o;/|grants seem over to a granter whose CLOCK_BOOTTIME went too far
TELL_TIME_LEFT|modules/fluid/lease/watermark.c|s/if (back->left_ms == 0)/if (1)/|the root does not wait for those that hold parts of a rank that returns everything
TELL_TIME_LEFT_PART|modules/fluid/lease/grants.c|s/until_us = max_u64 (until_us, last_use_us .*$/(void) last_use_us;/|a rank that returns everything does not report that parts of it are still used
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

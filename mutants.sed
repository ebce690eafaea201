s/if (ms < n->cur.lo_ms || ms >= n->cur.hi_ms || now_us >= n->holder.until_us) {/if (n->cur.hi_ms == 0) {/
s/fluid_gen_set_range (&n->gen, n->cur.lo_ms, n->cur.hi_ms)/fluid_gen_set_range (\&n->gen, 0, FLUID_TIMESTAMP_MAX + 1)/

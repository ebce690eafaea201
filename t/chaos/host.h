/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* host.h - the simulated host of a broker under test
 *
 * host.so is preloaded into every broker. It replaces functions of the C library as 'struct host_page' says. This page
 * is a file that the chaos program and all brokers map:
 *   - the wall clock is off by wall_us[rank], CLOCK_BOOTTIME by boot_us[rank]; CLOCK_MONOTONIC is the host's;
 *   - a connection to an ipc socket DIR/tbon-P is redirected to LINKS/RANK-P, where the chaos program forwards it
 *     (links.h);
 *   - a write to a file in the state directory fails or blocks, as 'disk' says.
 *
 * host.so also stores the launcher's messages to the broker in the file PMI/RANK, where a twin reads them (twin.h). So
 * each broker has a clock, links and a disk of its own on any host, without privileges. In a process without PMI_RANK
 * and CHAOS_RANK, host.so does nothing.
 */
#ifndef CHAOS_HOST_H
#define CHAOS_HOST_H

#include <stdatomic.h>
#include <stdint.h>

#define HOST_RANKS_MAX 64

enum host_disk {
    HOST_DISK_GOOD,
    HOST_DISK_FULL,   /* writes fail with ENOSPC */
    HOST_DISK_BROKEN, /* writes and syncs fail with EIO */
    HOST_DISK_FROZEN, /* writes and syncs block until the disk is good again */
};

struct host_page {
    _Atomic int64_t wall_us[HOST_RANKS_MAX];
    _Atomic uint32_t disk; /* enum host_disk; a futex */
    _Atomic int64_t boot_us[HOST_RANKS_MAX];
};

/* Environment variables that host.so reads. */
#define HOST_ENV_PAGE "CHAOS_PAGE"   /* file of the page */
#define HOST_ENV_RANK "CHAOS_RANK"   /* index in the page; if it is not set, PMI_RANK is used */
#define HOST_ENV_LINKS "CHAOS_LINKS" /* the folder LINKS; if it is not set, links are unchanged */
#define HOST_ENV_PMI "CHAOS_PMI"     /* the folder PMI; if it is not set, nothing is stored */
#define HOST_ENV_STATE "CHAOS_STATE" /* the state directory, without a slash at the end */

#endif /* CHAOS_HOST_H */

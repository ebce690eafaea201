/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher_orders.h - what idtree's launcher and a process of several brokers tell each other, once they have booted
 *
 * On the connection of PMI, which is not used for that any more, in lines of its form.  The process begins:
 *     cmd=idtree_ready                          it takes orders
 *     cmd=idtree_rank rank=R state=S status=N   S: up, stopped, going, down; down: how, as wait () would tell of a
 *     process
 * The launcher answers nothing, and may say at any time:
 *     cmd=idtree_order rank=R order=O signal=N  O: run, kill, stop, cont, end; end: in order, as after signal N
 *
 * What is not sent yet of a rank is replaced by what becomes of it next; but one that came up, stopped and goes on is
 * told to have done each.  So no more waits than three lines a rank.
 */
#ifndef BROKER_LAUNCHER_ORDERS_H
#define BROKER_LAUNCHER_ORDERS_H

#include <stdint.h>

#include <idtree/error.h>
#include <idtree/reactor.h>

#include "broker/boot/boot.h"

enum order { ORDER_RUN, ORDER_KILL, ORDER_STOP, ORDER_CONT, ORDER_END };
enum rank_state { RANK_UNTOLD, RANK_UP, RANK_STOPPED, RANK_GOING, RANK_DOWN };

struct launcher_orders;

/* Rank number 'rank' shall do so; 'signum' belongs to ORDER_END. */
typedef void (*order_f) (void *arg, uint32_t rank, enum order order, int signum);

/* Talk about the brokers here, on boot_fd () of 'boot', which must live longer.  NULL with errno set and 'errp' filled.
 */
struct launcher_orders *launcher_orders_create (idt_reactor_t *r, const struct boot *boot, order_f cb, void *arg,
                                                idt_error_t *errp);
void launcher_orders_destroy (struct launcher_orders *o); /* NULL is fine */

/* Tell what became of number 'i' of those here; 'status' is only looked at for RANK_DOWN. */
void launcher_orders_tell (struct launcher_orders *o, uint32_t i, enum rank_state state, int status);

#endif /* BROKER_LAUNCHER_ORDERS_H */

/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* launcher_orders.h - messages between the launcher of idtree and a process with several brokers, after boot
 *
 * They use the connection of PMI, which is free after boot, and lines in the form of PMI. The process sends:
 *     cmd=idtree_ready                          it accepts orders
 *     cmd=idtree_rank rank=R state=S status=N   S: up, stopped, going, down; N for down: a status as wait () returns it
 * The launcher sends no answers, but may send at any time:
 *     cmd=idtree_order rank=R order=O signal=N  O: run, kill, stop, cont, end; end: stop as after signal N
 *
 * A change that is not sent yet is replaced by the next change of the same rank, except in one case: if a rank came up,
 * was stopped and continued, all three are reported. So at most three lines of a rank wait.
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

/* Carry out 'order' for the rank 'rank'. Only ORDER_END uses 'signum'. */
typedef void (*order_f) (void *arg, uint32_t rank, enum order order, int signum);

/* Report the brokers of this process and receive orders for them on boot_fd () of 'boot'. 'boot' must live longer than
 * the returned object. NULL with errno set and 'errp' filled.
 */
struct launcher_orders *launcher_orders_create (idt_reactor_t *r, const struct boot *boot, order_f cb, void *arg,
                                                idt_error_t *errp);
void launcher_orders_destroy (struct launcher_orders *o); /* NULL is fine */

/* Report that broker number 'i' of this process is now in 'state'. 'status' has a meaning only for RANK_DOWN. */
void launcher_orders_tell (struct launcher_orders *o, uint32_t i, enum rank_state state, int status);

#endif /* BROKER_LAUNCHER_ORDERS_H */

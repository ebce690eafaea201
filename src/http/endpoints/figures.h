/* SPDX-License-Identifier: Apache-2.0
 * Copyright idtree contributors */

/* figures.h - /healthz, /readyz, /metrics, /v1/watermark */
#ifndef HTTP_ENDPOINTS_FIGURES_H
#define HTTP_ENDPOINTS_FIGURES_H

#include "http/server/exchange.h"

struct figures;

struct figures *figures_create (idt_t *h); /* borrowed.  NULL with errno ENOMEM */
void figures_destroy (struct figures *fig);

/* Each of these answers the request. */
void figures_health (struct figures *fig, struct exchange *x);
void figures_ready (struct figures *fig, struct exchange *x);
void figures_metrics (struct figures *fig, struct exchange *x);
void figures_watermark (struct figures *fig, struct exchange *x);

#endif /* HTTP_ENDPOINTS_FIGURES_H */

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
#
# flux-submit.py - the rate at which a stock Flux client submits jobs to the broker that FLUX_URI names
#
#   idtree start -o broker.modules=fluid,job-ingest flux python bench/flux-submit.py [JOBS [UNDER-WAY]]
#   flux start flux python bench/flux-submit.py [JOBS [UNDER-WAY]]
#
# Each job is a stock jobspec of one task, sent with submit_async; UNDER-WAY of them are pending (defaults 10000 and 2000).
# Prints one JSON object.  "client_cpu_us" is the client's own processor time for a job, a lower bound.
import json
import sys
import time

import flux
import flux.job


class Submitter:
    def __init__(self, handle, count, under_way):
        self.handle, self.left, self.ids = handle, count, []
        self.spec = flux.job.JobspecV1.from_command(["true"]).dumps()
        for _ in range(min(count, under_way)):
            self.submit()

    def submit(self):
        self.left -= 1
        flux.job.submit_async(self.handle, self.spec).then(self.answered)

    def answered(self, future):
        self.ids.append(future.get_id())
        if self.left > 0:
            self.submit()


def main(count=10000, under_way=2000):
    handle = flux.Flux()
    began, cpu = time.monotonic(), time.process_time()
    s = Submitter(handle, count, under_way)
    handle.reactor_run()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    if len(set(s.ids)) != count:
        sys.exit("%d jobs got %d ids" % (count, len(set(s.ids))))
    result = {"bench": "flux-submit", "jobs": count, "under_way": under_way, "jobspec_bytes": len(s.spec)}
    print(json.dumps(dict(result, jobs_per_s=round(count / took), client_cpu_us=round(cpu / count * 1e6, 1))))


if __name__ == "__main__":
    main(*[int(a) for a in sys.argv[1:]])

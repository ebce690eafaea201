#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""metrics.py FILE: parse a text with Prometheus' own OpenMetrics parser, and print NAME{LABELS} VALUE for each sample

metrics.py names FILE: print the idtree metric names in expressions of rules and dashboards
"""
import re
import sys


def samples(path):
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    with open(path, encoding="utf-8") as f:
        for family in text_string_to_metric_families(f.read()):
            if not family.documentation and family.type != "unknown":
                sys.exit("%s: no help" % family.name)
            for s in family.samples:
                labels = ",".join('%s="%s"' % label for label in sorted(s.labels.items()))
                print("%s{%s} %g" % (s.name, labels, s.value))


def names(path):
    with open(path, encoding="utf-8") as f:
        print("\n".join(sorted(set(re.findall(r"\bidtree_[a-z_]+", f.read())))))


if sys.argv[1] == "names":
    names(sys.argv[2])
else:
    samples(sys.argv[1])

# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Print results of programs under bench/ as lines of JSON (bench/README.md describes the format); line.h in Python"""
import json


def skip(text):
    print(json.dumps({"skipped": text}), flush=True)


def line(subject, name, unit, rounds, turns, warmup, more=False, limit_turns=None, **rest):
    ordered = sorted(rounds, reverse=more)
    best = max if more else min
    said = {
        "subject": subject, "name": name, "value": best(turns), "unit": unit, "better": "more" if more else "less",
        "mean": sum(rounds) / len(rounds), "median": ordered[len(ordered) // 2], "p99": ordered[len(ordered) * 99 // 100],
        "rounds": len(rounds), "warmup": warmup, "turns": turns}
    if limit_turns:
        limit = best(limit_turns)
        said.update(limit=limit, ratio=round(best(turns) / limit, 3), limit_turns=limit_turns)
    print(json.dumps(dict(said, **rest)), flush=True)

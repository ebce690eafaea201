# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""Times of ids."""
from datetime import datetime, timedelta, timezone

UNIX = datetime(1970, 1, 1, tzinfo=timezone.utc)


def at_ms(unix_ms: int) -> datetime:
    """Return the exact time of a number of Unix milliseconds."""
    return UNIX + timedelta(milliseconds=unix_ms)

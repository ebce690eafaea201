# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""UUIDs (version 4) of the id compressor: 16 bytes.

>>> id = parse("403f1e16-5265-4074-8507-417d99a05ee9")
>>> format(id)
'403f1e16-5265-4074-8507-417d99a05ee9'
>>> import uuid
>>> uuid.UUID(bytes=id).version
4
"""
from . import _idtree

format = _idtree.uuid_format  # (bytes) -> str
parse = _idtree.uuid_parse  # (str) -> bytes

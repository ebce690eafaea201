# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""The id compressor: its UUIDs (version 4) as 16 bytes, and compressors without an instance.

>>> id = parse("403f1e16-5265-4074-8507-417d99a05ee9")
>>> format(id)
'403f1e16-5265-4074-8507-417d99a05ee9'
>>> import uuid
>>> uuid.UUID(bytes=id).version
4

For documents of an instance see Connection.document().  A program that orders ranges itself, such as a program of Fluid
Framework, makes compressors without an instance.  Each compressor must finalize the same ranges in the same order:

>>> mine, yours = Compressor(), Compressor()
>>> id = mine.generate()
>>> made = mine.take()                            # JSON, for all sessions
>>> for c in mine, yours:
...     c.finalize(made)
>>> yours.uuid(yours.to_session(mine.to_op(id), mine.session)) == mine.uuid(id)
True
>>> later = Compressor(stored=yours.save())       # a new session in the same document
>>> later.id_of(mine.uuid(id)) == mine.to_op(id)
True
"""
from . import _idtree

format = _idtree.uuid_format  # (bytes) -> str
Compressor = _idtree.Compressor
parse = _idtree.uuid_parse  # (str) -> bytes

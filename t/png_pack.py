# SPDX-License-Identifier: Apache-2.0
# Copyright idtree contributors
"""png_pack.py - convert screenshots to smaller PNG files than browsers write"""
import collections
import struct
import zlib

MAGIC = b"\x89PNG\r\n\x1a\n"
COLOURS = 256


def pack(png):
    """Return the picture with only its 256 most frequent colours; the nearest one replaces any other colour."""
    width, height, bytes_each, lines = pixels(png)
    rows = [[line[i:i + 3] for i in range(0, len(line), bytes_each)] for line in lines]
    frequent = collections.Counter(pixel for row in rows for pixel in row).most_common(COLOURS)
    palette = [pixel for pixel, _ in frequent]
    index = {pixel: i for i, pixel in enumerate(palette)}

    def nearest(pixel):
        if pixel not in index:
            index[pixel] = min(range(len(palette)), key=lambda i: sum((a - b) ** 2 for a, b in zip(pixel, palette[i])))
        return index[pixel]

    data = b"".join(b"\0" + bytes(map(nearest, row)) for row in rows)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return MAGIC + b"".join(chunk(kind, text) for kind, text in (
        (b"IHDR", header), (b"PLTE", b"".join(palette)), (b"IDAT", zlib.compress(data, 9)), (b"IEND", b"")))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels(png):
    """Return width, height, bytes per pixel and rows of pixels of a browser's picture: RGB or RGBA, 8 bits each."""
    chunks, at = collections.defaultdict(bytes), len(MAGIC)
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at:at + 8])
        chunks[kind] += png[at + 8:at + 8 + size]
        at += 12 + size
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    bytes_each = {2: 3, 6: 4}[colours]
    assert depth == 8
    data, step = zlib.decompress(chunks[b"IDAT"]), width * bytes_each + 1
    lines, above = [], bytes(step - 1)
    for y in range(height):
        above = unfilter(data[y * step], bytearray(data[y * step + 1:(y + 1) * step]), above, bytes_each)
        lines.append(bytes(above))
    return width, height, bytes_each, lines


def unfilter(kind, line, above, bytes_each):
    for i, _ in enumerate(line):
        left, up = line[i - bytes_each] if i >= bytes_each else 0, above[i]
        corner = above[i - bytes_each] if i >= bytes_each else 0
        line[i] = (line[i] + (0, left, up, (left + up) // 2, predict(left, up, corner))[kind]) & 255
    return line


def predict(left, up, corner):
    guess = left + up - corner
    return min((left, up, corner), key=lambda value: abs(guess - value))

#!/usr/bin/env python3
"""Writes the fuzzers' seeds to tests/fuzz/corpus: a few good inputs of each, from which the fuzzers go on."""

import pathlib
import random
import struct

FOLDER = pathlib.Path(__file__).parent / "corpus"
CODECS = 10  # At least as many as there are; the fuzzers take the remainder.


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def frame(kind, meta, payload_bytes, request_id):
    def header(crc):
        return struct.pack("<IBBHIIQQ", 0x4D485349, 1, kind, 0, len(meta), crc, payload_bytes, request_id)
    return header(crc32c(header(0) + meta)) + meta


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, value):
    """A protobuf field: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def floats(count, scale=1.0, seed=1):
    source = random.Random(seed)
    return struct.pack(f"<{count}f", *(scale * source.gauss(0, 1) for _ in range(count)))


def seeds():
    yield "frame/hello", frame(1, b"\x0a\x04test", 0, 1)
    yield "frame/contribution", frame(35, b"", 4096, 7)
    yield "frame/bad_crc", frame(16, b"abc", 1, 2)[:-1] + b"d"

    tensors = b"".join(field(1, field(1, name) + field(2, varint(a) + varint(b)))
                       for name, a, b in ((b"fc1.weight", 784, 128), (b"fc2.weight", 128, 10)))
    yield "meta/records", bytes([0, 2, 4]) + b"abcd" + bytes([2]) + b"ef" + bytes([0, 3, 0, 1, 0, 2])
    yield "meta/layout", bytes([1]) + tensors + field(2, 1024)
    yield "meta/refusal", bytes([2]) + field(1, 2) + field(2, b"another job")
    for which in range(3, 27):
        yield f"meta/message_{which}", bytes([which]) + field(1, 3) + field(2, b"frankfurt") + field(3, b"\x01\x02")

    half = struct.pack("<8H", 0x3C00, 0xC200, 0x0001, 0x7BFF, 0, 0x8000, 0x03FF, 0x3555)
    yield "codec/fp32", struct.pack("<BBH", 0, 0, 8) + floats(8)
    yield "codec/fp16", struct.pack("<BBH", 2, 0, 8) + half
    yield "codec/bf16", struct.pack("<BBH", 4, 0, 8) + half
    yield "codec/int8", struct.pack("<BBHf", 6, 0, 8, 0.01) + bytes([0, 1, 2, 127, 129, 255, 5, 6])
    # kind, count; first index, bytes of bits, Rice parameter; one gap of one; two halves
    yield "codec/topk", struct.pack("<BBH BI IHBB 2H".replace(" ", ""), 14, 0, 5, 2, 2, 1, 1, 0, 2, 0xC200, 0x3C00)
    for codec in range(CODECS):
        # Encoded by the fuzzer, then one byte is changed.
        numbers = floats(70, seed=codec)
        changes = struct.pack("<HBB", 9, 1, 0x40)
        yield f"codec/changed_{codec}", (struct.pack("<BBH", codec * 2 + 1, codec, 0) + numbers +
                                         changes * (len(numbers) // len(changes)))

    special = struct.pack("<12f", 0.0, -0.0, 3.4028235e38, -3.4028235e38, 1.1754944e-38, 1e-45, -1e-40, 65504.0,
                          65520.0, 2.9802322e-8, 1.00048828, 0.5)
    for codec in range(CODECS):
        numbers = special + floats(90, seed=codec) + floats(40, 1e-41) + floats(200, 1e3, seed=codec)
        record = struct.pack("<BBBbf", 0, codec, 0, 3, 0.0) + half * 6
        yield f"differential/record_{codec}", record + floats(24, seed=codec)
        for mode, name in ((1, "numbers"), (2, "delta")):
            how = 1 + 4 * (codec % 3) + 16 * mode
            yield f"differential/{name}_{codec}", struct.pack("<BBBbf", mode, codec, how, 7, 0.5) + numbers

    job = ("job: j\nseed: 3\nregions:\n"
           "  - { name: a, workers: 2, servers: [{ lan: 127.0.0.1:7100, wan: '[::1]:7200', shards: 2 }] }\n"
           "  - { name: b, servers: [{ lan: b.example:7110, wan: b.example:7210 }] }\n")
    full = (job + "commit: { policy: ssp, staleness: 3 steps, lease: 5s }\n"
            "optimizer: { kind: adamw, learning_rate: 1e-3, schedule: { kind: cosine, steps: 100, final: 10% } }\n"
            "sync: { every: 200ms, weight: equal, deadline: 1s, staleness: { hard: 64 steps, then: continue } }\n"
            "compression: { lan: fp16, wan: { codec: topk, keep: 0.5% }, dense_below: 100 elements }\n"
            "links: { streams: 2, emulate: { rate: 10Mbps, rtt: 80ms, outages: [{ at: 2s, for: 1s, cut: true }] } }\n"
            "trainer: { model: mlp, data: { split: dirichlet, alpha: 0.3 }, stop: { accuracy: 88%, time: 5min } }\n"
            "limits: { in_flight: 64MiB, message: 1MiB }\nslice: 4096 elements\n")
    yield "config/small", (job + "trainer: { stop: { steps: 10 } }\n").encode()
    yield "config/full", full.encode()
    yield "config/override", (job + "\0trainer.stop.steps=5").encode()
    yield "config/anchors", b"a: &x { b: 1 }\nc: *x\nd: [1, [2, {e: ~}]]\n? k\n: v\n"


def main():
    for name, data in seeds():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main()

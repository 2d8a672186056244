#!/usr/bin/env python3
"""Reads a safetensors file by the format's description alone and prints what is in it.

safetensors_test.cc compares this with what it wrote, so that writer and reader are not both wrong alike.
"""

import json
import struct
import sys

with open(sys.argv[1], "rb") as file:
    content = file.read()
(length,) = struct.unpack_from("<Q", content)
header = json.loads(content[8 : 8 + length])
data = content[8 + length :]
print(sorted(header.pop("__metadata__").items()))
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    begin, end = tensor["data_offsets"]
    values = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    print(name, tensor["dtype"], tensor["shape"], values)

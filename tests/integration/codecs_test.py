"""Every codec between regions, and deep gradient compression inside them, in real processes over TLS.

Each commit adds exactly 1 to every parameter and contributions add up undivided, so the shared model is the count of all
steps, less nothing: what a codec loses is told later, at the latest in the last, lossless sync.
"""

import unittest

import environment  # noqa: F401
import job

STEPS = 40
WAN = ["fp32", "fp16", "bf16", "int8", "{ codec: int8, rounding: stochastic }", "int4",
       "{ codec: int4, rotate: true }", "{ codec: int4, rounding: stochastic }", "fp4", "sign", "{ codec: topk, keep: 5% }",
       "{ codec: topk, keep: 5%, values: int8 }", "{ codec: topk, keep: 5%, values: fp32 }", "{ codec: randk, keep: 5% }",
       "{ codec: randk, keep: 5%, values: int8 }"]
LAN = ["fp16", "bf16", "int8", "{ codec: int8, rounding: stochastic }"]
TRAINER = ("{ model: synthetic, synthetic: { tensors: 2, elements: 3000, gradient: -1, step_time: 2ms }, "
           f"stop: {{ steps: {STEPS} }} }}")


class CodecsTest(unittest.TestCase):
    def values(self, compression, **more):
        with job.Job(workers=1, emulate="rate: 100Mbps, rtt: 5ms",
                     sections={"trainer": TRAINER, "compression": compression}, **more) as run:
            summary = run.train()
            self.assertEqual((summary["status"], summary["max_replica_difference"]), ("ok", 0.0))
            tensors = job.read_safetensors(run.run_folder / "model.safetensors").values()
            return [value for tensor in tensors for value in tensor], summary

    def test_what_a_codec_between_regions_loses_is_told_in_the_end(self):
        for codec in WAN:
            with self.subTest(codec):
                values, _ = self.values(f"{{ lan: fp32, wan: {codec}, dense_below: 1 elements }}")
                self.assertLess(max(abs(value - 2 * STEPS) for value in values), 1e-3)

    def test_codecs_inside_a_region(self):
        for codec in LAN:
            with self.subTest(codec):
                values, _ = self.values(f"{{ lan: {codec}, wan: fp32 }}")
                # A gradient of -1 for all elements is exact, or nearly so, in each of them.
                self.assertLess(max(abs(value - 2 * STEPS) for value in values), 1e-2)

    def test_deep_gradient_compression_sends_all_or_the_largest(self):
        values, everything = self.values("{ lan: fp32, wan: fp32, deep: { keep: 100%, momentum: 0 } }")
        self.assertEqual(set(values), {2.0 * STEPS})
        values, little = self.values("{ lan: fp32, wan: fp32, deep: { keep: 10%, momentum: 0 } }")
        # Nothing more than was given, and of every ten steps' gradients about the last ten are still gathered.
        self.assertLessEqual(max(values), 2.0 * STEPS)
        self.assertGreater(sum(values) / len(values), 2 * (STEPS - 15))
        self.assertLess(sum(values) / len(values), 2 * STEPS)
        self.assertLess(little["lan_bytes"], everything["lan_bytes"])


if __name__ == "__main__":
    unittest.main()

"""Nothing lost, nothing twice: every step of every region is counted, whatever the link does.

Each commit adds exactly 1 to every parameter, contributions add up undivided, and floats hold these whole
numbers exactly, so the shared model is the count of all steps of all regions.
"""

import unittest

import environment  # noqa: F401
import job

STEPS = 150
# Nobody waits for the link: each step takes a while, so that it works while it is cut.
TRAINER = ("{ model: synthetic, synthetic: { tensors: 4, elements: 65536, gradient: -1, step_time: 40ms }, "
           f"stop: {{ steps: {STEPS} }} }}")


class ExactlyOnceTest(unittest.TestCase):
    def count(self, regions=2, emulate="rate: 20Mbps, rtt: 40ms", wan="fp32", streams=1, exact=True):
        links = f"{{ streams: {streams}, silence: 2s, emulate: {{ {emulate} }} }}"
        with job.Job(regions=regions, workers=1, sections={"trainer": TRAINER, "links": links,
                                                           "compression": f"{{ lan: fp32, wan: {wan} }}"}) as counted:
            summary = counted.train()
            self.assertEqual(summary["status"], "ok")
            self.assertEqual(summary["max_replica_difference"], 0.0)
            values = {value for tensor in job.read_safetensors(counted.run_folder / "model.safetensors").values()
                      for value in tensor}
            if exact:
                self.assertEqual(values, {float(regions * STEPS)})
            else:
                self.assertLess(max(abs(value - regions * STEPS) for value in values), 1e-3)
            return counted.log("frankfurt/server 0") + counted.log("virginia/server 0")

    def test_a_calm_link(self):
        self.count()

    def test_connections_cut_in_mid_transfer_for_five_seconds(self):
        # One dense sync is 1 MiB, so 1.3 MB into a direction is in the middle of one.
        log = self.count(emulate="rate: 20Mbps, rtt: 40ms, outages: [ { after: 1300kB, for: 5s, cut: true } ]")
        self.assertIn("is down", log)

    def test_a_stall_longer_than_the_silence_that_is_allowed(self):
        log = self.count(emulate="rate: 20Mbps, rtt: 40ms, outages: [ { after: 1300kB, for: 5s } ]")
        self.assertIn("is down", log)

    def test_int8_cut_twice_on_four_streams(self):
        self.count(wan="int8", streams=4, exact=False,
                   emulate="rate: 5Mbps, rtt: 80ms, outages: [ { after: 400kB, for: 2s, cut: true }, "
                           "{ after: 900kB, for: 2s, cut: true } ]")

    def test_three_regions(self):
        self.count(regions=3, emulate="rate: 20Mbps, rtt: 40ms, outages: [ { after: 1300kB, for: 3s, cut: true } ]")


if __name__ == "__main__":
    unittest.main()

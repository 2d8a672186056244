"""One short run of two regions, every part real; the sanitizer builds run it too."""

import unittest

import environment  # noqa: F401  (filled in by run.py)
import job


class TwoRegionsSmokeTest(unittest.TestCase):
    def test_trains_syncs_and_leaves_nothing_behind(self):
        with job.Job() as two:
            train = two.start_train("--set", "trainer.stop.steps=40", "--set", "links.emulate.rate=50Mbps")
            summary = job.finish(train)
            self.assertEqual(summary["schema"], 1)
            self.assertEqual(summary["status"], "ok")
            self.assertEqual(summary["steps"], 40)
            # Each region's 40 steps add 1 to every parameter; undivided, they add up.
            self.assertEqual(summary["largest_parameter"], 80.0)
            self.assertEqual(summary["max_replica_difference"], 0.0)
            for link in ("frankfurt->virginia", "virginia->frankfurt"):
                self.assertGreater(summary["wan"][link]["bytes"], 4 * 4 * 16384 / 2)
                self.assertEqual(summary["wan"][link]["dense_bytes"], 4 * 4 * 16384 * 40)
            self.assertGreater(summary["lan_bytes"], 40 * 4 * 4 * 4 * 16384)
            values = job.read_safetensors(two.run_folder / "model.safetensors")
            self.assertEqual({value for tensor in values.values() for value in tensor}, {80.0})
            self.assertEqual(job.descendants(train.pid), set())
            for process in ("frankfurt/server 0", "virginia/worker 1"):
                self.assertNotEqual(two.log(process), "", process)


if __name__ == "__main__":
    unittest.main()

"""The example of a module of one's own learns what it says, against a real server."""

import re
import subprocess
import unittest

import environment
import job


@unittest.skipUnless(environment.has_trainer, "this build has no libtorch")
class OwnModelTest(unittest.TestCase):
    def test_learns_a_sine(self):
        config = (environment.repository / "examples" / "own_model.yaml").read_text()
        with job.Job(regions=1, workers=1) as own:
            port = own.lan["frankfurt"]
            own.config.write_text(config.replace("7100", str(port)))
            server = own.server("frankfurt")
            done = subprocess.run([environment.build_dir / "own_model", "frankfurt", "127.0.0.1", str(port), "2", "0"],
                                  capture_output=True, text=True, timeout=job.DEADLINE)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses = [float(loss) for loss in re.findall(r"loss ([0-9.e-]+)", done.stdout)]
            self.assertGreater(losses[0], 0.1)
            self.assertLess(losses[-1], 0.02)
            job.finish(server)  # Ends by itself once its only worker is done.


if __name__ == "__main__":
    unittest.main()

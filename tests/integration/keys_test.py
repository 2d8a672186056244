"""`isthmus keys`: what is made, what is kept, who needs what."""

import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

import environment


class KeysTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def keys(self, *arguments):
        return subprocess.run([environment.isthmus, "keys", *arguments], cwd=self.folder, capture_output=True,
                              text=True, timeout=60, check=False)

    def test_makes_what_is_missing_and_keeps_the_rest(self):
        first = self.keys("--job", "demo", "--regions", "frankfurt,virginia")
        self.assertEqual(first.returncode, 0, first.stderr)
        for name in ("ca.pem", "frankfurt.pem", "frankfurt.key", "virginia.pem", "virginia.key"):
            self.assertIn(f"made  keys/{name}\n", first.stdout)
            self.assertTrue((self.folder / "keys" / name).is_file())
        self.assertIn("  virginia: keys/ca.pem keys/virginia.pem keys/virginia.key\n", first.stdout)
        self.assertEqual(stat.S_IMODE((self.folder / "keys/virginia.key").stat().st_mode), 0o600)

        before = (self.folder / "keys/frankfurt.pem").read_bytes()
        second = self.keys("--job", "demo", "--regions", "frankfurt", "--regions", "tokyo")
        self.assertEqual(second.returncode, 0, second.stderr)
        self.assertIn("kept  keys/frankfurt.pem\n", second.stdout)
        self.assertIn("made  keys/tokyo.key\n", second.stdout)
        self.assertEqual((self.folder / "keys/frankfurt.pem").read_bytes(), before)

        anew = self.keys("--job", "demo", "--regions", "frankfurt", "--new-ca")
        self.assertEqual(anew.returncode, 0, anew.stderr)
        self.assertIn("made  keys/ca.pem\n", anew.stdout)
        self.assertNotEqual((self.folder / "keys/frankfurt.pem").read_bytes(), before)

    def test_takes_the_job_from_its_config_and_lets_flags_win(self):
        (self.folder / "job.yaml").write_text(
            "job: demo\n"
            "regions:\n"
            "  - { name: frankfurt, workers: 1, servers: [ { lan: 127.0.0.1:7100, wan: 127.0.0.1:7200 } ] }\n"
            "  - { name: virginia, workers: 1, servers: [ { lan: 127.0.0.1:7110, wan: 127.0.0.1:7210 } ] }\n"
            "security: { directory: secrets }\n"
            "trainer: { model: synthetic, stop: { steps: 1 } }\n")
        done = self.keys("job.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("made  secrets/virginia.key\n", done.stdout)
        done = self.keys("job.yaml", "--directory", "elsewhere")
        self.assertIn("made  elsewhere/frankfurt.pem\n", done.stdout)

    def test_says_what_is_wrong(self):
        self.keys("--job", "demo", "--regions", "frankfurt")
        cases = [([], 4, "--job and --regions"), (["--job", "demo"], 4, "--job and --regions"),
                 (["no.yaml"], 4, "no.yaml"), (["--job", "other", "--regions", "frankfurt"], 4, "other")]
        for arguments, code, text in cases:
            done = self.keys(*arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertTrue(done.stderr.startswith("isthmus: "), done.stderr)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Servers and whole runs that go on from their checkpoints.

The synthetic model adds exactly 1 to every parameter in each step of a region, so a step that is lost or counted
twice shows in the model.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import unittest

import environment
import job

BSP = "{ policy: bsp, lease: 5s }"


def synthetic(steps, step_time="10ms"):
    return (f"{{ model: synthetic, synthetic: {{ tensors: 4, elements: 4096, gradient: -1, step_time: {step_time} }}, "
            f"stop: {{ steps: {steps} }} }}")


def values_of(path):
    return {value for tensor in job.read_safetensors(path).values() for value in tensor}


def checkpoints(run, server="frankfurt-0"):
    """Of a run in its usual folder, the newest last."""
    folder = run.run_folder / "checkpoints" / server
    found = folder.iterdir() if folder.exists() else []
    return sorted(one for one in found if re.fullmatch(r"\d+-step-\d+", one.name))  # Not half of one.


def step_of(checkpoint):
    return int(re.fullmatch(r"\d+-step-(\d+)", checkpoint.name)[1])


def a_job(steps, checkpoint, regions=1, **sections):
    sections = {"trainer": synthetic(steps), "commit": BSP, "checkpoint": checkpoint, **sections}
    return job.Job(regions=regions, emulate="rate: 100Mbps, rtt: 10ms" if regions > 1 else None, sections=sections)


class CheckpointsTest(unittest.TestCase):
    def test_a_run_whose_processes_all_died_is_resumed_to_the_same_bits(self):
        if not environment.has_trainer:
            self.skipTest("built without libtorch")
        sections = {
            "optimizer": "{ kind: adam, learning_rate: 0.001 }",
            "trainer": "{ model: mlp, batch: 32, stop: { steps: 150 } }",
            "commit": BSP,
            "checkpoint": "{ every: 20 steps }",
        }
        with job.Job(regions=1, emulate=None, sections=sections) as calm, \
                job.Job(regions=1, emulate=None, sections=sections) as killed:
            calm.train("--quiet")
            train = killed.start_train()
            job.wait_for(lambda: any(step_of(one) >= 40 for one in checkpoints(killed)), "a checkpoint of step 40")
            children = job.descendants(train.pid)
            for process in [train.pid, *children]:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            train.wait()
            self.assertFalse((killed.run_folder / "model.safetensors").exists())
            summary = job.finish(killed.start("train", "--json", config=f"--resume={killed.run_folder}"))
            self.assertEqual((summary["status"], summary["steps"]), ("ok", 150))
            self.assertEqual((calm.run_folder / "model.safetensors").read_bytes(),
                             (killed.run_folder / "model.safetensors").read_bytes())

    def test_a_run_that_has_ended_goes_on_with_more_steps(self):
        with a_job(steps=30, checkpoint="{ every: 1000 steps }", regions=2) as run:
            run.train("--quiet")
            self.assertEqual(values_of(run.run_folder / "model.safetensors"), {60.0})
            more = run.start("train", "--json", "--set", "trainer.stop.steps=50", config=f"--resume={run.run_folder}")
            summary = job.finish(more)
            self.assertEqual((summary["steps"], summary["max_replica_difference"]), (50, 0.0))
            self.assertIn("resumes at step 30", more.words)
            self.assertEqual(values_of(run.run_folder / "model.safetensors"), {100.0})

    def test_a_killed_server_is_started_again_and_no_step_counts_twice(self):
        with a_job(steps=300, checkpoint="{ every: 10 steps }") as run:
            train = run.start_train()
            for step in (40, 120):
                run.wait_status(lambda status, step=step: status["step"] and status["step"] >= step)
                job.kill(job.find_child(train, "server", "frankfurt"))
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"], summary["restarts"]), ("ok", 300, 2))
            self.assertIn("frankfurt/server 0 is started again", train.words)
            for value in values_of(run.run_folder / "model.safetensors"):
                self.assertLessEqual(value, 300.0)
                self.assertGreaterEqual(value, 200.0)  # Twice what came after a checkpoint is lost.

    def test_a_server_that_is_told_to_end_loses_nothing(self):
        with a_job(steps=200, checkpoint="{ every: 1h }") as run:
            server = run.server("frankfurt", "--hold")
            workers = [run.worker("frankfurt", index, "--save", run.folder / f"model-{index}") for index in (0, 1)]
            run.wait_status(lambda status: status["step"] and status["step"] >= 40)
            server.terminate()
            self.assertIn("stopped by a signal", server.communicate(timeout=job.DEADLINE)[1])
            again = run.server("frankfurt", "--hold")
            for worker in workers:
                job.finish(worker)
            self.assertEqual(values_of(run.folder / "model-0"), {200.0})
            again.terminate()
            self.assertIn("goes on from checkpoint", again.communicate(timeout=job.DEADLINE)[1])

    def test_a_torn_checkpoint_gives_way_to_the_one_before_it(self):
        with a_job(steps=100, checkpoint="{ every: 20 steps }") as run:
            run.train("--quiet")
            newest, before = checkpoints(run)[-1], checkpoints(run)[-2]
            with open(newest / "shard-1.safetensors", "r+b") as file:
                file.truncate(5000)
            resumed = run.start("train", "--json", "--set", "trainer.stop.steps=120",
                                config=f"--resume={run.run_folder}")
            self.assertEqual(job.finish(resumed)["steps"], 120)
            log = run.log("frankfurt/server 0")
            self.assertRegex(log, rf"{newest.name} is damaged: shard-1.safetensors has 5000 bytes instead of \d+")
            self.assertIn(f"goes on from checkpoint {before}", log)

    def test_where_no_checkpoint_is_sound_nothing_begins_anew(self):
        with a_job(steps=40, checkpoint="{ every: 20 steps }") as run:
            run.train("--quiet")
            for checkpoint in checkpoints(run):
                (checkpoint / "shard-0.safetensors").write_bytes(b"")
            resumed = run.start("train", "--json", config=f"--resume={run.run_folder}")
            job.finish(resumed, expect=1)
            self.assertIn("holds checkpoints, but none is sound", resumed.words)

    def test_a_full_disk_is_said_and_training_goes_on(self):
        unshare = shutil.which("unshare")
        if unshare is None:
            self.skipTest("unshare is not installed")
        with a_job(steps=100, checkpoint="{ every: 20 steps, directory: disk }") as run:
            (run.folder / "disk").mkdir()
            # One checkpoint is 64 KiB of values and a little more: two do not fit.
            script = "mount -t tmpfs -o size=128k none disk || exit 77; exec \"$@\""
            done = subprocess.run([unshare, "--map-root-user", "--mount", "sh", "-c", script, "sh",
                                   environment.isthmus, "train", run.config, "--run", run.run_folder, "--json"],
                                  cwd=run.folder, capture_output=True, text=True, timeout=job.DEADLINE, check=False)
            if done.returncode == 77 or "unshare: " in done.stderr:
                self.skipTest("mounting is not permitted: " + done.stderr)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(values_of(run.run_folder / "model.safetensors"), {100.0})
            self.assertRegex(run.log("frankfurt/server 0"),
                             r"the checkpoint of step \d+ could not be written: .*No space left on device; "
                             r"training goes on")

    def test_what_cannot_be_resumed_says_why(self):
        with a_job(steps=20, checkpoint="{ every: 10 steps }") as run:
            run.train("--quiet")
            taken = run.start("train", "--json", "--set", f"checkpoint.directory={run.run_folder / 'checkpoints'}")
            job.finish(taken, expect=4)
            self.assertIn("holds checkpoints of another run", taken.words)
            other = run.start("train", "--set", "optimizer.kind=adam", config=f"--resume={run.run_folder}")
            other.communicate(timeout=job.DEADLINE)
            self.assertEqual(other.returncode, 4)
            self.assertIn("does not fit: it is of optimizer sgd, and this is adam", run.log("frankfurt/server 0"))
            shutil.rmtree(run.run_folder / "checkpoints" / "frankfurt-0")
            gone = run.start("train", config=f"--resume={run.run_folder}")
            self.assertIn("no checkpoint is in", gone.communicate(timeout=job.DEADLINE)[1])
            self.assertEqual(gone.returncode, 4)

    def test_a_folder_that_cannot_be_made_is_named(self):
        with a_job(steps=20, checkpoint="{ every: 10 steps, directory: file/checkpoints }") as run:
            pathlib.Path(run.folder / "file").write_text("")
            train = run.start_train()
            job.finish(train, expect=4)
            self.assertRegex(train.words, r"file/checkpoints/frankfurt-0: cannot be made: Not a directory")


if __name__ == "__main__":
    unittest.main()

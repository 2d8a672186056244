"""What fails while a job runs: workers, servers, a region that freezes, NaN, and `train` itself.

The synthetic model adds exactly 1 to every parameter in each step of each region, so that what was lost or
counted twice shows in the model.
"""

import os
import random
import re
import select
import signal
import subprocess
import time
import unittest

import environment
import job

ENDED_WITHIN = 5.0  # Seconds from a signal to the end of `train`: promised, so measured.
STARTS = 20


def trainer(steps, step_time="20ms", more=""):
    return (f"{{ model: synthetic, synthetic: {{ tensors: 4, elements: 4096, gradient: -1, step_time: {step_time}"
            f"{more} }}, stop: {{ steps: {steps} }} }}")


def a_job(steps, step_time="20ms", more="", **sections):
    sections = {"trainer": trainer(steps, step_time, more), "commit": "{ policy: bsp, lease: 1s }", **sections}
    return job.Job(emulate="rate: 100Mbps, rtt: 10ms", sections=sections)


def step_of(status, region):
    """None while nobody of the region answers."""
    return next(entry["step"] for entry in status["regions"] if entry["name"] == region)


def values_of(run):
    return {value for tensor in job.read_safetensors(run.run_folder / "model.safetensors").values()
            for value in tensor}


class FaultsTest(unittest.TestCase):
    def test_a_killed_worker_is_reported_and_the_others_go_on(self):
        with a_job(steps=200) as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            job.kill(job.find_child(train, "worker", "virginia", "1"))
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"], summary["workers_lost"]), ("ok", 200, 1))
            self.assertEqual(values_of(run), {400.0})
            self.assertIn("virginia/worker 1 ended: killed by signal 9", train.words)
            self.assertRegex(train.words, r"  \| .*joined at step 0")  # The last lines of its log.
            self.assertIn("virginia-worker-1.log", train.words)

    def test_a_killed_worker_that_is_started_again_joins_at_the_slowest_living_step(self):
        with a_job(steps=300) as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            job.kill(job.find_child(train, "worker", "frankfurt", "1"))
            again = run.worker("frankfurt", 1, config=run.run_folder / "config.yaml")
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"], summary["workers_lost"]), ("ok", 300, 1))
            job.finish(again)
            joined = re.search(r"joined at step (\d+)", again.words)
            self.assertIsNotNone(joined, again.words)
            self.assertGreaterEqual(int(joined[1]), 20)
            self.assertIn("finished at step 300", again.words)
            self.assertEqual(values_of(run), {600.0})

    def test_nobody_passes_the_hard_bound_while_a_region_is_frozen(self):
        hard, steps = 60, 400
        sync = f"{{ strategy: outer, every: 4 steps, weight: undivided, staleness: {{ hard: {hard} steps }} }}"
        with a_job(steps=steps, sync=sync, commit="{ policy: bsp, lease: 60s }",
                   links="{ silence: 2s, emulate: { rate: 100Mbps, rtt: 10ms } }",
                   limits="{ operation_timeout: 60s }") as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            # First its workers: where its clock stands then can still be asked.
            frozen = [job.find_child(train, "worker", "virginia", str(worker)) for worker in (0, 1)]
            for pid in frozen:
                job.kill(pid, signal.SIGSTOP)
            seen = []

            def settled(status):
                seen.append(step_of(status, "virginia"))
                return seen[-1] is not None and len(seen) > 2 and seen[-1] == seen[-2] == seen[-3]

            stands_at = step_of(run.wait_status(settled), "virginia")
            frozen.append(job.find_child(train, "server", "virginia"))
            job.kill(frozen[-1], signal.SIGSTOP)
            until = time.monotonic() + 10  # As long as the fault lasts, not a wait for anything.
            highest, halted = 0, False
            while time.monotonic() < until:
                status = run.status()
                if status and step_of(status, "frankfurt") is not None:
                    highest = max(highest, step_of(status, "frankfurt"))
                    halted = halted or any(r["halted"] for r in status["regions"] if r["name"] == "frankfurt")
                self.assertLessEqual(highest - stands_at, hard)
            self.assertTrue(halted)
            self.assertGreater(highest, stands_at)
            for pid in frozen:
                job.kill(pid, signal.SIGCONT)
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"]), ("ok", steps))
            self.assertEqual((summary["workers_lost"], summary["max_replica_difference"]), (0, 0.0))
            self.assertEqual(values_of(run), {2.0 * steps})
            self.assertIn("is down", run.log("frankfurt/server 0"))

    def test_nan_is_refused_counted_and_reported_by_name(self):
        with a_job(steps=60, step_time="5ms", more=", nan_at_step: 30") as run:
            train = run.start_train()
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"], summary["workers_lost"]), ("ok", 60, 0))
            # What the worker pushed in that step went to two shards, a message each.
            self.assertEqual(summary["refused_not_finite"], 2)
            self.assertRegex(run.log("frankfurt/server 0"),
                             r"refused a contribution: worker 0 of region frankfurt, step 29: .*not finite")
            self.assertIn("not finite", run.log("frankfurt/worker 0"))
            self.assertNotIn("refused", run.log("virginia/server 0"))
            # The other worker's gradient was that step's mean.
            self.assertEqual(values_of(run), {120.0})

    def test_a_killed_evaluator_is_started_again(self):
        with a_job(steps=150) as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            job.kill(job.find_child(train, "evaluate"))
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"]), ("ok", 150))
            self.assertIn("evaluator ended: killed by signal 9", train.words)
            self.assertEqual(values_of(run), {300.0})

    def test_a_diverged_model_ends_the_job_with_the_tensors_name(self):
        # Every step multiplies the parameters by about -1000.
        with a_job(steps=100000, optimizer="{ kind: sgd, learning_rate: 1000, weight_decay: 1 }") as run:
            train = run.start_train()
            summary = job.finish(train, expect=1)
            self.assertEqual(summary["status"], "failed")
            self.assertRegex(train.words, "training has diverged: tensor '.*' is no longer finite after step")

    def test_a_home_that_restarts_without_its_state_ends_the_job(self):
        with a_job(steps=100000, links="{ silence: 2s }", security="{ plaintext: true }") as run:
            servers = {name: run.server(name) for name in run.names}
            for name in run.names:
                for worker in (0, 1):
                    run.worker(name, worker)
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            servers["virginia"].kill()
            again = run.server("virginia")
            job.finish(servers["frankfurt"], expect=1)
            self.assertIn("region virginia, server 0 has restarted without", servers["frankfurt"].words)
            again.kill()

    def test_a_killed_server_ends_the_job_with_its_name(self):
        with a_job(steps=100000) as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            everybody = job.descendants(train.pid)
            job.kill(job.find_child(train, "server", "virginia"))
            summary = job.finish(train, expect=1)
            self.assertEqual(summary["status"], "failed")
            self.assertIn("virginia/server 0 ended: killed by signal 9", train.words)
            self.assertRegex(train.words, r"  \| .*link to region frankfurt is up")
            self.assertEqual([pid for pid in everybody if job.alive(pid)], [])

    def test_no_orphan_when_train_itself_is_killed(self):
        with a_job(steps=100000) as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            everybody = job.descendants(train.pid)
            self.assertEqual(len(everybody), 2 + 4 + 1)  # Servers, workers, the evaluator.
            train.kill()
            job.wait_for(lambda: not any(job.alive(pid) for pid in everybody), "the end of all processes")

    def test_signals_end_everything_within_five_seconds(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number), a_job(steps=100000) as run:
                train = run.start_train()
                run.wait_status(lambda status: status["step"] and status["step"] >= 20)
                everybody = job.descendants(train.pid)
                begin = time.monotonic()
                train.send_signal(number)
                summary = job.finish(train, expect=1)
                self.assertLess(time.monotonic() - begin, ENDED_WITHIN)
                self.assertEqual(summary["status"], "stopped")
                self.assertEqual([pid for pid in everybody if job.alive(pid)], [])
                self.assertTrue((run.run_folder / "summary.json").exists())

    def test_twenty_starts_and_stops_leave_nothing(self):
        moments = random.Random(1)
        for start in range(STARTS):
            with self.subTest(start), a_job(steps=5, step_time="1ms") as run:
                scratch = run.folder / "tmp"
                scratch.mkdir()
                train = subprocess.Popen([environment.isthmus, "train", run.config, "--run", run.run_folder, "--json"],
                                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=run.folder,
                                         env={**os.environ, "TMPDIR": str(scratch)})
                stop = start % 2 == 1
                everybody = set()
                if stop:
                    # A moment chosen by chance, from before anything has started to the middle of the run.
                    until = time.monotonic() + moments.uniform(0, 0.6)
                    while (left := until - time.monotonic()) > 0:
                        everybody |= job.descendants(train.pid)
                        select.select([], [], [], min(left, 0.02))
                    train.send_signal(signal.SIGINT)
                try:
                    # Before it could listen for signals, one ends it like any program.
                    summary = job.finish(train, expect=None)
                finally:
                    if train.poll() is None:
                        train.kill()
                        train.communicate()
                codes = {0, 1, -signal.SIGINT} if stop else {0}
                self.assertIn(train.returncode, codes, train.words)
                if summary:
                    self.assertEqual(summary["status"], "ok" if train.returncode == 0 else "stopped", train.words)
                job.wait_for(lambda: not any(job.alive(pid) for pid in everybody), "the end of all processes")
                self.assertEqual(list(scratch.iterdir()), [])
                self.assertLessEqual({path.name for path in run.folder.iterdir()}, {"job.yaml", "keys", "run", "tmp"})


if __name__ == "__main__":
    unittest.main()

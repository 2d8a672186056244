"""Two regions in which random processes are killed, one after the other, and started again.

    python3 tests/integration/chaos_test.py    through run.py or ctest; KILLS=40 PERIOD=3 for a long one (scripts/chaos)
"""

import os
import random
import signal
import subprocess
import unittest

import environment
import job

KILLS = int(os.environ.get("KILLS", "10"))
PERIOD = float(os.environ.get("PERIOD", "2"))  # Seconds between two.
# A step of the small network takes some 8 ms on two cores, and longer while everybody comes back.
STEPS = max(1500, int(KILLS * PERIOD * 110))


def kill_and_wait(train, kills, period, choose):
    """Kills servers and workers of a running train until it has had enough; gives how many died."""
    killed = 0
    while killed < kills and train.poll() is None:
        children = [pid for pid in job.descendants(train.pid)
                    if {"server", "worker"} & set(job.command_of(pid)[1:2])]
        if not children:
            break
        try:
            os.kill(choose(sorted(children)), signal.SIGKILL)
            killed += 1
        except ProcessLookupError:
            continue
        try:
            train.wait(timeout=period)
        except subprocess.TimeoutExpired:
            pass
    return killed


class ChaosTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(os.environ.get("SEED", "1"))

    def chaos(self, run):
        """A run with its kills; gives its summary and how many died."""
        train = run.start_train("--quiet")
        run.wait_status(lambda status: status["step"] and status["step"] >= 1)
        killed = kill_and_wait(train, KILLS, PERIOD, self.random.choice)
        summary = job.finish(train)
        self.assertEqual(job.descendants(os.getpid()), set(), "orphans")
        return summary, killed

    def test_accuracy_survives(self):
        if not environment.has_trainer:
            self.skipTest("this build has no isthmus-trainer")
        sections = {
            "commit": "{ policy: bsp }",
            "optimizer": f"{{ kind: momentum, learning_rate: 0.05, "
                         f"schedule: {{ kind: cosine, steps: {STEPS}, final: 0% }} }}",
            "sync": "{ strategy: outer, every: 8 steps }",
            "compression": "{ lan: fp32, wan: { codec: topk, keep: 1% } }",
            "trainer": f"{{ model: mlp, batch: 64, evaluate_every: 0 steps, stop: {{ steps: {STEPS} }} }}",
        }
        with job.Job(sections=sections) as calm, \
                job.Job(sections={**sections, "checkpoint": "{ every: 2s }"}) as run:
            expected = calm.train("--quiet")["accuracy"]
            summary, killed = self.chaos(run)
            print(f"calm {expected:.4f}, with {killed} of {KILLS} kills {summary['accuracy']:.4f}, "
                  f"{summary['restarts']} restarts, {summary['seconds']:.0f} s")
            self.assertEqual((summary["status"], summary["steps"], summary["workers_lost"]), ("ok", STEPS, 0))
            self.assertGreaterEqual(summary["restarts"], killed - 1)  # The last may have been at its end anyway.
            self.assertGreaterEqual(killed, KILLS // 2)
            self.assertGreaterEqual(summary["accuracy"], expected - 0.01)
            self.assertEqual(summary["max_replica_difference"], 0.0)

    def test_nothing_counts_twice(self):
        """Each region adds 1 in each step, contributions add up: more than two steps' worth was counted twice."""
        steps = int(KILLS * PERIOD * 60)
        sections = {
            "commit": "{ policy: bsp }",
            "trainer": f"{{ model: synthetic, synthetic: {{ tensors: 4, elements: 4096, gradient: -1, "
                       f"step_time: 10ms }}, stop: {{ steps: {steps} }} }}",
            "checkpoint": "{ every: 1s }",
        }
        with job.Job(sections=sections) as run:
            summary, killed = self.chaos(run)
            tensors = job.read_safetensors(run.run_folder / "model.safetensors").values()
            values = {value for tensor in tensors for value in tensor}
            print(f"{killed} kills, {summary['restarts']} restarts: of {2 * steps} steps of two regions, slices hold "
                  f"{min(values):.0f} to {max(values):.0f}")
            self.assertEqual((summary["status"], summary["steps"]), ("ok", steps))
            self.assertLessEqual(max(values), 2 * steps)
            # What came after a checkpoint of one second may be lost each time, and no more.
            self.assertGreater(min(values), 2 * steps - killed * 2 * 400)
            self.assertEqual(summary["max_replica_difference"], 0.0)

    def test_a_kill_while_the_job_ends(self):
        """Workers that are done are gone, and a server's checkpoint may be from before that."""
        sections = {
            "commit": "{ policy: bsp }",
            "trainer": "{ model: synthetic, synthetic: { tensors: 4, elements: 16384, gradient: -1, step_time: 5ms }, "
                       "stop: { steps: 100 } }",
            "checkpoint": "{ every: 300ms }",
        }
        killed = 0
        for attempt in range(max(4, KILLS // 4)):
            # The last sync, of 256 KiB each way, takes half a second.
            with self.subTest(attempt=attempt), job.Job(sections=sections, emulate="rate: 4Mbps, rtt: 80ms") as run:
                train = run.start_train("--quiet")
                run.wait_status(lambda status: status["step"] and status["step"] >= 60)
                try:  # Some moment of the end: which does not matter, so that its length may not either.
                    train.wait(timeout=self.random.uniform(0, 1))
                except subprocess.TimeoutExpired:
                    pass
                killed += kill_and_wait(train, self.random.choice([1, 2]), 0.3, self.random.choice)
                summary = job.finish(train)
                self.assertEqual(summary["status"], "ok")
                self.assertEqual(summary["max_replica_difference"], 0.0)
        self.assertGreater(killed, 0)


if __name__ == "__main__":
    unittest.main()

"""A job whose regions could not agree does not end well, and says so."""

import pathlib
import signal
import unittest

import environment  # noqa: F401
import job


class LastSyncTest(unittest.TestCase):
    def test_a_region_out_of_reach_for_too_long_is_a_failed_job(self):
        # Once 1 MB has passed the link is gone for good, as far as the last sync's second of patience goes.
        links = ("{ heartbeat: 100ms, silence: 300ms, emulate: { rate: 20Mbps, rtt: 20ms, "
                 "outages: [ { after: 1MB, for: 60s, cut: true } ] } }")
        trainer = ("{ model: synthetic, synthetic: { tensors: 4, elements: 16384, gradient: -1, step_time: 10ms }, "
                   "stop: { steps: 120 } }")
        with job.Job(workers=1, sections={"links": links, "trainer": trainer,
                                          "commit": "{ policy: async }", "limits": "{ operation_timeout: 1s }"}) as two:
            # Twice the commits in one region, so that copies that were not joined differ.
            two.config.write_text(two.config.read_text().replace("virginia, workers: 1", "virginia, workers: 2"))
            train = two.start_train()
            summary = job.finish(train, expect=1)
            self.assertEqual(summary["status"], "failed")
            self.assertGreater(summary["max_replica_difference"], 0)
            self.assertIn("the last sync was done without", train.words)

    def test_a_server_that_stands_still_does_not_keep_the_job_from_ending(self):
        trainer = ("{ model: synthetic, synthetic: { tensors: 4, elements: 65536, gradient: -1, step_time: 10ms }, "
                   "stop: { steps: 60 } }")
        # The last sync takes a while: 1 MiB at 200 kbit/s.
        with job.Job(workers=1, emulate="rate: 200kbps, rtt: 10ms",
                     sections={"trainer": trainer, "limits": "{ operation_timeout: 2s }",
                               "compression": "{ lan: fp32, wan: { codec: topk, keep: 1% } }"}) as two:
            train = two.start_train()
            workers = [job.find_child(train, "worker", name) for name in two.names]
            server = job.find_child(train, "server", "virginia")
            for worker in workers:
                job.wait_for(lambda: not pathlib.Path(f"/proc/{worker}").exists(), "the end of a worker")
            job.kill(server, signal.SIGSTOP)
            summary = job.finish(train, expect=3)
            self.assertEqual(summary["status"], "failed")
            self.assertIn("a server has not answered", train.words)

    def test_a_server_whose_last_sync_missed_a_region_does_not_end_well(self):
        trainer = ("{ model: synthetic, synthetic: { tensors: 4, elements: 4096, gradient: -1, step_time: 10ms }, "
                   "stop: { steps: 100 } }")
        with job.Job(workers=1, emulate=None, sections={
                "trainer": trainer, "security": "{ plaintext: true }", "commit": "{ policy: bsp, lease: 1s }",
                "links": "{ heartbeat: 100ms, silence: 300ms }", "limits": "{ operation_timeout: 1s }"}) as two:
            servers = {name: two.server(name) for name in two.names}
            workers = {name: two.worker(name, 0) for name in two.names}
            two.wait_status(lambda status: status["step"] and status["step"] >= 20)
            servers["virginia"].kill()
            job.finish(workers["frankfurt"])
            job.finish(servers["frankfurt"], expect=1)
            self.assertIn("the last sync was done without virginia", servers["frankfurt"].words)


if __name__ == "__main__":
    unittest.main()

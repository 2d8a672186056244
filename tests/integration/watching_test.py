"""What a running server answers to those who watch it over HTTP."""

import json
import re
import unittest
import urllib.error
import urllib.request

import environment  # noqa: F401
import job

TRAINER = ("{ model: synthetic, synthetic: { tensors: 4, elements: 4096, gradient: -1, step_time: 5ms }, "
           "stop: { steps: 400 } }")


def get(address, path):
    """(status, body) of a GET; None while nobody listens."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=job.DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except urllib.error.URLError:
        return None


def value(text, name, **labels):
    """The sum of the samples of a metric that have these labels."""
    total, found = 0.0, False
    for line in text.splitlines():
        match = re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line)
        if match and all(f'{key}="{wanted}"' in (match[1] or "") for key, wanted in labels.items()):
            total, found = total + float(match[2]), True
    return total if found else None


class WatchingTest(unittest.TestCase):
    def watched(self):
        two = job.Job(emulate=None, sections={"trainer": TRAINER, "security": "{ plaintext: true }"})
        addresses = {name: f"127.0.0.1:{job.free_ports(1)}" for name in two.names}
        text = two.config.read_text()
        for name, address in addresses.items():
            text = text.replace(f"lan: 127.0.0.1:{two.lan[name]},", f"lan: 127.0.0.1:{two.lan[name]}, http: {address},")
        two.config.write_text(text)
        return two, addresses

    def test_metrics_and_health_of_a_running_job(self):
        two, addresses = self.watched()
        with two:
            train = two.start_train("--quiet")
            virginia = addresses["virginia"]
            step = job.wait_for(lambda: value((get(virginia, "/metrics") or (0, ""))[1], "isthmus_step", shard=1),
                                "a step")
            text = get(virginia, "/metrics")[1]
            self.assertGreaterEqual(value(text, "isthmus_step", shard=1), step)
            self.assertEqual(value(text, "isthmus_worker_living", region="virginia"), 2)
            self.assertGreater(value(text, "isthmus_worker_seconds_total", part="compute"), 0)
            self.assertEqual(value(text, "isthmus_link_up", peer_region="frankfurt"), 1)
            self.assertGreater(value(text, "process_resident_memory_bytes"), 1 << 20)
            code, health = get(addresses["frankfurt"], "/healthz")
            self.assertEqual((code, json.loads(health)["status"]), (200, "ok"), health)
            self.assertEqual(get(virginia, "/secrets")[0], 404)
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["steps"]), ("ok", 400))
            self.assertGreater(summary["exposed_communication"], 0)
            self.assertLess(summary["exposed_communication"], 1)
            self.assertIsNone(get(virginia, "/healthz"), "it ends with its server")

    def test_an_address_that_is_taken_is_named(self):
        two, addresses = self.watched()
        with two:
            first = two.server("virginia")
            job.wait_for(lambda: get(addresses["virginia"], "/healthz"), "an answer")
            taken = addresses["virginia"].replace("127.0.0.1", "0.0.0.0")  # Not the same to the config.
            moved = two.config.read_text().replace(addresses["frankfurt"], taken)
            other = two.folder / "other.yaml"
            other.write_text(moved)
            second = two.server("frankfurt", config=other)
            job.finish(second, expect=2)
            self.assertIn(f"http {taken}", second.words)
            self.assertIsNone(first.poll())


if __name__ == "__main__":
    unittest.main()

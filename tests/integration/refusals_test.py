"""Who and what is kept out: strangers, wrong configs, absurd bytes; and what the machine lacks.

Each is refused with words that name the thing, and an exit code; nobody else is disturbed.
"""

import shutil
import socket
import struct
import subprocess
import unittest

import environment
import job

TRAINER = ("{ model: synthetic, synthetic: { tensors: 4, elements: 4096, gradient: -1, step_time: 20ms }, "
           "stop: { steps: 200 } }")
REFUSED = 2        # Exit codes.
BAD_CONFIG = 4
KIND_HELLO, KIND_REFUSE, KIND_LINK_HELLO = 1, 3, 32


def a_job(**sections):
    return job.Job(emulate="", workers=1, sections={"trainer": TRAINER, "limits": "{ operation_timeout: 10s }",
                                                    **sections})


def variant(run, old, new):
    """The job's config with something else in it, beside it."""
    text = run.config.read_text()
    assert old in text, old
    path = run.folder / "variant.yaml"
    path.write_text(text.replace(old, new))
    return path


def header(version=1, kind=KIND_HELLO, payload_bytes=0):
    return struct.pack("<4sBBHIIQQ", b"ISHM", version, kind, 0, 0, 0, payload_bytes, 0)


def read_all(connection):
    """Until the other side closes."""
    connection.settimeout(job.DEADLINE)
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


class Zmtp:
    """A ZeroMQ DEALER made by hand (ZMTP 3.0, NULL), so that it can say what no library would."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=job.DEADLINE)
        self.socket.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32))
        self._read(64)
        ready = b"\x05READY" + b"\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"
        self.socket.sendall(bytes([4, len(ready)]) + ready)
        _, size = self._read(2)
        self._read(size)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _read(self, size):
        got = b""
        while len(got) < size:
            part = self.socket.recv(size - len(got))
            if not part:
                raise ConnectionError("closed")
            got += part
        return got

    def send(self, part):
        self.socket.sendall(bytes([0, len(part)]) + part)

    def announce(self, size):
        """The length of a part that never comes."""
        self.socket.sendall(b"\x02" + struct.pack(">Q", size))


class WrongPeersTest(unittest.TestCase):
    def make_keys(self, run, *arguments):
        done = subprocess.run([environment.isthmus, "keys", run.config, *arguments], cwd=run.folder,
                              capture_output=True, text=True, timeout=job.DEADLINE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def refused_server(self, *arguments, says, heard="stopped by a signal"):
        """Two servers, of which virginia is given something else than frankfurt, which hears of it."""
        with a_job() as run:
            self.make_keys(run)
            self.make_keys(run, "--directory", "other-keys")
            frankfurt = run.server("frankfurt")
            virginia = run.server("virginia", *arguments)
            job.finish(virginia, expect=REFUSED)
            self.assertRegex(virginia.words, r"(?m)^isthmus: .*" + says)
            # Who is dialled by somebody wrong waits for somebody right.
            self.assertEqual(frankfurt.poll(), None)
            frankfurt.terminate()
            job.finish(frankfurt, expect=1)
            self.assertRegex(frankfurt.words, heard)

    def test_a_server_with_another_ca(self):
        self.refused_server("--set", "security.directory=other-keys", says="frankfurt.*CA")

    def test_a_server_of_another_job(self):
        self.refused_server("--set", "job=other", says="'other'")

    def test_a_server_with_another_layout(self):
        difference = "layouts differ.*(4096.*5000|5000.*4096)"
        self.refused_server("--set", "trainer.synthetic.elements=5000", says=difference, heard=difference)

    def refused_worker(self, old, new, says):
        with a_job() as run:
            self.make_keys(run)
            run.server("frankfurt")
            worker = run.worker("frankfurt", 0, config=variant(run, old, new))
            job.finish(worker, expect=REFUSED)
            self.assertRegex(worker.words, says)

    def test_a_worker_of_another_job(self):
        self.refused_worker("job: test", "job: other", says="this is job 'test', not 'other'")

    def test_a_worker_with_another_table(self):
        self.refused_worker("elements: 4096", "elements: 5000", says="the layout differs.*(4096.*5000|5000.*4096)")

    def test_a_worker_at_another_regions_server(self):
        with a_job() as run:
            self.make_keys(run)
            run.server("frankfurt")
            here, there = run.lan["frankfurt"], run.lan["virginia"]
            swapped = variant(run, f"lan: 127.0.0.1:{here}", "lan: 127.0.0.1:1")
            swapped.write_text(swapped.read_text().replace(f"lan: 127.0.0.1:{there}", f"lan: 127.0.0.1:{here}"))
            worker = run.worker("virginia", 0, config=swapped)
            job.finish(worker, expect=REFUSED)
            self.assertIn("this is region 'frankfurt', not 'virginia'", worker.words)


class AbsurdBytesTest(unittest.TestCase):
    def test_bad_frames_are_refused_and_counted_and_training_goes_on(self):
        with a_job(security="{ plaintext: true }", links="{ emulate: { rate: 100Mbps, rtt: 10ms } }") as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 20)
            lan = run.lan["frankfurt"]
            wan = lan + 2
            for frame, reason in ((header(version=9, kind=KIND_LINK_HELLO), b"version 9"),
                                  (header(kind=KIND_LINK_HELLO, payload_bytes=1 << 60), b"limit"),
                                  (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"")):
                with socket.create_connection(("127.0.0.1", wan)) as stranger:
                    stranger.sendall(frame)
                    answer = read_all(stranger)
                    self.assertEqual((answer[:4], answer[5]), (b"ISHM", KIND_REFUSE))
                    self.assertIn(reason, answer[32:])
            with Zmtp(lan) as dealer:
                dealer.send(header(payload_bytes=1 << 60))
                dealer.send(header(version=9))
                counted = run.wait_status(lambda status: status["regions"][0]["shards"][0]["refused_malformed"] == 2)
                self.assertEqual(counted["regions"][0]["shards"][1]["refused_malformed"], 0)
                self.assertEqual(counted["regions"][1]["shards"][0]["refused_malformed"], 0)
            with Zmtp(lan) as dealer:
                dealer.announce(1 << 40)  # Over limits.message: libzmq closes before it allocates.
                self.assertEqual(read_all(dealer.socket), b"")
            summary = job.finish(train)
            self.assertEqual((summary["status"], summary["workers_lost"]), ("ok", 0))
            values = {value for tensor in job.read_safetensors(run.run_folder / "model.safetensors").values()
                      for value in tensor}
            self.assertEqual(values, {400.0})
            log = run.log("frankfurt/server 0")
            self.assertRegex(log, r"wan: refused a connection: .*version 9")
            self.assertRegex(log, r"shard 0: refused a message: .*1152921504606846976")

    def test_connections_that_say_little_disturb_nobody(self):
        """Nothing, half a greeting, half a frame that announces a gigabyte: at every port, and never ended."""
        with a_job() as run:
            train = run.start_train()
            run.wait_status(lambda status: status["step"] and status["step"] >= 1)
            # Two shards each, and the WAN's port of the region that is dialled.
            ports = [run.lan[name] + i for name in run.names for i in (0, 1)] + [run.lan["frankfurt"] + 2]
            sayings = [b"", b"\xff" + bytes(5), header(payload_bytes=1 << 30)[:20]]
            idle = []
            try:
                for port in ports:
                    for saying in sayings * 10:
                        connection = socket.create_connection(("127.0.0.1", port), timeout=job.DEADLINE)
                        connection.sendall(saying)
                        idle.append(connection)
                server = job.find_child(train, "server", run.names[0])
                resident = job.resident_bytes(server)
                summary = job.finish(train)
                self.assertEqual((summary["status"], summary["workers_lost"]), ("ok", 0))
                self.assertLess(resident, 256 << 20)
            finally:
                for connection in idle:
                    connection.close()


class MachineTest(unittest.TestCase):
    def test_a_port_in_use(self):
        for key, offset in (("lan", 0), ("lan", 1), ("wan", 2)):
            with self.subTest(key, offset=offset), a_job(security="{ plaintext: true }") as run:
                port = run.lan["frankfurt"] + offset
                with socket.create_server(("127.0.0.1", port)):
                    server = run.server("frankfurt")
                    job.finish(server, expect=REFUSED)
                    self.assertRegex(server.words, rf"isthmus: .*127\.0\.0\.1.*{port}|isthmus: .*{port}.*127\.0\.0\.1")
                    self.assertRegex(server.words, "in use")
                    train = run.start_train()
                    summary = job.finish(train, expect=REFUSED)
                    self.assertEqual(summary["status"], "failed")
                    self.assertIn(str(port), train.words)
                    self.assertEqual(job.descendants(train.pid), set())

    def test_no_data_set(self):
        if not environment.has_trainer:
            self.skipTest("this build has no isthmus-trainer")
        with a_job(trainer="{ model: mlp, data: { set: fashion-mnist, path: nothing-here }, stop: { steps: 10 } }",
                   optimizer="{ kind: sgd, learning_rate: 0.1 }") as run:
            (run.folder / "nothing-here").mkdir()
            train = run.start_train()
            job.finish(train, expect=BAD_CONFIG)
            self.assertIn("nothing-here", train.words)
            self.assertIn("dataset-fashion-mnist", train.words)
            self.assertFalse(run.run_folder.exists())

    def test_a_bad_config(self):
        with a_job() as run:
            bad = variant(run, "commit: { policy: bsp", "commit: { polcy: bsp")
            line = 1 + bad.read_text().splitlines().index(
                next(line for line in bad.read_text().splitlines() if "polcy" in line))
            for verb, arguments in (("train", ()), ("server", ("--region", "frankfurt")),
                                    ("worker", ("--region", "frankfurt"))):
                process = run.start(verb, *arguments, config=bad)
                job.finish(process, expect=BAD_CONFIG)
                self.assertRegex(process.words, rf"variant\.yaml:{line}: .*polcy")
                self.assertIn("policy", process.words.replace("polcy", ""))

    def train_on_a_small_disk(self, run, before=""):
        """`train` with its run folder on a disk of 64 KiB, in a mount namespace of its own."""
        unshare = shutil.which("unshare")
        disk = run.folder / "disk"
        disk.mkdir()
        script = f"mount -t tmpfs -o size=64k none '{disk}' || exit 77; {before} exec \"$@\""
        if not unshare:
            self.skipTest("unshare is not installed")
        done = subprocess.run([unshare, "--map-root-user", "--mount", "sh", "-c", script, "sh", environment.isthmus,
                               "train", run.config, "--run", disk / "run", "--json"],
                              cwd=run.folder, capture_output=True, text=True, timeout=job.DEADLINE, check=False)
        if done.returncode == 77 or "unshare: " in done.stderr:
            self.skipTest("mounting is not permitted: " + done.stderr)
        return done

    def test_a_disk_that_is_full_at_the_start(self):
        with a_job(security="{ plaintext: true }") as run:
            full = f"head -c 65536 /dev/zero > '{run.folder}/disk/full' 2>&1 || true;"
            done = self.train_on_a_small_disk(run, before=full)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"isthmus: cannot write .*/disk/run.*: No space left on device")

    def test_a_disk_too_small_for_the_model(self):
        with a_job(security="{ plaintext: true }") as run:
            done = self.train_on_a_small_disk(run)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, r"isthmus: .*model\.safetensors.*No space left on device")


if __name__ == "__main__":
    unittest.main()

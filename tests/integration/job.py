"""Jobs for integration tests: a config in a scratch folder on free ports, run by the real command.

Nothing here sleeps to synchronise: waits end when a condition holds or a deadline fails the test.
"""

import json
import os
import pathlib
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

import environment

DEADLINE = 240.0  # Seconds; a hang, not a speed.

# Below the ports that the system hands out to connections, which could take one between probe and bind.
_next_port = 20000 + (os.getpid() * 64) % 12000


def free_ports(count):
    """The first of `count` free consecutive TCP ports on 127.0.0.1."""
    global _next_port
    while True:
        first = _next_port
        _next_port = 20000 + (_next_port + count - 20000) % 12000
        sockets = []
        try:
            for port in range(first, first + count):
                probe = socket.socket()
                sockets.append(probe)
                probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
        finally:
            for probe in sockets:
                probe.close()


class Job:
    """A config of `regions` regions, written to a folder of its own that goes with the object."""

    def __init__(self, regions=2, workers=2, shards=2, emulate="rate: 10Mbps, rtt: 80ms", sections=(), job="test",
                 names=("frankfurt", "virginia", "tokyo", "sydney")):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="isthmus-test-"))
        self.names = names[:regions]
        self.lan = {}
        lines = [f"job: {job}", "seed: 1", "regions:"]
        for name in self.names:
            first = free_ports(shards + 1)
            self.lan[name] = first
            lines.append(f"  - {{ name: {name}, workers: {workers}, servers: [ {{ lan: 127.0.0.1:{first}, "
                         f"wan: 127.0.0.1:{first + shards}, shards: {shards} }} ] }}")
        defaults = {
            "commit": "{ policy: bsp, lease: 5s }",
            "optimizer": "{ kind: sgd, learning_rate: 1 }",
            "sync": "{ strategy: outer, every: 4 steps, weight: undivided, staleness: { hard: 100000 steps } }",
            "compression": "{ lan: fp32, wan: fp32 }",
            "links": f"{{ emulate: {{ {emulate} }} }}" if emulate else "{ streams: 1 }",
            "security": f"{{ directory: {self.folder / 'keys'} }}",
            "trainer": "{ model: synthetic, synthetic: { tensors: 4, elements: 16384, gradient: -1 }, "
                       "stop: { steps: 100 } }",
            "limits": "{ operation_timeout: 20s }",
        }
        defaults.update(dict(sections))
        lines += [f"{key}: {value}" for key, value in defaults.items() if value]
        self.config = self.folder / "job.yaml"
        self.config.write_text("\n".join(lines) + "\n")
        self.run_folder = self.folder / "run"
        self._processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self._processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, verb, *arguments, config=None):
        """Starts `isthmus VERB CONFIG ...`; output and errors are pipes."""
        process = subprocess.Popen([environment.isthmus, verb, config or self.config, *map(str, arguments)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        self._processes.append(process)
        return process

    def start_train(self, *arguments):
        return self.start("train", "--run", self.run_folder, "--json", *arguments)

    def train(self, *arguments, expect=0):
        """A whole run; gives its summary."""
        return finish(self.start_train(*arguments), expect)

    def server(self, region, *arguments, config=None):
        return self.start("server", "--region", region, *arguments, config=config)

    def worker(self, region, index, *arguments, config=None):
        return self.start("worker", "--region", region, "--worker", index, *arguments, config=config)

    def status(self):
        """What the servers say, as JSON; None while none answers."""
        result = subprocess.run([environment.isthmus, "status", self.config, "--json"], capture_output=True, text=True,
                                cwd=self.folder, timeout=DEADLINE)
        return json.loads(result.stdout) if result.returncode == 0 and result.stdout.strip() else None

    def wait_status(self, condition):
        """The first status that meets the condition."""
        return wait_for(lambda: (lambda status: status if status and condition(status) else None)(self.status()),
                        "a status that meets the condition")

    def log(self, process):
        path = self.run_folder / "logs" / (process.replace("/", "-").replace(" ", "-") + ".log")
        return path.read_text() if path.exists() else ""

    def metrics(self):
        return [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]


def wait_for(condition, what):
    """The first true value of condition(), asked for again and again until the deadline."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until:
        value = condition()
        if value:
            return value
        select.select([], [], [], 0.05)
    raise AssertionError(f"waited in vain for {what}")


def finish(process, expect=0):
    """Waits for a started command; gives its JSON output, if any. Fails with its words on another exit code."""
    out, err = process.communicate(timeout=DEADLINE)
    if expect is not None and process.returncode != expect:
        raise AssertionError(f"exit code {process.returncode}, not {expect}\n{out}\n{err}")
    process.words = err
    return json.loads(out) if out.strip().startswith("{") else None


def descendants(pid):
    """Living processes whose ancestor is `pid`."""
    parents = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(entry.name)] = int(fields[1])
    found, frontier = set(), {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def find_child(train, *words):
    """The process of a running train whose command line has all these words."""
    def look():
        for pid in descendants(train.pid):
            command = command_of(pid)
            if all(word in command for word in words):
                return pid
        return None
    return wait_for(look, f"a process with {words}")


def resident_bytes(pid):
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def alive(pid):
    return pathlib.Path(f"/proc/{pid}").exists() and " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()


def read_safetensors(path):
    """{name: tuple of floats} of an fp32 file."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = struct.unpack_from(f"<{(end - begin) // 4}f", data, 8 + length + begin)
    return tensors


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)

"""Every optimizer and a schedule with a warm-up, from the config to the model, in real processes.

Each worker's gradient is -1 everywhere, so its mean is too, and what the parameters become is what the reference in double
precision (tests/server/reference/optimizer.py) makes of the same.
"""

import math
import pathlib
import sys
import unittest

import environment  # noqa: F401
import job

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server" / "reference"))
import optimizer as reference  # noqa: E402  pylint: disable=wrong-import-position

STEPS, RATE, WARMUP, SCALE = 30, 0.125, 6, 12
TRAINER = ("{ model: synthetic, synthetic: { tensors: 2, elements: 3000, gradient: -1, step_time: 1ms }, "
           f"stop: {{ steps: {STEPS} }} }}")
SCHEDULE = f"learning_rate: {RATE}, schedule: {{ kind: inverse_sqrt, warmup: {WARMUP}, steps: {SCALE} }}"
RULES = {  # what the config says -> the rule
    "kind: sgd, weight_decay: 0.125": reference.sgd(0, 0.125),
    "kind: momentum, momentum: 0.75": reference.sgd(0.75, 0),
    "kind: nesterov, momentum: 0.75": reference.sgd(0.75, 0, True),
    "kind: adagrad, epsilon: 0.0625": reference.adagrad(0.0625, 0),
    "kind: adam": reference.adam(0.9, 0.999, 1e-8, 0, False),
    "kind: adamw, weight_decay: 0.125": reference.adam(0.9, 0.999, 1e-8, 0.125, True),
    "kind: yogi, epsilon: 0.0625": reference.yogi(0.9, 0.999, 0.0625, 0),
    "kind: lamb, weight_decay: 0.125": reference.lamb(0.9, 0.999, 1e-8, 0.125),
}


def rate_of(step):
    return RATE * ((step + 1) / WARMUP if step < WARMUP else math.sqrt(SCALE / (SCALE + step - WARMUP)))


def expected(rule):
    theta = [0.0] * len(reference.INITIAL)
    for step in range(STEPS):
        theta = rule(theta, [-1.0] * len(theta), rate_of(step), step + 1)
    return theta[0]


ELEMENTS = 2 * 3000
PLAIN = f"{{ kind: sgd, learning_rate: {RATE} }}"


def trained(shards=2, **sections):
    """The value that all parameters have in the end."""
    with job.Job(regions=1, workers=2, shards=shards, emulate="",
                 sections={"trainer": TRAINER, "sync": "", **sections}) as run:
        summary = run.train()
        tensors = job.read_safetensors(run.run_folder / "model.safetensors").values()
        values = {value for tensor in tensors for value in tensor}
    if summary["status"] != "ok" or len(values) != 1:
        raise AssertionError(f"{summary['status']}, values {sorted(values)[:5]}")
    return values.pop()


class OptimizersTest(unittest.TestCase):
    def test_each_does_what_its_rule_says(self):
        for text, rule in RULES.items():
            with self.subTest(text):
                self.assertAlmostEqual(trained(optimizer=f"{{ {text}, {SCHEDULE} }}"), expected(rule), delta=1e-4)

    def test_long_gradients_are_clipped(self):
        # Of length sqrt(6000) all together, and sqrt(3000) each of the two.
        for clip, length in (("{ norm: 3 }", 3 / math.sqrt(ELEMENTS)), ("{ tensor_norm: 3 }", 3 / math.sqrt(ELEMENTS / 2)),
                             ("{ norm: 100, tensor_norm: 60 }", 1)):
            with self.subTest(clip):
                value = trained(optimizer=f"{{ kind: sgd, learning_rate: {RATE}, clip: {clip} }}")
                self.assertAlmostEqual(value, STEPS * RATE * length, delta=1e-4)

    def test_late_gradients_count_less(self):
        # Two workers, each STEPS of RATE. What is late depends on the machine, so it is bounded from both sides; on
        # one shard it is the same for all tensors.
        whole = 2 * STEPS * RATE
        self.assertAlmostEqual(trained(optimizer=PLAIN, commit="{ policy: async }"), whole, delta=1e-4)
        weighted = trained(shards=1, optimizer=PLAIN, commit="{ policy: async, least_weight: 50% }")
        self.assertLessEqual(weighted, whole + 1e-4)
        self.assertGreaterEqual(weighted, whole / 2)
        for compensation in ("{}", "{ lambda: 2, adaptive: true }"):
            with self.subTest(compensation):
                value = trained(shards=1, optimizer=PLAIN, commit=f"{{ policy: ssp, compensation: {compensation} }}")
                # Moved on towards the minimum meanwhile: the gradient there is shorter, and never turned around.
                self.assertLessEqual(value, whole + 1e-4)
                self.assertGreater(value, 0)


if __name__ == "__main__":
    unittest.main()

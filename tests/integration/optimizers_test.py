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


class OptimizersTest(unittest.TestCase):
    def test_each_does_what_its_rule_says(self):
        for text, rule in RULES.items():
            with self.subTest(text), job.Job(regions=1, workers=2, emulate="", sections={
                    "trainer": TRAINER, "optimizer": f"{{ {text}, {SCHEDULE} }}", "sync": ""}) as run:
                self.assertEqual(run.train()["status"], "ok")
                tensors = job.read_safetensors(run.run_folder / "model.safetensors").values()
                values = {value for tensor in tensors for value in tensor}
                self.assertEqual(len(values), 1)
                self.assertAlmostEqual(values.pop(), expected(rule), delta=1e-4)


if __name__ == "__main__":
    unittest.main()

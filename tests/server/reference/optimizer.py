"""Writes optimizer.inc: what PyTorch's update rules give, computed here in double precision.

    python3 tests/server/reference/optimizer.py > tests/server/reference/optimizer.inc

The rules are written as PyTorch's documentation states them (torch.optim.SGD, Adagrad, Adam, AdamW), yogi and
lamb as their papers do, not as server/optimizer_*.cc write them. Gradients and initial values are exact in fp32.
"""

from math import sqrt

INITIAL = [1.0, -0.5, 0.25, 2.0]
GRADIENTS = [  # one row a commit
    [0.5, -0.25, 0.125, 1.0],
    [0.25, 0.75, -0.0625, 0.0],
    [-1.0, 0.5, 0.03125, -2.0],
    [0.0, -0.125, 0.0078125, 0.5],
    [2.0, 0.25, -0.5, -0.25],
    [0.125, -1.5, 0.25, 0.0],
]
RATES = [0.125, 0.125, 0.0625, 0.0625, 0.03125, 0.25]


def sgd(momentum, decay, nesterov=False):
    velocity = None

    def step(theta, gradient, rate, _):
        nonlocal velocity
        g = [x + decay * t for x, t in zip(gradient, theta)]
        if momentum:
            velocity = g if velocity is None else [momentum * b + x for b, x in zip(velocity, g)]
            g = [x + momentum * b for x, b in zip(g, velocity)] if nesterov else velocity
        return [t - rate * x for t, x in zip(theta, g)]

    return step


def adam(beta1, beta2, epsilon, decay, decoupled):
    first, second = [0.0] * len(INITIAL), [0.0] * len(INITIAL)

    def step(theta, gradient, rate, count):
        nonlocal first, second
        if decoupled:
            theta = [t - rate * decay * t for t in theta]
            g = gradient
        else:
            g = [x + decay * t for x, t in zip(gradient, theta)]
        first = [beta1 * m + (1 - beta1) * x for m, x in zip(first, g)]
        second = [beta2 * v + (1 - beta2) * x * x for v, x in zip(second, g)]
        first_hat = [m / (1 - beta1**count) for m in first]
        second_hat = [v / (1 - beta2**count) for v in second]
        return [t - rate * m / (sqrt(v) + epsilon) for t, m, v in zip(theta, first_hat, second_hat)]

    return step


def adagrad(epsilon, decay):
    total = [0.0] * len(INITIAL)

    def step(theta, gradient, rate, _):
        nonlocal total
        g = [x + decay * t for x, t in zip(gradient, theta)]
        total = [s + x * x for s, x in zip(total, g)]
        return [t - rate * x / (sqrt(s) + epsilon) for t, x, s in zip(theta, g, total)]

    return step


def yogi(beta1, beta2, epsilon, decay):
    first, second = [0.0] * len(INITIAL), [0.0] * len(INITIAL)

    def sign(x):
        return (x > 0) - (x < 0)

    def step(theta, gradient, rate, count):
        nonlocal first, second
        g = [x + decay * t for x, t in zip(gradient, theta)]
        first = [beta1 * m + (1 - beta1) * x for m, x in zip(first, g)]
        second = [v - (1 - beta2) * sign(v - x * x) * x * x for v, x in zip(second, g)]
        first_hat = [m / (1 - beta1**count) for m in first]
        second_hat = [v / (1 - beta2**count) for v in second]
        return [t - rate * m / (sqrt(v) + epsilon) for t, m, v in zip(theta, first_hat, second_hat)]

    return step


# All elements are one layer.
def lamb(beta1, beta2, epsilon, decay):
    first, second = [0.0] * len(INITIAL), [0.0] * len(INITIAL)

    def step(theta, gradient, rate, count):
        nonlocal first, second
        first = [beta1 * m + (1 - beta1) * x for m, x in zip(first, gradient)]
        second = [beta2 * v + (1 - beta2) * x * x for v, x in zip(second, gradient)]
        u = [m / (1 - beta1**count) / (sqrt(v / (1 - beta2**count)) + epsilon) + decay * t
             for t, m, v in zip(theta, first, second)]
        length, step_length = sqrt(sum(t * t for t in theta)), sqrt(sum(x * x for x in u))
        ratio = length / step_length if length and step_length else 1
        return [t - rate * ratio * x for t, x in zip(theta, u)]

    return step


CASES = [  # C++ fields, rule
    (".kind = kSgd", sgd(0, 0)),
    (".kind = kSgd, .weight_decay = 0.125f", sgd(0, 0.125)),
    (".kind = kMomentum, .momentum = 0.9f", sgd(0.9, 0)),
    (".kind = kMomentum, .momentum = 0.5f, .weight_decay = 0.125f", sgd(0.5, 0.125)),
    (".kind = kNesterov, .momentum = 0.9f", sgd(0.9, 0, True)),
    (".kind = kNesterov, .momentum = 0.5f, .weight_decay = 0.125f", sgd(0.5, 0.125, True)),
    (".kind = kAdagrad, .epsilon = 0.0625f", adagrad(0.0625, 0)),
    (".kind = kAdagrad, .weight_decay = 0.125f", adagrad(1e-8, 0.125)),
    (".kind = kAdam", adam(0.9, 0.999, 1e-8, 0, False)),
    (".kind = kAdam, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.0625f, .weight_decay = 0.125f",
     adam(0.5, 0.75, 0.0625, 0.125, False)),
    (".kind = kAdamw, .weight_decay = 0.125f", adam(0.9, 0.999, 1e-8, 0.125, True)),
    (".kind = kAdamw, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.0625f, .weight_decay = 0.5f",
     adam(0.5, 0.75, 0.0625, 0.5, True)),
    (".kind = kYogi, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.0625f", yogi(0.5, 0.75, 0.0625, 0)),
    (".kind = kYogi, .beta1 = 0.5f, .beta2 = 0.875f, .epsilon = 0.001953125f, .weight_decay = 0.125f",
     yogi(0.5, 0.875, 0.001953125, 0.125)),
    (".kind = kLamb, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.0625f", lamb(0.5, 0.75, 0.0625, 0)),
    (".kind = kLamb, .weight_decay = 0.125f", lamb(0.9, 0.999, 1e-8, 0.125)),
]


def row(values, form):
    return "{" + ", ".join(form % v for v in values) + "}"


def main():
    print("// Made by optimizer.py.")
    print(f"constexpr Row kInitial = {row(INITIAL, '%rf')};")
    print(f"constexpr std::array<Row, {len(GRADIENTS)}> kGradients = {{{{")
    print("".join(f"    {row(g, '%rf')},\n" for g in GRADIENTS) + "}};")
    print(f"constexpr std::array<float, {len(RATES)}> kRates = {row(RATES, '%rf')};")
    print("const Case kCases[] = {")
    for fields, rule in CASES:
        print(f"    {{{{{fields}}},\n     {{{{")
        theta = INITIAL
        for count, (gradient, rate) in enumerate(zip(GRADIENTS, RATES), 1):
            theta = rule(theta, gradient, rate, count)
            print(f"         {row(theta, '%.12f')},")
        print("     }}},")
    print("};")


if __name__ == "__main__":
    main()

"""What does epsilon cost?

DP-SGD over the records of three hospitals, with the noise that each budget needs. The accountant finds the noise before anybody
is asked.
"""

import hedgerow as hr
from hedgerow.privacy.accounting import calibrate
from hedgerow.report import Curve, Series

train, test = hr.data.load("digits").split(0.8, seed=0)
net = hr.learn.linear(64, 10)
budgets, scores = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0), []
for epsilon in budgets:
    noise = calibrate(epsilon, 1e-5, rounds=40, rate=0.1, sampling="records")
    federation = hr.simulate(train, hr.data.iid(parties=3), seed=0).protect(mechanism=hr.Gaussian(noise))
    program = hr.learn.dpsgd(federation, net, rounds=40, sampling_rate=0.1, batch_size=144, clip=1.0, learning_rate=2.0)
    scores.append(hr.learn.evaluate_on(test, net, hr.last(program).weights)["accuracy"])
    print(f"epsilon {epsilon:4}: noise multiplier {noise:.2f}")

picture = Curve(
    "Accuracy on test images after 40 steps",
    "epsilon per record",
    "accuracy",
    (Series("DP-SGD", budgets, tuple(scores)),),
    log="x",
)

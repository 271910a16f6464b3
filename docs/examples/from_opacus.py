import hedgerow as hr
from hedgerow.privacy.accounting import calibrate

table = hr.data.load("digits")
net = hr.learn.linear(64, 10)
noise = calibrate(3.0, 1e-5, rounds=60, rate=0.1, sampling="records")
print(f"noise multiplier {noise:.2f}")

everybody = hr.simulate(table, hr.data.iid(parties=1), seed=0)
everybody = everybody.protect(mechanism=hr.Gaussian(noise))
everybody = everybody.within(hr.Budget(epsilon=3.0, delta=1e-5, unit="record"))
state = hr.last(
    hr.learn.dpsgd(
        everybody,
        net,
        rounds=60,
        sampling_rate=0.1,
        batch_size=180,
        clip=1.0,
        learning_rate=2.0,
    )
)
spent = hr.privacy.epsilon(
    everybody.ledger.charges("record"),
    delta=1e-5,
    adjacency="add-remove",
    accountant="tightest",
)
found = hr.learn.evaluate_on(table, net, state.weights)
print(f"epsilon {spent:.2f}, accuracy {found['accuracy']:.1f}")

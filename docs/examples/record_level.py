import hedgerow as hr

table = hr.data.load("digits")
net = hr.learn.linear(64, 10)

# The server adds the noise: DP-SGD on the union of everybody's records.
hospitals = hr.simulate(table, hr.data.iid(parties=3), seed=0).protect(mechanism=hr.Gaussian(1.5))
state = hr.last(hr.learn.dpsgd(hospitals, net, rounds=40, sampling_rate=0.1, batch_size=180, clip=1.0, learning_rate=2.0))
spent = hr.privacy.epsilon(hospitals.ledger.charges("record"), delta=1e-5, adjacency="add-remove", accountant="rdp")
print(f"epsilon {spent:.2f}, accuracy {hr.learn.evaluate_on(table, net, state.weights)['accuracy']:.2f}")

# Each hospital adds its own noise, and stops when its own budget is spent.
hospitals = hr.simulate(table, hr.data.iid(parties=3), seed=0)
plan = {"noise_multiplier": 1.5, "sampling_rate": 0.1, "batch_size": 60, "steps": 5, "learning_rate": 2.0}
for state in hr.learn.local_dpsgd(hospitals, net, rounds=20, stop_at=[2.0, 3.0, 4.0], delta=1e-5, **plan):
    if state.round % 4 == 1:
        print(state.round, "rounds,", state.active, "parties", [f"{epsilon:.2f}" for epsilon in state.epsilons.values()])
print(f"accuracy {hr.learn.evaluate_on(table, net, state.weights)['accuracy']:.2f}")

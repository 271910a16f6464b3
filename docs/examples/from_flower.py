import hedgerow as hr

table = hr.data.load("digits")
skewed = hr.data.dirichlet_labels(parties=20, alpha=0.5)
parties = hr.simulate(table, partition=skewed, seed=0)
net = hr.learn.mlp(64, [32], 10)

for state in hr.learn.fedavg(
    parties,
    net,
    rounds=20,
    rate=0.5,
    epochs=2,
    batch_size=20,
    learning_rate=0.1,
):
    if state.round % 10 == 0:
        scores = hr.learn.evaluate(parties, net, state.weights)
        print(state.round, f"accuracy {scores['accuracy']:.1f}")

import hedgerow as hr

digits = hr.data.load("digits")
test, train = digits.split(0.2, seed=0)  # the server's and the parties' records
parties = hr.simulate(train, partition=hr.data.dirichlet_labels(parties=20, alpha=0.5), seed=0)
model = hr.learn.mlp(64, [32], 10)  # any torch.nn.Module

for state in hr.learn.fedavg(parties, model, rounds=20, rate=0.5, epochs=2, learning_rate=0.3):
    found = hr.learn.evaluate_on(test, model, state.weights)
    if found["accuracy"] > 0.9:
        break

print(f"accuracy {found['accuracy']:.3f} after {state.round} rounds")
trained = hr.learn.with_weights(model, state)

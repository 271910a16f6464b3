"""Eight people send gradients of one image each; the server makes pictures of what it sees, in the open and behind masks."""

import hedgerow as hr

digits = hr.data.load("digits").take(range(8))
truth = digits["image"] / 16
module = hr.learn.zoo.logistic((64,), 10)

for aggregation in (None, hr.crypto.SecAgg(largest=64.0)):
    federation = hr.simulate(digits, hr.data.of_sizes([1] * 8, shuffled=False), record_views=True)
    channel = federation.protect(aggregation=aggregation) if aggregation else federation
    hr.last(hr.learn.fedsgd(channel, module, rounds=1))
    view = hr.engines.view(federation, "server")
    found = hr.attacks.invert(view, module, digits.schema, by="classes", learning_rate=1.0)
    print(f"{found.records:g} records of {found.parties} parties in the sum, {found.recognised(truth)} recognised:")
    print("  ", found.psnr_against(truth).round(), "dB, labels", found.labels)

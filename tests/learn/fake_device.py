"""A device written in Python: tensors on it hide tensors of the CPU, and an operation on both kinds is an error, as on a GPU.

PyTorch's hooks for such backends (`torch.utils.backend_registration`) make it a device like any other, for autograd and `vmap`
too. It belongs to the process for good, so a test runs in a process of its own: `python fake_device.py`.
"""

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_map

NAME = "elsewhere"
seen: dict[str, int] = {}
"""How often each operation was computed there."""


held: dict[int, tuple[object, torch.Tensor]] = {}
"""Numbers of the device's tensors, by storage: autograd makes tensors anew from a storage that it kept."""


def there(value: torch.Tensor) -> torch.Tensor:
    """A tensor on the device with these numbers, laid out in order, as PyTorch is told of it."""
    value = value.contiguous()
    made = torch._C._acc.create_empty_tensor(tuple(value.shape), value.dtype)
    storage = made.untyped_storage()
    held[storage._cdata] = storage, value
    return made


def hidden(value: torch.Tensor) -> torch.Tensor | None:
    """The numbers of a tensor of the device; None for one of the CPU."""
    return held[value.untyped_storage()._cdata][1] if value.device.type == NAME else None


def computed(op, *args, **kwargs):
    """Any operation with a tensor of the device among its operands, or that makes one there."""
    seen[str(op)] = seen.get(str(op), 0) + 1
    if "_copy_from" in str(op):  # from one device to the other: source, then destination
        source, to = (value if hidden(value) is None else hidden(value) for value in args[:2])
        to.copy_(source)
        return args[1]
    mixed = []

    def given(value):
        if isinstance(value, torch.Tensor):
            own = hidden(value)
            if own is None:
                mixed.append(value)
            return value if own is None else own
        return torch.device("cpu") if isinstance(value, torch.device) and value.type == NAME else value

    own, named = tree_map(given, args), tree_map(given, kwargs)
    if any(value.ndim for value in mixed):
        raise RuntimeError(f"{op}: tensors on the cpu and on {NAME}")
    made = op(*own, **named)
    known = {id(hidden(value)): value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)}

    def taken(value):
        if not isinstance(value, torch.Tensor):
            return value
        return known[id(value)] if id(value) in known else there(value)

    return tree_map(taken, made)


def tree_leaves(args):
    found = []
    tree_map(found.append, args)
    return found


def install() -> None:
    backend_registration._setup_privateuseone_for_python_backend(NAME)
    global library
    library = torch.library.Library("_", "IMPL", "PrivateUse1")
    library.fallback(computed)


def main() -> None:
    """Train on the CPU and on the device; print the largest differences, and how many operations the device did, as JSON."""
    import json

    import numpy as np

    import hedgerow as hr
    from hedgerow.learn import Task, ditto, evaluate, fedavg, feddyn, fedsgd, mlp, scaffold, subfedavg, use_device
    from hedgerow.store import last

    class Layered(torch.nn.Module):
        """With a buffer, a fixed layer and a norm."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("middle", torch.full((64,), 0.5))
            self.front, self.norm, self.back = torch.nn.Linear(64, 7), torch.nn.LayerNorm(7), torch.nn.Linear(7, 10)
            self.front.requires_grad_(False)

        def forward(self, x):
            return self.back(torch.tanh(self.norm(self.front(x.flatten(1) - self.middle))))

    install()
    torch.manual_seed(0)
    layered, net = Layered(), mlp(64, [6], 10)
    local = {"rounds": 2, "learning_rate": 0.1, "batch_size": 20}

    def federation(parties=3):
        return hr.simulate(hr.data.load("digits").take(range(90)), hr.data.iid(parties=parties), seed=0)

    runs = {
        "stacked": lambda fed: fedavg(fed, net, **local),
        "one by one": lambda fed: fedavg(hr.engines.on(fed, hr.Loop()), net, **local),
        "a rule": lambda fed: fedavg(fed, net, solver="adam", **local),
        "an optimiser": lambda fed: fedavg(fed, net, solver="AdamW", **local),
        "layers": lambda fed: fedavg(fed, layered, **local),
        "noise": lambda fed: fedavg(fed.protect(clip=hr.l2(1.0), mechanism=hr.Gaussian(1.0)), net, **local),
        "gradients": lambda fed: fedsgd(fed, net, rounds=2),
        "control variates": lambda fed: scaffold(fed, net, option="I", **local),
        "corrections": lambda fed: feddyn(fed, net, **local),
        "masks": lambda fed: subfedavg(fed, net, **local),
        "personal": lambda fed: ditto(fed, net, **local),
        "a task": lambda fed: fedavg(fed, net, task=Task(loss="cross_entropy"), **local),
        "records": lambda fed: hr.learn.dpsgd(
            fed.protect(mechanism=hr.Gaussian(1.0)), net, rounds=1, sampling_rate=0.5, batch_size=9
        ),
    }
    found = {}
    for name, run in runs.items():
        ends, scores = [], []
        for place in ("cpu", NAME):
            use_device(place)
            seen.clear()
            fed = federation()
            state = last(run(fed))
            assert all(type(value) is np.ndarray and value.dtype == np.float32 for value in state.weights.values())
            done = sum(seen.values())
            scores.append(evaluate(fed, layered if name == "layers" else net, state)["loss"])
            ends.append(state.weights)
        apart = max(float(np.abs(value - ends[1][key]).max()) for key, value in ends[0].items())
        found[name] = {"apart": apart, "operations": done, "scores apart": abs(scores[0] - scores[1])}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

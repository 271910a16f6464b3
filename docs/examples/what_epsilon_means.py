from hedgerow.market import (
    advantage,
    database_leakage,
    epsilon_for_posterior,
    feasible_epsilons,
    leakage,
    meaning,
    posterior_of_worlds,
    utility,
    utility_of_count,
)
from hedgerow.market.epsilon import channels

m = meaning(1.0, delta=1e-5)
print("\n".join(m.sentences[:4]))

print()
print("epsilon  1 % becomes  an attack guesses of 100  bits  a count is within")
for epsilon in (0.1, 0.5, 1.0, 3.0, 10.0):
    m = meaning(epsilon)
    told = f"{100 * m.beliefs[0].most:11.2f}  {50 * (1 + m.advantage):24.1f}  {m.presence.bits:4.2f}"
    print(f"{epsilon:7g}  {told}  {m.count_error:17d}")

print()
response = channels.randomised_response(3, 1.2)
print(f"randomised response, three people: {channels.capacity(channels.on_each(response, 3)):.4f} bits together,")
print(f"  which is the bound of (2.2): {database_leakage(1.2, values=3, people=3):.4f}, {leakage(1.2, 3):.4f} each")
count = channels.truncated_geometric(10, 1.0)
print(f"a count of ten people: {channels.capacity(count):.4f} of {database_leakage(1.0, 2, people=10):.4f} bits")

print()
print(
    f"(2.3) of a ring of seven: {utility(0.7, distance=3, border=2):.4f}; a count from 0 to 6: {utility_of_count(0.7, 6):.4f}"
)
print(f"one of four worlds is believed in at most {posterior_of_worlds(4, 1.0):.4f}")
print(f"one of ten stays below one half up to epsilon {epsilon_for_posterior(10, 0.5):.4f}")
paid = feasible_epsilons(10_000, budget=1000.0, harm=10.0, error=0.05, failure=0.05)
print(f"accurate from epsilon {paid.least:.6f} on, paid up to {paid.most:.6f}")
print(f"advantage of any attack at epsilon 1: {advantage(1.0):.6f}")

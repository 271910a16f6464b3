import numpy as np

from hedgerow.market import LearnerTerms, OwnerTerms, SumNoise, best_price
from hedgerow.market.games import SeparableGame, equilibria, leakage_game, paths, uniqueness, utility_game

settings = {"people": 10, "values": 5, "cap": 3.0}  # u, v and the largest epsilon; the thesis names none
starts = np.array([[0.2, 1.0, 2.5], [2.9, 0.05, 0.05], [0.01, 0.01, 0.01]])
mended = leakage_game((1, 2, 4), **settings)  # (4.1), owners of three sizes
print("after 1, 2 and all rounds, first start:", *paths(mended, starts)[[1, 2, -1], 0].round(3).tolist())
print("all starts end together:", bool(np.ptp(paths(mended, starts)[-1], axis=0).max() < 1e-9))

for name, game in {
    "(4.1) mended": mended,
    "(4.1) printed, u 2": leakage_game((1, 2, 4), people=2, values=5, cap=3.0, form="printed"),
    "(4.2) mended": utility_game((1, 2, 4), distance=3, border=2, cap=3.0),
    "(4.2) printed": utility_game((1, 2, 4), distance=3, border=2, cap=3.0, form="printed"),
}.items():
    for one in equilibria(game, starts, n_starts=4):
        print(f"{name:20}{one.kind:19}{'stable' if one.stable else 'unstable':10}{one.epsilons.round(4)}")
    print(f"{'':20}Rosen's condition held at {uniqueness(game).share:.0%} of 400 profiles")

game = SeparableGame(benefits=(50, 50, 50), costs=(1, 0.2, 5), kappa=1e8, records=3e4)
print("dominant:", game.equilibrium().round(4), "optimum:", game.optimum().round(4), f"anarchy: {game.anarchy:.4f}")
print("transfers that make the optimum dominant:", game.payments(game.optimum()).round(4))

owners = OwnerTerms(
    records=np.array([40000, 20000, 800, 30000, 5000]),
    cost=np.array([1.0, 1.5, 9.0, 4.0, 0.5]),
    lowest=np.array([0.2, 0.2, 0.05, 0.1, 0.5]),
    highest=np.array([10.0, 10.0, 0.2, 1.0, 10.0]),
)
noise = SumNoise("gaussian", horizon=100, radius=8.32, neighbours="replace-one", delta=1e-6)
learner = LearnerTerms(noise, sampling=0.49, amplification=0.378, bias=7.5e-5, least=0.049, value=4e5)
posted = best_price(owners, learner)
print(f"price {posted.price:.5f}, paid {posted.paid:.2f}, relative fitness {posted.relative_fitness:.5f}")
print("epsilons:", posted.epsilons.round(3), "surplus:", posted.surplus.round(2))
print("gained by deviating: at most", "1e-6" if posted.deviation_gains.max() <= 1e-6 else posted.deviation_gains.max())

"""Write loans.csv, 12 000 made-up loans of four lenders, and public_loans.csv, 2000 loans that belong to none of them."""

import numpy as np
import pandas as pd

LENDERS = {"harbour": 6000, "mill": 3000, "orchard": 2500, "chapel": 500}


def loans(n, rng):
    income = rng.lognormal(11, 0.5, n).clip(10_000, 300_000).round(-2)
    debt = rng.beta(2, 5, n).round(3)
    years = rng.choice([3, 5], n, p=[0.7, 0.3])
    rate = 14 - 6 * (income / 300_000) + 8 * debt + 1.5 * (years - 3) + rng.normal(0, 2, n)
    return pd.DataFrame({"income": income, "debt": debt, "years": years, "rate": rate.clip(5, 30).round(2)})


def write():
    rng = np.random.default_rng(20)
    private = loans(sum(LENDERS.values()), rng)
    private.insert(0, "lender", np.repeat(list(LENDERS), list(LENDERS.values())))
    private.to_csv("loans.csv", index=False)
    loans(2000, rng).to_csv("public_loans.csv", index=False)


if __name__ == "__main__":
    write()

"""Audits: what canaries show of a private run, beside the epsilon that its ledger states.

law       whether what was released has the mean and the noise that the ledger charged           `law`, `sightings`, `sampled`
bound     an epsilon that the run certainly has, from guesses about canaries                      `one_run`
attack    the ceiling of membership attacks by (epsilon, delta) and by the mechanism itself       `ceiling`
power     which faults an audit of so many canaries would see                                     `power`
"""

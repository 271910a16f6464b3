"""What reads records and runs programs: one child for each rehearsal, one for each admitted study.

    gate      `Station`         link, keys, journal, budgets, submissions, guard; it always answers
    children  `Inline`          the same work in the gate's own process, for tests and simulations
              `Subprocesses`    a process for each, which has limits and can be ended at any moment

A gate hands text and bytes over and gets facts and bytes back (`facts`); nothing is pickled.
"""

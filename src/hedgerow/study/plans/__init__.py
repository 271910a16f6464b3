"""From a file of owners to a plan, and from the plan to the study and to each owner's guard."""

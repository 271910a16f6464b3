"""Computations in which no record knows of another: products, functions, norms, pools and sums of whole numbers.

Differential privacy says that one record more moves a sum by at most the clip. It does so only if the contributions of the
others stay what they were, to the bit: a last bit decides a ReLU, and a clipped gradient turns. Here a record's result is a
function of the broadcast operands and of that record alone, whatever the number of records, its position, the other records,
addresses, threads and the flush-to-zero flag, and clipped gradients are whole numbers, whose sums have no order.

    kernels      what callers use; chooses between the two below, and among instruction sets
    exact        products without a compiler: whole numbers, exact in float64
    compiled     chains of fused multiply-adds, in ascending order, by the extension `_rows`
    functions    exp, tanh, sigmoid, losses; the same bits on every machine
    norms, places, integers

The two ways of products differ from each other in their last bits. Which one a party takes is a property of its installation.
"""

"""Clipped gradients of records as whole numbers, each a function of the broadcast and of its own record, to the bit.

operations, layers, convolutions, norms, pools     what a module is made of, row by row, forward and backward
trace, graph                                       a module as a fixed order of them
alone                                              any other module, one record after the other, by autograd
parts, sums                                        whole numbers, held to the clip, and their sums without rounding
"""

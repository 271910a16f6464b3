"""Acts: what parties of a simulation do otherwise than they were asked, below programs, channels and ledgers.

lie      a party's own data or its own local function: what it makes goes through its clip, its noise and its masks
forge    the row as it leaves, which no clip of the party's own limits
"""

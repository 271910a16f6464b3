from hedgerow.studies import PROGRAMS, Listing

PROGRAMS["share"] = Listing("share:share", "Which part of the records lies above a threshold.")

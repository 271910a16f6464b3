"""Curious observers: what they learn of records from what they saw. Attacks are functions of a view and of public knowledge.

membership    scores of a loss threshold, of shadow models, and of likelihood ratios offline and online
shadow_coins, shadow_models    many trainings on parts of the records by coin, the program of the study `lira`
attribute, party_property, class_images    a column of a record, a party's records as a whole, a class's typical record
inversion     pictures of records from a slope, by first_layer or cosine_search; seen_gradients reads views
inferred_labels    how many records of each class are behind a slope
recognised    decibels of pictures, matched to records
inversion_study, inversion_cases, inversion_page    the program of the study `inversion`
against_sums  inconsistent models, sybils and differencing, against sums that hide rows
guesses       how often guesses are right, beside a baseline without the model
rates         how well scores tell members from others: area, advantage, true positives at few false ones
several_targets    the same over targets, with intervals
"""

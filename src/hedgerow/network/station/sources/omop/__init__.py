"""OMOP: extracts of a common data model (person, measurement, condition_occurrence, drug_exposure) as a table of persons.

    mapping    what a column is, in the words of station.toml
    source     CSV files or a database, and from the rows of its tables to columns

Source : OHDSI, OMOP Common Data Model 5.4. Differs in that only what is written here is read: no vocabulary and so no
descendants of a concept, no visits, observations or eras.
"""

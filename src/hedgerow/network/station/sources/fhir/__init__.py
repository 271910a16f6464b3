"""FHIR R4: patients, observations and conditions as a table with one row for each patient.

    mapping      what a column is, in the words of station.toml
    values       dates, quantities and codes, as the specification writes them
    resources    bundles and newline-delimited files into resources; whose record a resource is
    server       searches of a FHIR server, page by page
    source       all of it: `[data]` into raw columns

Source : HL7 FHIR R4 (4.0.1): datatypes, references, bundle, search, patient, observation, condition. Differs in that only what
is written here is read: no profiles, no extensions, no terminology service.
"""

"""The data dictionary: what the columns of a consortium mean, in one file that studies and stations name.

dictionary.toml  --parsing-->  Dictionary  --admitting-->  a table, or two reports of why it stays closed
                                   |
                                   +-- its digest, a schema, Table Schema; drafts, and REDCap's dictionaries, become one
"""

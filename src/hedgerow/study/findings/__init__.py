"""Several programs of one study, whose outcomes go on one page: what was found, how sure that is, of whom, who saw what."""

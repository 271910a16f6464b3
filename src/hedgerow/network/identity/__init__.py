"""Who is who in a federation: key folders, enrolment files, trust stores, and the life of keys."""

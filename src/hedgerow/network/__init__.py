"""Between organisations: stations, coordinator, the station's console page, and identities."""

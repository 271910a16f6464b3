"""The coordinator: keeps the roster of stations and the studies that they are asked, and survives its own end."""

"""Rails: what carries sealed bodies between a coordinator and stations, and knows nothing of what is in them."""

"""Makes and runs everything that the settings describe."""

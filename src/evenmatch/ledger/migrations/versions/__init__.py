"""The scripts of all schema versions; a released script must not be changed."""

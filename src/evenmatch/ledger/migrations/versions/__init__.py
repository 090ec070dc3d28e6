"""Each version of the schema; a script changes nothing once it is out."""

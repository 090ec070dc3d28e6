"""Options, files and tables of output that several commands share; no command is in here."""

"""The store on one machine: journal and index in SQLite, in the data folder."""

"""Every sentence people read about a run, one module per surface; an editor can read them as a whole."""

"""Every sentence people read, one module per surface; an editor can read them as a whole."""

"""Every sentence that people read of a run, one module a surface; an editor can read them as a whole."""

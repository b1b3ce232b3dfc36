"""Programs: the tasks of a graph in order and in memory, as segments that run as a whole."""

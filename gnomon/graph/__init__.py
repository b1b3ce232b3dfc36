"""Programs over operators: graphs, and passes that are pure functions of them."""

"""Arrays as they are: layout, memory, place on the tape; nothing here knows an operator."""

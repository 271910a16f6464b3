"""Programs of columns that lie apart, as study files name them. Each is a thin cover of what the room offers to Python."""

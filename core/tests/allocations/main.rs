//! What the decisions allocate, counted. In a binary of its own, because the counter is the allocator of the program.

mod lanes;

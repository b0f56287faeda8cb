//! How often the decisions allocate, counted. Times differ from one machine to the next, counts do not.

mod delay;
mod names;

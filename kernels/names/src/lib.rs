//! Names that the kernels and the tool both know. It is a crate of its own because the kernels, which are linked into
//! the server, depend on no crate of the tool, and below `kernels/` because a change of it changes what they are.
//!
//! * [`variables`]: the environment variables of our programs.
//! * [`nearest`]: the known name that a misspelt one resembles.

pub mod nearest;
pub mod variables;

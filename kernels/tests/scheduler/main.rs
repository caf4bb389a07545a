//! The scheduler: its rules one by one on made-up rooms, and all of them on the real pool.

mod rules;
mod simulation;
mod world;

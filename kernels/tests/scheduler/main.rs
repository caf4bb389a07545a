//! The scheduler: its rules one by one on a mock pool, and all of them on the real one.

mod rules;
mod simulated_server;
mod simulation;

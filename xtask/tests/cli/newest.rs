//! `newest`.

//! A release: packages as archives, with their sums.

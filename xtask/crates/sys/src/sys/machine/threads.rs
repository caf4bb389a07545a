//! Helper threads that work while their owner does something else.

use std::thread::ScopedJoinHandle;

use crate::error::{Error, Result};

/// Joins a thread and returns its result. A thread that panicked is an error.
pub fn result_of<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::environment("a thread that asked a server broke down")))
}

/// Runs `work` on all of `items` at the same time. Returns the results in the order of the items, or the first error,
/// after all have ended.
pub fn at_once<Item: Send, Done: Send>(
    items: Vec<Item>,
    work: impl Fn(Item) -> Result<Done> + Sync,
) -> Result<Vec<Done>> {
    let work = &work;
    std::thread::scope(|threads| {
        let running: Vec<_> = items.into_iter().map(|item| threads.spawn(move || work(item))).collect();
        running.into_iter().map(result_of).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_whichever_ends_first() {
        let all_have_begun = std::sync::Barrier::new(5);
        let together = |item: usize| {
            all_have_begun.wait();
            Ok(10 * item)
        };
        assert_eq!(at_once((0..5).collect(), together).unwrap(), [0, 10, 20, 30, 40]);
        assert_eq!(at_once(Vec::new(), together).unwrap(), Vec::<usize>::new());
    }

    #[test]
    fn one_that_fails_is_an_error() {
        let fails = |item: usize| if item == 3 { Err(Error::no("the third")) } else { Ok(item) };
        assert!(at_once((0..9).collect(), fails).unwrap_err().to_string().contains("the third"));
    }
}

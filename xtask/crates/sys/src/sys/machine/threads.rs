//! Helper threads that work while their owner does something else.

use std::sync::{Mutex, PoisonError};
use std::thread::{ScopedJoinHandle, available_parallelism};

use crate::error::{Error, Result};

/// Joins a thread and returns its result. A thread that panicked is an error.
pub fn result_of<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::environment("a thread that asked a server broke down")))
}

/// Runs `work` on each of `items`, with one thread per core, starting in order. Returns the results in the order of
/// the items, or the first error; work that has begun is finished all the same.
pub fn on_all_cores<Item: Send, Done: Send>(
    items: Vec<Item>,
    work: impl Fn(Item) -> Result<Done> + Sync,
) -> Result<Vec<Done>> {
    let workers = available_parallelism().map_or(1, usize::from).min(items.len());
    let waiting = Mutex::new(items.into_iter().enumerate());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let all_of_one = || -> Result<Vec<(usize, Done)>> {
        std::iter::from_fn(next).map(|(place, item)| Ok((place, work(item)?))).collect()
    };
    let of_workers: Vec<Vec<(usize, Done)>> = std::thread::scope(|threads| {
        let running: Vec<_> = (0..workers).map(|_| threads.spawn(all_of_one)).collect();
        running.into_iter().map(result_of).collect::<Result<_>>()
    })?;
    let mut done: Vec<(usize, Done)> = of_workers.into_iter().flatten().collect();
    done.sort_by_key(|(place, _)| *place);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_whichever_ends_first() {
        let cores = available_parallelism().map_or(1, usize::from);
        let first_may_end = std::sync::Barrier::new(cores.min(2));
        let slow_first = |item: usize| {
            // The first ends only after another one has begun, where two can run at once.
            if item < 2 {
                first_may_end.wait();
            }
            Ok(10 * item)
        };
        assert_eq!(on_all_cores((0..5).collect(), slow_first).unwrap(), [0, 10, 20, 30, 40]);
        assert_eq!(on_all_cores(Vec::new(), slow_first).unwrap(), Vec::<usize>::new());
    }

    #[test]
    fn one_that_fails_is_an_error() {
        let fails = |item: usize| if item == 3 { Err(Error::no("the third")) } else { Ok(item) };
        assert!(on_all_cores((0..9).collect(), fails).unwrap_err().to_string().contains("the third"));
    }
}

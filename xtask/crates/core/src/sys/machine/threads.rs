//! Helper threads that work while their owner does something else.

use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use crate::error::{Error, Result};

/// Joins a thread and returns its result. A thread that panicked is an error.
pub fn result_of<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    thread.join().unwrap_or_else(|_| Err(Error::environment("internal error: a helper thread panicked")))
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

/// As [`at_once`], for at most `most` items at the same time, in their order. After an error no other item is begun.
///
/// A program that `work` starts must end before `work` does: it is killed when the thread that started it ends.
pub fn few_at_once<Item: Send, Done: Send>(
    most: usize,
    items: Vec<Item>,
    work: impl Fn(Item) -> Result<Done> + Sync,
) -> Result<Vec<Done>> {
    let queue = Mutex::new(items.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let clear = || queue.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
    let some_of_them = |_: usize| -> Result<Vec<(usize, Done)>> {
        let mut done = Vec::new();
        while let Some((at, item)) = next() {
            done.push((at, work(item).inspect_err(|_| clear())?));
        }
        Ok(done)
    };
    let mut done: Vec<(usize, Done)> =
        at_once((0..most.max(1)).collect(), some_of_them)?.into_iter().flatten().collect();
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, done)| done).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

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
    fn two_at_a_time_are_never_three_and_keep_their_order() {
        let (running, all_of_two) = (AtomicUsize::new(0), std::sync::Barrier::new(2));
        let together = |item: usize| {
            assert!(running.fetch_add(1, Ordering::SeqCst) < 2);
            all_of_two.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            // Otherwise the next item could begin before both have been counted as ended.
            all_of_two.wait();
            Ok(10 * item)
        };
        assert_eq!(few_at_once(2, (0..6).collect(), together).unwrap(), [0, 10, 20, 30, 40, 50]);
        assert_eq!(few_at_once(0, vec![1], Ok).unwrap(), [1]);
    }

    #[test]
    fn after_an_error_no_other_item_is_begun() {
        let begun = AtomicUsize::new(0);
        let fails = |item: usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            if item == 1 { Err(Error::no("the second")) } else { Ok(item) }
        };
        assert!(few_at_once(1, (0..9).collect(), fails).unwrap_err().to_string().contains("the second"));
        assert_eq!(begun.into_inner(), 2);
    }

    #[test]
    fn one_that_fails_is_an_error() {
        let fails = |item: usize| if item == 3 { Err(Error::no("the third")) } else { Ok(item) };
        assert!(at_once((0..9).collect(), fails).unwrap_err().to_string().contains("the third"));
    }
}

//! Tokens by which the core wakes a stream, from any thread and without a lock.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;

use atomic_waker::AtomicWaker;

/// Slots of a block: blocks are allocated once and never freed, so that a late wake-up finds its slot.
const BLOCK: usize = 256;

/// Most blocks, and thereby 65,536 calls at a time.
const BLOCKS: usize = 256;

struct Slot {
    /// Changes when the slot is reused: a token of an earlier call wakes no stream.
    generation: AtomicU32,
    waker: AtomicWaker,
}

static SLOTS: [OnceLock<Box<[Slot]>>; BLOCKS] = [const { OnceLock::new() }; BLOCKS];

/// Indexes that were used before, and the first one that was not.
static FREE: Mutex<(Vec<u32>, u32)> = Mutex::new((Vec::new(), 0));

/// A slot, until it is dropped.
#[derive(Debug)]
pub struct Token {
    index: u32,
    generation: u32,
}

fn slot(index: u32) -> Option<&'static Slot> {
    let index = index as usize;
    SLOTS.get(index / BLOCK)?.get()?.get(index % BLOCK)
}

impl Token {
    /// Returns a token that no other call has; `None` if there are too many calls.
    #[must_use]
    pub fn new() -> Option<Token> {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match free.0.pop() {
            Some(index) => index,
            None => {
                let index = free.1;
                let block = SLOTS.get(index as usize / BLOCK)?;
                let empty = || Slot { generation: AtomicU32::new(1), waker: AtomicWaker::new() };
                block.get_or_init(|| (0..BLOCK).map(|_| empty()).collect());
                free.1 += 1;
                index
            }
        };
        let generation = slot(index)?.generation.load(Ordering::Acquire);
        Some(Token { index, generation })
    }

    /// The number that is passed to [`wake`]; never 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Sets the waker that the next [`wake`] calls.
    pub fn register(&self, waker: &Waker) {
        if let Some(slot) = slot(self.index) {
            slot.waker.register(waker);
        }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if let Some(slot) = slot(self.index) {
            // Zero is skipped, so that no number is 0.
            let next = self.generation.checked_add(1).unwrap_or(1);
            slot.generation.store(next, Ordering::Release);
            slot.waker.take();
        }
        FREE.lock().unwrap_or_else(PoisonError::into_inner).0.push(self.index);
    }
}

/// Wakes the stream that has this token, if there is one.
pub fn wake(number: u64) {
    let (generation, index) = ((number >> 32) as u32, number as u32);
    let found = slot(index).filter(|slot| slot.generation.load(Ordering::Acquire) == generation);
    if let Some(slot) = found {
        slot.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_registered_stream_is_woken_once() {
        let (token, count) = (Token::new().unwrap(), Arc::new(Count::default()));
        token.register(&Waker::from(Arc::clone(&count)));
        wake(token.number());
        wake(token.number());
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_wake_up_before_the_registration_is_not_lost() {
        // As `stream` does it: register, then look. What arrives between the two wakes.
        let (token, count) = (Token::new().unwrap(), Arc::new(Count::default()));
        wake(token.number());
        token.register(&Waker::from(Arc::clone(&count)));
        assert_eq!(count.0.load(Ordering::SeqCst), 0, "the stream looks after this");
        wake(token.number());
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn the_token_of_a_call_that_ended_wakes_no_other_call() {
        let old = Token::new().unwrap();
        let number = old.number();
        drop(old);
        // The slot is reused by one of these.
        let others: Vec<Token> = (0..64).map(|_| Token::new().unwrap()).collect();
        let count = Arc::new(Count::default());
        for token in &others {
            assert_ne!(token.number(), number);
            token.register(&Waker::from(Arc::clone(&count)));
        }
        wake(number);
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn unknown_tokens_are_ignored() {
        for number in [0, 1, u64::MAX, 1 << 32 | 0xffff_ffff] {
            wake(number);
        }
    }

    #[test]
    fn wakes_from_many_threads_reach_their_streams() {
        let tokens: Vec<Token> = (0..100).map(|_| Token::new().unwrap()).collect();
        let counts: Vec<Arc<Count>> = tokens.iter().map(|_| Arc::default()).collect();
        for (token, count) in tokens.iter().zip(&counts) {
            token.register(&Waker::from(Arc::clone(count)));
        }
        let numbers: Vec<u64> = tokens.iter().map(Token::number).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| numbers.iter().for_each(|number| wake(*number)));
            }
        });
        assert!(counts.iter().all(|count| count.0.load(Ordering::SeqCst) == 1));
    }
}

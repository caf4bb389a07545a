//! Memory that ends where a page begins that nobody may read: reading past the end stops the test.

use std::ops::{Deref, DerefMut};

/// A copy of some numbers, at the end of its pages.
pub struct Guarded<T> {
    /// What `first` leads into.
    _pages: Pages,
    first: *mut T,
    length: usize,
}

impl<T: Copy> Guarded<T> {
    /// A copy of `numbers`.
    pub fn new(numbers: &[T]) -> Guarded<T> {
        let bytes = size_of_val(numbers);
        let pages = Pages::new(bytes);
        let first = pages.end.wrapping_byte_sub(bytes).cast::<T>();
        assert!(first.is_aligned(), "pages and numbers have sizes that are powers of two");
        // SAFETY: the pages have room for them, and are nobody else's.
        unsafe { first.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
        Guarded { _pages: pages, first, length: numbers.len() }
    }
}

impl<T: Copy> Deref for Guarded<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: they were written by `new`, and live as long as the pages.
        unsafe { std::slice::from_raw_parts(self.first, self.length) }
    }
}

impl<T: Copy> DerefMut for Guarded<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.first, self.length) }
    }
}

#[cfg(unix)]
mod pages {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

    /// Pages of this process, of which the last may not be read.
    pub struct Pages {
        first: *mut u8,
        /// Where the last one begins.
        pub end: *mut u8,
        bytes: usize,
    }

    impl Pages {
        pub fn new(bytes: usize) -> Pages {
            let page = rustix::param::page_size();
            let readable = bytes.next_multiple_of(page);
            let bytes = readable + page;
            // SAFETY: new memory is nobody's.
            unsafe {
                let (access, none) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
                let first = mmap_anonymous(none, bytes, access, MapFlags::PRIVATE).expect("there is memory");
                let end = first.byte_add(readable);
                mprotect(end, page, MprotectFlags::empty()).expect("a page can be closed");
                Pages { first: first.cast(), end: end.cast(), bytes }
            }
        }
    }

    impl Drop for Pages {
        fn drop(&mut self) {
            // SAFETY: they are this one's, and nothing leads to them any more.
            unsafe { munmap(self.first.cast(), self.bytes) }.expect("what was mapped can be unmapped");
        }
    }
}

/// Elsewhere memory is as it is.
#[cfg(not(unix))]
mod pages {
    pub struct Pages {
        memory: Vec<u64>,
        pub end: *mut u8,
    }

    impl Pages {
        pub fn new(bytes: usize) -> Pages {
            let mut memory = vec![0; bytes.div_ceil(size_of::<u64>())];
            let end = memory.as_mut_ptr_range().end.cast();
            Pages { memory, end }
        }
    }
}

use pages::Pages;

//! Memory that ends at an unreadable page: reading past its end aborts the test.

use std::ops::{Deref, DerefMut};

/// A copy of some values, at the end of its pages.
pub struct Guarded<T> {
    /// The pages that `first` points into.
    _pages: Pages,
    first: *mut T,
    length: usize,
}

impl<T: Copy> Guarded<T> {
    /// Copies `numbers`.
    pub fn new(numbers: &[T]) -> Guarded<T> {
        let bytes = size_of_val(numbers);
        let pages = Pages::new(bytes);
        let first = pages.end.wrapping_byte_sub(bytes).cast::<T>();
        assert!(first.is_aligned(), "pages and numbers have sizes that are powers of two");
        // SAFETY: the pages have space for them, and were just allocated.
        unsafe { first.copy_from_nonoverlapping(numbers.as_ptr(), numbers.len()) };
        Guarded { _pages: pages, first, length: numbers.len() }
    }
}

impl<T: Copy> Deref for Guarded<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the values were written by `new`, and live as long as the pages.
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

    /// Pages of this process, of which the last is unreadable.
    pub struct Pages {
        first: *mut u8,
        /// Start of the last page.
        pub end: *mut u8,
        bytes: usize,
    }

    impl Pages {
        pub fn new(bytes: usize) -> Pages {
            let page = rustix::param::page_size();
            let readable = bytes.next_multiple_of(page);
            let bytes = readable + page;
            // SAFETY: a new mapping overlaps no other memory.
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
            // SAFETY: the pages belong to this value, and no pointer to them is left.
            unsafe { munmap(self.first.cast(), self.bytes) }.expect("what was mapped can be unmapped");
        }
    }
}

/// On other systems, ordinary memory.
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

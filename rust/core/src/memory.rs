//! Memory by the page: zeroed, untouched until used, huge pages where the system has them, and
//! counted against a limit that is never passed.

use memmap2::MmapMut;
use std::io;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// A type of which any bytes, zeros too, are a value.
///
/// # Safety
/// The type must be `Copy`, hold no padding, no pointer and no bytes that are invalid for it, and
/// its alignment must be at most that of a memory page.
pub(crate) unsafe trait Plain: Copy + Send + Sync {}

/// The size of a huge page on the CPUs that have them; elsewhere only a boundary.
const HUGE: usize = 2 << 20;

/// A zeroed slice of its own mapping.
///
/// A mapping rather than a `Vec`: zeros cost nothing before they are touched, so a table of a
/// gigabyte starts without a stall, and the kernel can back it with huge pages (12 to 25 % of the
/// time per observation on large states).
pub(crate) struct Pages<T> {
    start: NonNull<T>,
    len: usize,
    /// Only held: it is what `start` points into. `None` where `len` is 0.
    _map: Option<MmapMut>,
}

// SAFETY: `Pages` owns its mapping as a `Box<[T]>` would, and T may go to any thread (`Plain`).
unsafe impl<T: Plain> Send for Pages<T> {}
// SAFETY: a shared `Pages` gives shared access only.
unsafe impl<T: Plain> Sync for Pages<T> {}

impl<T: Plain> Pages<T> {
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let bytes = Self::bytes_for(len).max(1);
        // The system may begin a mapping anywhere: what lies before a huge page's boundary would be
        // made of small ones. Addresses that are never touched cost nothing.
        let spare = if bytes < HUGE { 0 } else { HUGE };
        let total = bytes.checked_add(spare).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(total)?;
        // Only advice: a system without huge pages goes on with small ones.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let skipped = map.as_ptr().align_offset(HUGE).min(spare);
        let start = map[skipped..].as_mut_ptr().cast();
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len, _map: Some(map) })
    }

    /// Tells the CPU that a value will be written soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: usize) {
        fetch(self.start.as_ptr().wrapping_add(index));
    }

    pub(crate) fn none() -> Self {
        Self { start: NonNull::dangling(), len: 0, _map: None }
    }

    pub(crate) fn bytes_for(len: usize) -> usize {
        len.saturating_mul(size_of::<T>())
    }

    pub(crate) fn bytes(&self) -> usize {
        Self::bytes_for(self.len)
    }
}

impl<T: Plain> Deref for Pages<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping holds `len` values of T from `start` on, which is a page's beginning
        // (or there are none), any bytes in it are values of T (`Plain`), and it lives as long as
        // `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for Pages<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`; `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// How much memory there may be, and how much there is.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: usize,
}

impl Budget {
    pub(crate) fn new(limit: Option<usize>) -> Self {
        Self { limit: limit.unwrap_or(usize::MAX), used: 0 }
    }

    pub(crate) fn set_limit(&mut self, limit: Option<usize>) {
        self.limit = limit.unwrap_or(usize::MAX);
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.limit < usize::MAX
    }

    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Both in one, of the same limit; `None` where that is passed.
    pub(crate) fn with(&self, other: &Self) -> Option<Self> {
        let used = self.used.checked_add(other.used)?;
        (used <= self.limit).then_some(Self { limit: self.limit, used })
    }

    /// What is left, for two that do not know of each other: half of it each.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let half = Self { limit: self.limit.saturating_sub(self.used) / 2, used: 0 };
        [half.clone(), half]
    }

    /// What was used of the halves is used of the whole.
    pub(crate) fn put_together(&mut self, halves: [Self; 2]) {
        self.used += halves.into_iter().map(|half| half.used).sum::<usize>();
    }

    /// Whether so much is still to be had.
    pub(crate) fn has(&self, bytes: usize) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }

    /// Pages within the limit; `None` where it, or the system, has no more.
    pub(crate) fn pages<T: Plain>(&mut self, len: usize) -> Option<Pages<T>> {
        let used = self.used.checked_add(Pages::<T>::bytes_for(len))?;
        if used > self.limit {
            return None;
        }
        let pages = Pages::new(len).ok()?;
        self.used = used;
        Some(pages)
    }

    pub(crate) fn free<T: Plain>(&mut self, pages: Pages<T>) {
        self.release(pages.bytes());
    }

    /// So much is used, which was still to be had.
    pub(crate) fn claim(&mut self, bytes: usize) {
        self.used += bytes;
    }

    /// So much is given back by whoever had it.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.used -= bytes;
    }
}

/// Tells the CPU that what lies there will be used soon.
#[inline(always)]
pub(crate) fn fetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint about an address, which need not be valid; it reads nothing.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

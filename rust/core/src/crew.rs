//! Threads that stay: each keeps to a core of its own, where new ones would often share one.

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::available_parallelism;

/// Something to be done, perhaps on another thread.
pub(crate) type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Whether two can be at work at the same time.
pub(crate) fn has_cores() -> bool {
    static HAS_CORES: OnceLock<bool> = OnceLock::new();
    *HAS_CORES.get_or_init(|| available_parallelism().is_ok_and(|cores| cores.get() > 1))
}

/// So many threads, the calling one among them. They are started when they are first needed.
pub(crate) struct Crew {
    threads: usize,
    /// With the process they belong to: a fork has none of its parent's threads.
    pool: Mutex<Option<(u32, Arc<ThreadPool>)>>,
}

impl Crew {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, pool: Mutex::new(None) }
    }

    /// Does all tasks and comes back when the last is done; a panic in any of them goes on here.
    pub(crate) fn run(&self, tasks: Vec<Task<'_>>) {
        let mut tasks = tasks.into_iter();
        let Some(first) = tasks.next() else { return };
        match self.pool() {
            Some(pool) if tasks.len() > 0 => pool.in_place_scope(|scope| {
                for task in tasks {
                    scope.spawn(move |_| task());
                }
                first();
            }),
            // Where threads are not to be had, one after the other.
            _ => {
                first();
                tasks.for_each(|task| task());
            }
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Does `own` here, and `help` meanwhile on every other thread there is; comes back when all are
    /// done.
    pub(crate) fn assisted<R>(&self, help: impl Fn() + Sync, own: impl FnOnce() -> R) -> R {
        let help = &help;
        match self.pool() {
            Some(pool) => pool.in_place_scope(|scope| {
                (1..self.threads).for_each(|_| scope.spawn(move |_| help()));
                own()
            }),
            None => own(),
        }
    }

    fn pool(&self) -> Option<Arc<ThreadPool>> {
        if self.threads < 2 {
            return None;
        }
        let mut held = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        if let Some((owner, pool)) = &*held
            && *owner == process
        {
            return Some(Arc::clone(pool));
        }
        let made = ThreadPoolBuilder::new()
            .num_threads(self.threads - 1)
            .thread_name(|number| format!("zveil-{number}"))
            .build();
        let pool = Arc::new(made.ok()?);
        // A parent's pool must not be dropped here: that would wait for threads that are not there.
        if let Some(lost) = held.replace((process, Arc::clone(&pool))) {
            std::mem::forget(lost);
        }
        Some(pool)
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        let held = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some((owner, _)) = held
            && *owner != std::process::id()
        {
            std::mem::forget(held.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_is_done_on_any_number_of_threads() {
        for threads in 1..5 {
            let crew = Crew::new(threads);
            let done = AtomicUsize::new(0);
            for count in 0..7 {
                done.store(0, Ordering::Relaxed);
                let task = || -> Task<'_> { Box::new(|| _ = done.fetch_add(1, Ordering::Relaxed)) };
                crew.run((0..count).map(|_| task()).collect());
                assert_eq!(done.load(Ordering::Relaxed), count);
            }
        }
    }

    #[test]
    fn a_panic_goes_on_in_the_caller() {
        let crew = Crew::new(2);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            crew.run(vec![Box::new(|| {}), Box::new(|| panic!("on purpose"))]);
        }));
        assert!(outcome.is_err());
    }

    #[test]
    fn help_is_done_beside_the_own_work() {
        for threads in 1..5 {
            let crew = Crew::new(threads);
            let helped = AtomicUsize::new(0);
            let own = crew.assisted(|| _ = helped.fetch_add(1, Ordering::Relaxed), || 7);
            assert_eq!((own, helped.load(Ordering::Relaxed)), (7, threads - 1));
        }
        let crew = Crew::new(2);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            crew.assisted(|| panic!("on purpose"), || {});
        }));
        assert!(outcome.is_err());
    }
}

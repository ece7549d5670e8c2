//! Pinning of threads to cores.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// Pins the calling thread to a core while it exists. Threads started meanwhile inherit the core.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: Option<CpuSet>,
}

/// Returns the consumer's core: the second that this process may use; `None` if there is only one.
pub(crate) fn consumer() -> Option<usize> {
    usable().get(1).copied()
}

/// Returns the producer's core: the first, if the consumer has another one.
pub(crate) fn producer() -> Option<usize> {
    consumer().and_then(|_| usable().first().copied())
}

/// Pins the calling thread to this core for good. If the system refuses, the thread stays unpinned.
pub(crate) fn stay_on(core: Option<usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        // Without a core of its own a scenario is still correct, only less steady.
        let _ = sched_setaffinity(None, &set);
    }
}

/// Returns the cores that this process may use, regardless of this module's pinning.
fn usable() -> &'static [usize] {
    static USABLE: OnceLock<Vec<usize>> = OnceLock::new();
    USABLE.get_or_init(|| {
        let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
        (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
    })
}

impl Pinned {
    /// Pins the calling thread to this core.
    pub(crate) fn to(core: Option<usize>) -> Self {
        let before = core.and_then(|_| sched_getaffinity(None).ok());
        stay_on(core);
        Pinned { before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pinned, consumer, producer};
    use rustix::thread::sched_getaffinity;

    #[test]
    fn a_pinned_thread_is_free_again_afterwards() {
        let cores = || sched_getaffinity(None).unwrap().count();
        let before = cores();
        let pinned = Pinned::to(producer());
        assert_eq!(cores(), if consumer().is_some() { 1 } else { before });
        drop(pinned);
        assert_eq!(cores(), before);
    }

    #[test]
    fn producer_and_consumer_have_different_cores_or_none() {
        assert_eq!(producer().is_some(), consumer().is_some());
        assert!(producer().is_none() || producer() != consumer());
    }
}

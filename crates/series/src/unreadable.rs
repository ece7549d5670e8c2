//! Blocks that cannot be read from their files.
//!
//! Most reads cannot fail: all points are in memory. Those of a block that is not are read from its
//! file, which may be damaged. A read that meets such a block serves none of its points and records
//! what is wrong for the [`guarded`] call that it is in, whose caller drops what was read.

use std::cell::{Cell, RefCell};

/// A block whose points cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}the points from {first} to {last} cannot be read: {what}", series.as_deref().unwrap_or_default())]
pub struct UnreadableBlock {
    /// Time of the block's first point.
    pub first: i64,
    /// Time of its last point.
    pub last: i64,
    /// What is wrong, with file and offset.
    pub what: String,
    /// Which series it is, as the message says it, if that is known.
    pub series: Option<Box<str>>,
}

impl UnreadableBlock {
    /// Names the series, unless it has a name.
    #[must_use]
    pub fn of(mut self, name: &[u8]) -> Self {
        self.series.get_or_insert_with(|| format!("series '{}': ", name.escape_ascii()).into());
        self
    }
}

/// A block was needed that cannot be read; the guard knows more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable;

/// What the innermost guarded call of a thread has met. Every command runs in one, so it is a byte; the
/// failures, which are rare, lie beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Guard {
    /// No caller waits to be told of failures.
    Absent,
    Present,
    /// There is a failure.
    Failed,
}

thread_local! {
    /// The block for which a point was refused last.
    static REFUSING: RefCell<Option<UnreadableBlock>> = const { RefCell::new(None) };
    static GUARD: Cell<Guard> = const { Cell::new(Guard::Absent) };
    /// The first failure of each guarded call that has failed, the innermost call's last.
    static FAILURES: RefCell<Vec<UnreadableBlock>> = const { RefCell::new(Vec::new()) };
}

/// Restores the outer guard, also when the inner call panics.
struct Outer(Guard);

impl Drop for Outer {
    #[inline]
    fn drop(&mut self) {
        if GUARD.replace(self.0) == Guard::Failed {
            take_failure();
        }
    }
}

/// Runs `read` on this thread.
///
/// # Errors
/// The first block that `read` needed and that could not be read. What `read` has computed is wrong
/// then, and dropped.
#[inline]
pub fn guarded<T>(read: impl FnOnce() -> T) -> Result<T, UnreadableBlock> {
    guarded_or(|| Ok(read()), Err)
}

/// As [`guarded`]: returns what `read` returns, or what `fail` makes of the block that could not be read.
#[inline]
pub fn guarded_or<T>(read: impl FnOnce() -> T, fail: impl FnOnce(UnreadableBlock) -> T) -> T {
    let _outer = Outer(GUARD.replace(Guard::Present));
    let value = read();
    if GUARD.get() == Guard::Failed {
        GUARD.set(Guard::Present);
        return fail(take_failure());
    }
    value
}

#[cold]
fn take_failure() -> UnreadableBlock {
    FAILURES.with_borrow_mut(Vec::pop).expect("a call that has failed keeps its failure")
}

#[cold]
pub(crate) fn keep_refusing_block(block: UnreadableBlock) {
    REFUSING.set(Some(block));
}

/// Returns the block for which this thread's last point was refused with
/// [`AppendError::Unreadable`](crate::AppendError::Unreadable), once.
pub fn take_refusing_block() -> Option<UnreadableBlock> {
    REFUSING.take()
}

/// Runs `read` of the series with this name: a failure in it is recorded with the name.
pub fn naming<T>(name: &[u8], read: impl FnOnce() -> T) -> T {
    let value = read();
    if GUARD.get() == Guard::Failed {
        name_failure(name);
    }
    value
}

#[cold]
fn name_failure(name: &[u8]) {
    FAILURES.with_borrow_mut(|failures| {
        let failure = failures.pop().map(|block| block.of(name));
        failures.extend(failure);
    });
}

/// Records a failure for the caller that guards this thread's reads.
#[cold]
pub(crate) fn note(block: impl FnOnce() -> UnreadableBlock) -> Unreadable {
    if GUARD.get() == Guard::Present {
        let block = block();
        FAILURES.with_borrow_mut(|failures| failures.push(block));
        GUARD.set(Guard::Failed);
    }
    Unreadable
}

/// Returns what was read, or nothing for a caller that guards its reads and drops it.
///
/// # Panics
/// If a block could not be read and no caller guards the read: less would be served than there is.
#[inline]
pub(crate) fn served<T: Default>(read: Result<T, Unreadable>) -> T {
    match read {
        Ok(value) => value,
        Err(Unreadable) => nothing(),
    }
}

#[cold]
fn nothing<T: Default>() -> T {
    assert!(
        GUARD.get() != Guard::Absent,
        "a block cannot be read from its file, and the caller does not guard its reads"
    );
    T::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(first: i64) -> UnreadableBlock {
        UnreadableBlock { first, last: first + 1, what: "a test".to_owned(), series: None }
    }

    #[test]
    fn a_guard_returns_the_first_failure_of_its_own_call() {
        let failed: Result<(), _> = guarded(|| {
            assert_eq!(guarded(|| served::<i32>(Err(note(|| failure(1))))), Err(failure(1)));
            assert_eq!(guarded(|| 7), Ok(7));
            note(|| failure(2));
            note(|| failure(3));
        });
        assert_eq!(failed, Err(failure(2)));
    }

    #[test]
    fn the_failure_of_an_outer_guard_outlives_an_inner_one() {
        let failed: Result<(), _> = guarded(|| {
            note(|| failure(1));
            assert_eq!(guarded(|| served::<i32>(Err(note(|| failure(2))))), Err(failure(2)));
            assert_eq!(guarded(|| 7), Ok(7));
        });
        assert_eq!(failed, Err(failure(1)));
        assert_eq!(guarded(|| 8), Ok(8));
    }

    #[test]
    fn a_failure_has_the_name_of_its_series() {
        let failed = guarded(|| {
            naming(b"whole", || ());
            naming(b"damaged", || note(|| failure(1)));
            naming(b"whole too", || ());
        });
        let message = failed.expect_err("a failure").to_string();
        assert_eq!(message, "series 'damaged': the points from 1 to 2 cannot be read: a test");
    }

    #[test]
    #[should_panic(expected = "does not guard its reads")]
    fn nothing_is_served_without_a_guard() {
        served::<()>(Err(note(|| failure(1))));
    }

    #[test]
    fn a_guard_is_gone_after_a_panic_in_it() {
        let panicked = std::panic::catch_unwind(|| guarded(|| panic!("a test")));
        assert!(panicked.is_err());
        let panicked = std::panic::catch_unwind(|| {
            guarded(|| {
                note(|| failure(1));
                panic!("a test behind a failure")
            })
        });
        assert!(panicked.is_err());
        assert!(std::panic::catch_unwind(|| served::<()>(Err(Unreadable))).is_err());
        assert_eq!(guarded(|| note(|| failure(2))), Err(failure(2)), "its failure is gone as well");
    }
}

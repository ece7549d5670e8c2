//! Panics of the Parquet reader, which damaged files cause, become errors.

use super::ReadError;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is caught and need not be reported.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs `read`; its panic is an error, after which the reader is not used any more.
pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |panic| {
            if !IS_GUARDED.get() {
                report(panic);
            }
        }));
    });
    IS_GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(read));
    IS_GUARDED.set(false);
    result.unwrap_or_else(|_| Err(ReadError::Table("the file is damaged: it cannot be decoded".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error() {
        assert_eq!(guarded(|| Ok(1)).ok(), Some(1));
        let error = guarded::<()>(|| panic!("a damaged page")).expect_err("a panic");
        assert_eq!(error.to_string(), "the file is damaged: it cannot be decoded");
        assert!(!IS_GUARDED.get());
    }
}

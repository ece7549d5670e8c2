//! Panics of user code: caught before they spread, and read.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Calls user code whose panics are not reported, such as `drop`. Never unwinds.
pub(crate) fn shielded(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        drop_payload(panic);
    }
}

/// Returns the message of a panic.
pub(crate) fn message_of(panic: Box<dyn Any + Send>) -> Arc<str> {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).into(),
        (None, Some(text)) => text.as_str().into(),
        (None, None) => "a panic without a message".into(),
    };
    drop_payload(panic);
    message
}

/// Drops the payload of a panic, which may panic again.
fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // Dropping it could panic again and again.
        mem::forget(again);
    }
}

//! What code of users throws: caught where it would spread, and read.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Calls code of users whose failure nobody is told of: `drop`, above all. Never unwinds.
pub(crate) fn shielded(call: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(call)) {
        drop_payload(panic);
    }
}

/// What a panic has said.
pub(crate) fn message_of(panic: Box<dyn Any + Send>) -> Arc<str> {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).into(),
        (None, Some(text)) => text.as_str().into(),
        (None, None) => "a panic without a message".into(),
    };
    drop_payload(panic);
    message
}

/// Drops what a panic has thrown, which may throw again.
fn drop_payload(panic: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        // There is no end to this but here.
        mem::forget(again);
    }
}

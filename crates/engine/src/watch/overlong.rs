//! Limit on the answer of a watched read.

use crate::wire::reply::Reply;

/// Longest answer, in bytes. A longer one is replaced by an error, the same on every machine.
pub(super) const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Replaces an answer that exceeded the limit by an error. Returns whether it did.
pub(super) fn replace_overlong(reply: &mut Reply) -> bool {
    let is_overlong = reply.has_overflowed();
    if is_overlong {
        *reply = Reply::new(reply.protocol());
        reply.error_text(&format!("ERR the answer exceeds the {MAX_ANSWER_BYTES} bytes that can be watched"));
    }
    is_overlong
}

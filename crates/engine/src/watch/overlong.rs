//! How long the answer of a watched read may be.

use crate::wire::reply::Reply;

/// The most bytes of one answer. A longer one is replaced by an error that says so: the same one on every machine.
pub(super) const MAX_ANSWER_BYTES: usize = 16 << 20;

/// Puts an error in place of an answer that was too long; whether it was.
pub(super) fn replace_overlong(reply: &mut Reply) -> bool {
    let is_overlong = reply.has_overflowed();
    if is_overlong {
        *reply = Reply::new(reply.protocol());
        reply.error_text(&format!("ERR the answer exceeds the {MAX_ANSWER_BYTES} bytes that can be watched"));
    }
    is_overlong
}

//! Size and drop function of the value that belongs to a token.
#![allow(unsafe_code, reason = "a node says it, which exists while there are entries for it")]

use super::token::Token;
use crate::execution::node;

#[inline]
pub(crate) fn value_bytes(token: Token) -> usize {
    // SAFETY: a node exists while there are entries for it.
    token.as_emission().map_or(0, |node| unsafe { node::value_bytes(node) })
}

#[inline]
pub(crate) fn value_words(token: Token) -> usize {
    // SAFETY: a node exists while there are entries for it.
    token.as_emission().map_or(0, |node| unsafe { node::value_words(node) })
}

/// Returns the function that drops a value of this token, also after the node is gone.
///
/// # Safety
///
/// The node exists.
pub(crate) unsafe fn discarder(token: Token) -> unsafe fn(*mut u8) {
    // SAFETY: as the caller says.
    token.as_emission().map_or(nothing, |node| unsafe { node::discarder(node) })
}

unsafe fn nothing(_: *mut u8) {}

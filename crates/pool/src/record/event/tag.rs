//! The first number of an event: a tag, or the result of a draw.

use crate::catalogue::ITEMS_MAX;

pub(super) const NOTHING: u64 = 0;
pub(super) const RESERVED: u64 = 1;
pub(super) const CONFIRMED: u64 = 2;
pub(super) const CANCELLED: u64 = 3;
pub(super) const EXPIRED: u64 = 4;
pub(super) const CHANGED: u64 = 5;
pub(super) const ADDED: u64 = 6;
pub(super) const REMOVED: u64 = 7;
pub(super) const GIVEN_BACK: u64 = 8;
pub(super) const EPOCH: u64 = 9;
pub(super) const DREW_DIFFERENT: u64 = 10;
pub(super) const RESERVED_DIFFERENT: u64 = 11;
pub(super) const ASKED: u64 = 12;
pub(super) const GIVEN_BACK_BY: u64 = 13;
pub(super) const ADVANCED: u64 = 14;
/// From here on, the number is a draw of the item `number - ITEMS`.
pub(super) const ITEMS: u64 = 16;

/// Decodes the result of a draw; `None` if the number is not a draw.
#[inline]
#[expect(clippy::option_option, reason = "a draw may have given nothing")]
pub(super) fn drawn(number: u64) -> Option<Option<u32>> {
    match number.checked_sub(ITEMS) {
        Some(item) if item < ITEMS_MAX as u64 => Some(Some(item as u32)),
        None if number == NOTHING => Some(None),
        _ => None,
    }
}

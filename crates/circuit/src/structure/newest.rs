//! Queues of the newest values.

use std::collections::VecDeque;

/// Puts a value behind the others, and takes the oldest away if there are more than `capacity` then, which is not zero.
pub(crate) fn push_newest<E>(values: &mut VecDeque<E>, capacity: usize, value: E) -> Option<E> {
    debug_assert!(values.len() <= capacity && capacity > 0);
    let oldest = if values.len() == capacity { values.pop_front() } else { None };
    values.push_back(value);
    oldest
}

//! Bounded queues that keep the newest values.

use std::collections::VecDeque;

/// Appends a value, and removes and returns the oldest if the queue was full. `capacity` is not
/// zero.
pub(crate) fn push_newest<E>(values: &mut VecDeque<E>, capacity: usize, value: E) -> Option<E> {
    debug_assert!(values.len() <= capacity && capacity > 0);
    let oldest = if values.len() == capacity { values.pop_front() } else { None };
    values.push_back(value);
    oldest
}

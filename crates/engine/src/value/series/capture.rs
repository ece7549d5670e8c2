//! Capture of a series by a running snapshot.
//!
//! Blocks never change, so the capture is a copy of the series that shares them: taking it costs a
//! reference for each block, and changes made meanwhile need not wait for it.

use super::Points;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};

/// Capture by a running snapshot.
#[derive(Debug)]
pub(super) struct SeriesCapture {
    parts: Parts,
    points: Points,
    /// The part to be written next.
    next: usize,
}

impl SeriesCapture {
    /// Captures the points; `head` is everything else.
    pub(super) fn new(number: u64, points: &Points, head: &[u8]) -> Self {
        let mut parts = Parts::new(number, Type::Series, 1 + points.parts());
        parts.push_run(0, std::iter::once(head));
        Self { parts, points: points.clone(), next: 0 }
    }

    /// Writes some of the remaining parts. Returns the capture if there may be more.
    pub(super) fn step(mut self: Box<Self>, pieces: &mut Pieces) -> Option<Box<Self>> {
        let (mut bytes, mut part) = (0, Vec::new());
        while self.next < self.points.parts() {
            if bytes >= PART_BYTES {
                self.parts.give_to(pieces);
                return Some(self);
            }
            part.clear();
            self.points.encode_part(self.next, &mut part);
            self.next += 1;
            self.parts.push_run(self.next as u64, std::iter::once(&part[..]));
            bytes += part.len();
        }
        self.parts.end(pieces);
        None
    }
}

//! Capture of a series by a running snapshot.
//!
//! Blocks never change, so the capture is a copy of the series that shares them: taking it costs a
//! reference for each block, and changes made meanwhile need not wait for it.

use super::Points;
use super::image::encode_parts;
use crate::value::capture::{PART_BYTES, Parts};
use crate::value::{Pieces, Type};

/// Most parts of a series in one run, which is a part of the snapshot.
const RUN_PARTS: usize = 64;

/// Runs after which a step ends: some tens of microseconds for references.
const STEP_RUNS: usize = 4;

/// First byte of an element that is a head.
pub(super) const HEAD: u8 = 0;

/// First byte of an element that is a run of parts.
pub(super) const RUN: u8 = 1;

/// Returns the number of elements of a captured series: its head and its runs.
pub(super) fn elements(points: &Points) -> usize {
    1 + points.parts().div_ceil(RUN_PARTS)
}

/// Capture by a running snapshot.
#[derive(Debug)]
pub(super) struct SeriesCapture {
    parts: Parts,
    points: Points,
    /// The run to be written next.
    next: usize,
}

impl SeriesCapture {
    /// Captures the points; `head` is everything else.
    pub(super) fn new(number: u64, points: &Points, head: &[u8]) -> Self {
        let mut parts = Parts::new(number, Type::Series, elements(points));
        parts.push_run(0, std::iter::once(head));
        Self { parts, points: points.clone(), next: 0 }
    }

    /// Writes some of the remaining parts. Returns the capture if there may be more.
    pub(super) fn step(mut self: Box<Self>, pieces: &mut Pieces) -> Option<Box<Self>> {
        let (mut bytes, mut run) = (0, Vec::new());
        for step in 0.. {
            let parts = self.next * RUN_PARTS..((self.next + 1) * RUN_PARTS).min(self.points.parts());
            if parts.is_empty() {
                break;
            }
            if bytes >= PART_BYTES || step >= STEP_RUNS {
                self.parts.give_to(pieces);
                return Some(self);
            }
            run.clear();
            run.push(RUN);
            encode_parts(&self.points, parts, &pieces.blocks, &mut run);
            self.next += 1;
            self.parts.push_run(self.next as u64, std::iter::once(&run[..]));
            bytes += run.len();
        }
        self.parts.end(pieces);
        None
    }
}

//! The capture of a list: what of it a snapshot has not seen is one run of elements, at whose ends it is seen.

use super::List;
use crate::record::put_bytes;
use crate::value::Type;
use crate::value::capture::{PART_BYTES, Parts};
use std::ops::Range;

/// Elements that are seen together when one has to be, so that pops do not make a part each.
const RUN: usize = 64;

/// Elements that one step of a walk sees at most; they lie side by side, so a step takes some tens of microseconds.
const STEP_ELEMENTS: usize = 4096;

/// The capture by a running snapshot.
#[derive(Debug)]
pub(super) struct ListCapture {
    parts: Parts,
    /// Indices of the elements that have not been seen, as they are now. They have not changed since the cut.
    unseen: Range<usize>,
    /// The index at the cut of the first of them.
    first: u64,
}

impl List {
    /// Whether the list is captured; every change asks.
    #[inline]
    pub(super) fn is_being_captured(&self) -> bool {
        self.capture.is_some()
    }

    /// Lets a snapshot see the list as it is now, in parts.
    pub(super) fn start_capture(&mut self, number: u64) {
        let parts = Parts::new(number, Type::List);
        self.capture = Some(Box::new(ListCapture { parts, unseen: 0..self.len(), first: 0 }));
    }

    /// Adds the next parts of a captured list; whether there are more.
    pub(super) fn step_capture(&mut self, parts: &mut Vec<Vec<u8>>) -> bool {
        let Some(mut capture) = self.capture.take() else { return false };
        capture.see_front(self, STEP_ELEMENTS, PART_BYTES);
        parts.append(&mut capture.parts.take());
        let more = !capture.unseen.is_empty();
        if more {
            self.capture = Some(capture);
        }
        more
    }

    /// To be called before the elements with these indices change or go: they are seen first, with what lies between
    /// them and the nearer end of the unseen ones.
    #[cold]
    pub(super) fn see(&mut self, indices: Range<usize>) {
        let Some(mut capture) = self.capture.take() else { return };
        let unseen = capture.unseen.clone();
        let (from_front, from_back) =
            (indices.end.saturating_sub(unseen.start), unseen.end.saturating_sub(indices.start));
        if indices.start < unseen.end && unseen.start < indices.end {
            if from_front <= from_back {
                capture.see_front(self, from_front.max(RUN), usize::MAX);
            } else {
                capture.see_back(self, from_back.max(RUN));
            }
        }
        self.capture = Some(capture);
    }

    /// To be called when elements before the unseen ones have come or gone.
    #[cold]
    pub(super) fn shift_unseen(&mut self, by: isize) {
        if let Some(capture) = &mut self.capture {
            let Range { start, end } = &mut capture.unseen;
            debug_assert!(start == end || start.checked_add_signed(by).is_some());
            (*start, *end) = (start.saturating_add_signed(by), end.saturating_add_signed(by));
        }
    }
}

impl ListCapture {
    /// Sees `count` elements from the front, or fewer that have `limit` bytes.
    fn see_front(&mut self, list: &List, count: usize, limit: usize) {
        let mut bytes = 0;
        for element in list.iter_from(self.unseen.start).take(count.min(self.unseen.len())) {
            self.parts.push_at(self.first, |part| put_bytes(part, element));
            self.unseen.start += 1;
            self.first += 1;
            bytes += element.len();
            if bytes >= limit {
                break;
            }
        }
    }

    /// Sees `count` elements from the back.
    fn see_back(&mut self, list: &List, count: usize) {
        let count = count.min(self.unseen.len());
        let start = self.unseen.end - count;
        let first = self.first + (start - self.unseen.start) as u64;
        for (index, element) in (first..).zip(list.iter_from(start).take(count)) {
            self.parts.push_at(index, |part| put_bytes(part, element));
        }
        self.unseen.end = start;
    }
}

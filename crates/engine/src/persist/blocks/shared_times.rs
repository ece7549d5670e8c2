//! Times that several bundles of a file have.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Most bytes of the times that are looked among: those of some 10,000 bundles.
const BYTES_MAX: usize = 16 << 20;

/// Bytes below which times are not worth a read of another bundle.
const BYTES_MIN: usize = 48;

/// The times of the bundles that were written last, each with the number of the bundle that has it.
#[derive(Debug, Default)]
pub(super) struct SharedTimes {
    numbers: HashMap<Arc<[u8]>, u32>,
    /// The oldest first.
    order: VecDeque<Arc<[u8]>>,
    bytes: usize,
}

impl SharedTimes {
    /// Returns the number of an earlier bundle that has these times; `None` if bundle `number` is to have
    /// them.
    pub(super) fn find_or_keep(&mut self, times: &[u8], number: u32) -> Option<u32> {
        if times.len() < BYTES_MIN {
            return None;
        }
        if let Some(found) = self.numbers.get(times) {
            return Some(*found);
        }
        let kept: Arc<[u8]> = times.into();
        self.bytes += kept.len();
        self.order.push_back(Arc::clone(&kept));
        self.numbers.insert(kept, number);
        while self.bytes > BYTES_MAX {
            let oldest = self.order.pop_front().expect("bytes are of something");
            self.bytes -= oldest.len();
            self.numbers.remove(&oldest);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_times_are_found() {
        let mut shared = SharedTimes::default();
        assert_eq!(shared.find_or_keep(&[1; 100], 0), None);
        assert_eq!(shared.find_or_keep(&[2; 100], 1), None);
        assert_eq!(shared.find_or_keep(&[1; 100], 2), Some(0));
        assert_eq!((shared.find_or_keep(&[1; 8], 3), shared.find_or_keep(&[1; 8], 4)), (None, None), "short");
        assert_eq!(shared.find_or_keep(&vec![3; BYTES_MAX], 5), None);
        assert_eq!(shared.find_or_keep(&[1; 100], 6), None, "the oldest is gone");
        assert_eq!(shared.numbers.len(), shared.order.len());
        assert!(shared.bytes <= BYTES_MAX, "{} bytes", shared.bytes);
    }
}

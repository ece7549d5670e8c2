//! Checks the sequence of draw numbers. Each is one more than the one before. A jump forward means
//! missing draws. A jump back means that the original forgot draws. A single number that does not
//! fit between its neighbours is damaged.

use super::place::LogPosition;

/// A place where draw numbers go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setback {
    /// First draw after it.
    pub place: LogPosition,
    /// Number of the draw before.
    pub from: u64,
    /// Number of the next draw; 1 if the original started again.
    pub to: u64,
    /// Whether a snapshot was written in between: then later snapshots miss some or all of the
    /// earlier draws.
    pub after_snapshot: bool,
    /// Number of units drawn before it, over all files.
    pub draws_before: u64,
}

/// A draw whose number is not the next one. The following draw decides what that means.
#[derive(Debug, Clone, Copy)]
struct Odd {
    expected: u64,
    found: u64,
    place: LogPosition,
    after_snapshot: bool,
    draws_before: u64,
}

#[derive(Debug, Default)]
pub(super) struct Numbering {
    last: Option<u64>,
    odd: Option<Odd>,
    max: u64,
    missing: u64,
    setbacks: u64,
    listed: Vec<Setback>,
    list_max: usize,
    /// First place where numbers go back.
    first_setback: Option<LogPosition>,
    /// Last place where numbers go back after a snapshot.
    last_after_snapshot: Option<LogPosition>,
    /// Last setback to number 1.
    anew: Option<Setback>,
}

impl Numbering {
    pub(super) fn new(list_max: usize) -> Self {
        Self { list_max, ..Self::default() }
    }

    /// Records a draw. Returns the place of the draw before it if that one's number proves to be
    /// damaged.
    pub(super) fn see(
        &mut self,
        place: LogPosition,
        request: u64,
        after_snapshot: bool,
        draws_before: u64,
    ) -> Option<LogPosition> {
        let expected = self.last.map_or(1, |last| last.saturating_add(1));
        self.last = Some(request);
        if let Some(odd) = self.odd.take() {
            if request != expected && request.checked_sub(1) == Some(odd.expected) {
                self.max = self.max.max(request);
                return Some(odd.place);
            }
            self.settle(odd);
        }
        if request == expected {
            self.max = self.max.max(request);
        } else {
            self.odd = Some(Odd { expected, found: request, place, after_snapshot, draws_before });
        }
        None
    }

    /// Ends the sequence.
    pub(super) fn end(&mut self) {
        if let Some(odd) = self.odd.take() {
            self.settle(odd);
        }
    }

    fn settle(&mut self, odd: Odd) {
        self.max = self.max.max(odd.found);
        if odd.found > odd.expected {
            self.missing = self.missing.saturating_add(odd.found - odd.expected);
        } else {
            self.set_back(Setback {
                place: odd.place,
                from: odd.expected.saturating_sub(1),
                to: odd.found,
                after_snapshot: odd.after_snapshot,
                draws_before: odd.draws_before,
            });
        }
    }

    pub(super) fn set_back(&mut self, setback: Setback) {
        self.setbacks += 1;
        self.first_setback.get_or_insert(setback.place);
        if setback.after_snapshot {
            self.last_after_snapshot = Some(setback.place);
            self.anew = Some(setback).filter(|setback| setback.to == 1).or(self.anew);
        }
        if self.listed.len() < self.list_max {
            self.listed.push(setback);
        }
    }

    pub(super) fn last(&self) -> Option<u64> {
        self.last
    }

    /// Returns the largest number that is not damaged.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    pub(super) fn setbacks(&self) -> u64 {
        self.setbacks
    }

    pub(super) fn listed(&self) -> &[Setback] {
        &self.listed
    }

    pub(super) fn first_setback(&self) -> Option<LogPosition> {
        self.first_setback
    }

    pub(super) fn last_after_snapshot(&self) -> Option<LogPosition> {
        self.last_after_snapshot
    }

    pub(super) fn anew(&self) -> Option<Setback> {
        self.anew
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbering after these draws, and the damaged ones.
    fn seen(requests: &[u64]) -> (Numbering, Vec<u64>) {
        let mut numbering = Numbering::new(10);
        let damaged = requests.iter().zip(0..).filter_map(|(&request, offset)| {
            numbering.see(LogPosition { file: 0, offset }, request, false, offset).map(|place| place.offset)
        });
        let damaged = damaged.collect();
        numbering.end();
        (numbering, damaged)
    }

    #[test]
    fn numbers_in_order_say_nothing() {
        let (numbering, damaged) = seen(&[1, 2, 3, 4]);
        assert_eq!((numbering.max(), numbering.missing(), numbering.setbacks()), (4, 0, 0));
        assert!(damaged.is_empty());
    }

    #[test]
    fn a_jump_forward_is_missing_draws() {
        let (numbering, damaged) = seen(&[3, 4, 9, 10]);
        assert_eq!((numbering.max(), numbering.missing(), numbering.setbacks()), (10, 6, 0));
        assert!(damaged.is_empty());
        assert_eq!(seen(&[1, 2, 9]).0.missing(), 6);
    }

    #[test]
    fn going_back_is_a_setback() {
        let (numbering, damaged) = seen(&[1, 2, 3, 1, 2, 3, 4, 3, 4]);
        assert_eq!((numbering.max(), numbering.missing(), numbering.setbacks()), (4, 0, 2));
        assert!(damaged.is_empty());
        let setback = numbering.listed()[0];
        assert_eq!((setback.from, setback.to, setback.draws_before), (3, 1, 3));
        assert_eq!(numbering.listed()[1].place.offset, 7);
    }

    #[test]
    fn one_number_out_of_order_is_damaged() {
        for wrong in [1, 3, 9, u64::MAX] {
            let (numbering, damaged) = seen(&[1, 2, 3, wrong, 5, 6]);
            assert_eq!((numbering.max(), numbering.missing(), numbering.setbacks()), (6, 0, 0), "{wrong}");
            assert_eq!(damaged, [3], "{wrong}");
        }
    }
}

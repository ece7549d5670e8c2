//! Detection of hot counters: those at which a thread meets contention repeatedly.

use std::cell::Cell;

/// Number of consecutive contentions of a thread at one counter, with none at another in between,
/// that make it hot.
const HOT: u32 = 32;

thread_local! {
    /// Address of the last contended counter, and the number of contentions there.
    static MET: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
}

/// Records contention of the calling thread at `place`, and returns whether `place` is hot.
#[cold]
pub(crate) fn met_at(place: usize) -> bool {
    let (last, times) = MET.get();
    let times = if last == place { times + 1 } else { 1 };
    MET.set((place, times % HOT));
    times >= HOT
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_a_place_that_is_met_at_again_and_again_is_hot() {
        assert!((0..10 * HOT as usize).all(|round| !met_at(1 + round % 2)));
        let until_hot = (0..10 * HOT).find(|_| met_at(7));
        assert_eq!(until_hot, Some(HOT - 1));
    }
}

//! How far nodes may call each other directly, instead of through the transit queue: so that the stack stays small, however many
//! are in a row and however large the values are.

/// Each call has a few copies of its value on the stack, so large ones count by their size.
const BYTES_PER_LEVEL: usize = 256;

/// Beyond this many levels values go through the queue.
const LEVELS_MAX: u32 = 64;

/// How many levels a call of a node takes, with those of all that it calls directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Depth(u32);

impl Depth {
    /// Of a node whose values have so many bytes, those that it takes and those that it makes, and which directly calls one of this
    /// depth or none.
    pub(crate) fn of(bytes: usize, calls: Option<Self>) -> Self {
        Self(calls.map_or(0, |called| called.0) + levels(bytes))
    }

    /// This, if a node whose values have so many bytes may call the one of this depth directly.
    pub(crate) fn called_by(self, bytes: usize) -> Option<Self> {
        (self.0 + levels(bytes) <= LEVELS_MAX).then_some(self)
    }
}

/// What a node takes by itself. As many as there are is enough to say of a large value.
fn levels(bytes: usize) -> u32 {
    bytes.div_ceil(BYTES_PER_LEVEL).clamp(1, LEVELS_MAX as usize) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = 8_000;
    const HUGE: usize = usize::MAX;

    #[test]
    fn small_values_are_called_on_for_as_many_levels_as_there_are() {
        let mut depth = Depth::of(8, None);
        for _ in 1..LEVELS_MAX {
            let calls = depth.called_by(0);
            assert_eq!(calls, Some(depth));
            depth = Depth::of(0, calls);
        }
        assert_eq!(depth.called_by(8), None);
    }

    #[test]
    fn large_values_count_by_their_size_whatever_is_between_them() {
        let small_before_large = Depth::of(8, Depth::of(LARGE, None).called_by(8));
        assert_eq!(small_before_large, Depth(33));
        assert_eq!(small_before_large.called_by(LARGE), None);
        assert_eq!(Depth::of(LARGE, None).called_by(LARGE), Some(Depth(32)));
        assert_eq!(Depth::of(HUGE, None).called_by(8), None);
        assert_eq!(Depth::of(8, None).called_by(HUGE), None);
    }
}

//! Limits how far nodes call each other directly instead of through the transit queue. This bounds
//! the stack for chains of any length and values of any size.

/// Each call has a few copies of its value on the stack, so large values count by their size.
const BYTES_PER_LEVEL: usize = 256;

/// Beyond this many levels values go through the queue.
const LEVELS_MAX: u32 = 64;

/// Number of levels that a call of a node takes, including all nodes that it calls directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Depth(u32);

impl Depth {
    /// Depth of a node whose values, taken and made, have this many bytes, and that directly calls
    /// a node of depth `calls`.
    pub(crate) fn of(bytes: usize, calls: Option<Self>) -> Self {
        Self(calls.map_or(0, |called| called.0) + levels(bytes))
    }

    /// Returns this depth if a node whose values have this many bytes may directly call a node of
    /// it.
    pub(crate) fn called_by(self, bytes: usize) -> Option<Self> {
        (self.0 + levels(bytes) <= LEVELS_MAX).then_some(self)
    }
}

/// Levels of a node alone. Large values are clamped to the maximum.
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

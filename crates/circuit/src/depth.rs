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
    /// Of a node that takes an `E` and directly calls one of this depth, or none.
    pub(crate) const fn of<E>(calls: Option<Self>) -> Self {
        let behind = match calls {
            Some(called) => called.0,
            None => 0,
        };
        Self(behind + levels::<E>())
    }

    /// This, if a node that takes an `E` may call the one of this depth directly.
    pub(crate) fn called_by<E>(self) -> Option<Self> {
        (self.0 + levels::<E>() <= LEVELS_MAX).then_some(self)
    }
}

/// What a node that takes an `E` takes itself. As many as there are is enough to say of a large value.
const fn levels<E>() -> u32 {
    let levels = size_of::<E>().div_ceil(BYTES_PER_LEVEL);
    match levels {
        0 => 1,
        _ if levels > LEVELS_MAX as usize => LEVELS_MAX,
        _ => levels as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Large = [u8; 8_000];
    type Huge = [u8; 1 << 40];

    #[test]
    fn small_values_are_called_on_for_as_many_levels_as_there_are() {
        let mut depth = Depth::of::<u64>(None);
        for _ in 1..LEVELS_MAX {
            let calls = depth.called_by::<()>();
            assert_eq!(calls, Some(depth));
            depth = Depth::of::<()>(calls);
        }
        assert_eq!(depth.called_by::<u64>(), None);
    }

    #[test]
    fn large_values_count_by_their_size_whatever_is_between_them() {
        let small_before_large = Depth::of::<u64>(Depth::of::<Large>(None).called_by::<u64>());
        assert_eq!(small_before_large, Depth(33));
        assert_eq!(small_before_large.called_by::<Large>(), None);
        assert_eq!(Depth::of::<Large>(None).called_by::<Large>(), Some(Depth(32)));
        assert_eq!(Depth::of::<Huge>(None).called_by::<u64>(), None);
        assert_eq!(Depth::of::<u64>(None).called_by::<Huge>(), None);
    }
}

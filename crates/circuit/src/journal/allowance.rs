//! How much memory the reading of a journal may take, which may be anybody's.

use std::cell::Cell;

use crate::name::Name;

thread_local! {
    /// What is left to the journal that is being read on this thread.
    static LEFT: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// What may still be taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// In the memory of values, beyond the bytes that they are read from.
    pub(super) bytes: u64,
    /// Of the names that are new to the process, which are never freed.
    pub(super) names: u32,
    pub(super) exceeded: Option<Limit>,
}

/// What was asked for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Bytes,
    Names,
}

impl Allowance {
    /// Has what is read meanwhile take from this.
    pub(super) fn during<R>(&mut self, read: impl FnOnce() -> R) -> R {
        let _within = Within { outer: LEFT.replace(Some(*self)), allowance: self };
        read()
    }
}

/// The time within which something takes from an allowance.
struct Within<'a> {
    outer: Option<Allowance>,
    allowance: &'a mut Allowance,
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        if let Some(left) = LEFT.replace(self.outer) {
            *self.allowance = left;
        }
    }
}

/// Takes so much memory for values; none if that is more than is left. What is read from elsewhere than a journal has no limit.
pub(super) fn take_bytes(bytes: usize) -> Option<()> {
    let Some(mut left) = LEFT.get() else { return Some(()) };
    let rest = left.bytes.checked_sub(bytes as u64);
    match rest {
        Some(rest) => left.bytes = rest,
        None => left.exceeded = Some(Limit::Bytes),
    }
    LEFT.set(Some(left));
    rest.map(drop)
}

/// The name of this path; none if it is none, or would take more new names than are left.
pub(super) fn name(path: &str) -> Option<Name> {
    if let Some(mut left) = LEFT.get()
        && Name::is_valid(path)
    {
        let rest = left.names.checked_sub(Name::count_missing(path));
        match rest {
            Some(rest) => left.names = rest,
            None => left.exceeded = Some(Limit::Names),
        }
        LEFT.set(Some(left));
        rest?;
    }
    Name::new(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_takes_from_the_allowance_of_its_time() {
        let mut allowance = Allowance { bytes: 5, names: 3, exceeded: None };
        let within = || (take_bytes(3), name("allowance.of.three").is_some(), name("allowance.of").is_some());
        assert_eq!(allowance.during(within), (Some(()), true, true));
        assert_eq!((allowance.bytes, allowance.names, allowance.exceeded), (2, 0, None));
        assert_eq!(allowance.during(|| take_bytes(3)), None);
        assert_eq!(allowance.exceeded, Some(Limit::Bytes));
        assert!(allowance.during(|| name("allowance.of.more")).is_none());
        assert_eq!(allowance.exceeded, Some(Limit::Names));
        assert_eq!(take_bytes(usize::MAX), Some(()));
        assert_eq!(name("allowance.of.more").map(|name| name.depth()), Some(3));
    }
}

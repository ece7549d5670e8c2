//! Limits the memory that reading an untrusted journal may take.

use std::cell::Cell;

use crate::identity::name::Name;

thread_local! {
    /// The rest of the allowance of the journal that is being read on this thread.
    static LEFT: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// What reading may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Memory of values, beyond the bytes that they are read from.
    pub(super) bytes: u64,
    /// Memory of texts and of names that are new to the process: kept while the journal is read, or
    /// longer.
    pub(super) kept: u64,
    /// Number of names that are new to the process, which are never freed.
    pub(super) names: u64,
    /// Number of subjects that captures refer to by number.
    pub(super) subjects: u64,
    pub(super) exceeded: Option<Limit>,
}

/// The limit that was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Bytes,
    Names,
    Subjects,
}

impl Allowance {
    /// Counts what `read` takes against this allowance.
    pub(super) fn during<R>(&mut self, read: impl FnOnce() -> R) -> R {
        let _within = Within { outer: LEFT.replace(Some(*self)), allowance: self };
        read()
    }
}

/// Scope in which an allowance is active.
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

/// Takes memory for values; none if that exceeds the rest. Without an active allowance there is no
/// limit.
pub(super) fn take_bytes(bytes: usize) -> Option<()> {
    take(Limit::Bytes, |left| &mut left.bytes, bytes as u64)
}

/// As [`take_bytes`], for memory that is kept.
pub(super) fn keep_bytes(bytes: usize) -> Option<()> {
    take(Limit::Bytes, |left| &mut left.kept, bytes as u64)
}

/// Takes a subject, which is kept; none if there are too many.
pub(super) fn take_subject() -> Option<()> {
    take(Limit::Subjects, |left| &mut left.subjects, 1)
}

/// Returns the name of this path; none if it is invalid, or exceeds the allowance for new names or
/// their text.
pub(super) fn name(path: &str) -> Option<Name> {
    if LEFT.get().is_some() && Name::is_valid(path) {
        let missing = Name::count_missing(path);
        take(Limit::Names, |left| &mut left.names, u64::from(missing))?;
        keep_bytes(if missing == 0 { 0 } else { path.len() })?;
    }
    Name::new(path).ok()
}

/// Takes `number` from this limit; none if that exceeds the rest.
fn take(limit: Limit, of: impl Fn(&mut Allowance) -> &mut u64, number: u64) -> Option<()> {
    let Some(mut left) = LEFT.get() else { return Some(()) };
    let rest = of(&mut left).checked_sub(number);
    match rest {
        Some(rest) => *of(&mut left) = rest,
        None => left.exceeded = Some(limit),
    }
    LEFT.set(Some(left));
    rest.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_takes_from_the_allowance_of_its_time() {
        let mut allowance = Allowance { bytes: 5, kept: 30, names: 3, subjects: 1, exceeded: None };
        let within = || (take_bytes(3), name("allowance.of.three").is_some(), name("allowance.of").is_some());
        assert_eq!(allowance.during(within), (Some(()), true, true));
        assert_eq!((allowance.bytes, allowance.kept, allowance.names, allowance.exceeded), (2, 12, 0, None));
        assert_eq!(allowance.during(|| take_bytes(3)), None);
        assert_eq!(allowance.exceeded, Some(Limit::Bytes));
        assert!(allowance.during(|| name("allowance.of.more")).is_none());
        assert_eq!(allowance.exceeded, Some(Limit::Names));
        assert_eq!(allowance.during(|| (keep_bytes(12), keep_bytes(1))), (Some(()), None));
        assert_eq!(allowance.exceeded, Some(Limit::Bytes));
        assert_eq!(allowance.during(|| (take_subject(), take_subject())), (Some(()), None));
        assert_eq!(allowance.exceeded, Some(Limit::Subjects));
        assert_eq!((take_bytes(usize::MAX), take_subject()), (Some(()), Some(())));
        assert_eq!(name("allowance.of.more").map(|name| name.depth()), Some(3));
    }
}

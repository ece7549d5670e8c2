//! How many entries a group has read, and how many are ahead of it, as Redis 7 computes them.

use super::Stream;
use super::group::Group;
use super::id::Id;

impl Stream {
    /// Whether an entry from an ID on may have been deleted: only the greatest deleted ID is known.
    fn may_lack_entries_from(&self, id: Id) -> bool {
        let deleted = self.max_deleted();
        !self.has_no_entries() && deleted != Id::MIN && self.first() <= deleted && id <= deleted
    }

    /// Returns how many entries were added up to an ID; `None` if that is not known.
    pub(super) fn added_up_to(&self, id: Id) -> Option<u64> {
        let (added, length) = (self.added(), self.state.length);
        if added == 0 {
            return Some(0);
        }
        if length == 0 && id <= self.last() {
            return Some(added);
        }
        if id >= self.last() {
            return (id == self.last()).then_some(added);
        }
        let first = self.first();
        if self.max_deleted() == Id::MIN || self.max_deleted() < first {
            if id < first {
                return Some(added.saturating_sub(length));
            }
            if id == first {
                return Some(added.saturating_sub(length) + 1);
            }
        }
        None
    }

    /// Returns how many entries a group still has to read; `None` if that is not known. Negative if
    /// `XGROUP` has set that it read more than there were.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let added = self.added();
        if added == 0 {
            return Some(0);
        }
        let read = match group.entries_read() {
            Some(read) if !self.may_lack_entries_from(group.last()) => read,
            _ => self.added_up_to(group.last())?,
        };
        Some(added.cast_signed().wrapping_sub(read.cast_signed()))
    }

    /// Returns how many entries a group has read once an entry is delivered to it.
    pub(super) fn read_with(&self, entries_read: Option<u64>, id: Id) -> Option<u64> {
        match entries_read {
            Some(read) if !self.may_lack_entries_from(id) => Some(read.saturating_add(1)),
            _ if self.added() > 0 => self.added_up_to(id),
            unknown => unknown,
        }
    }
}

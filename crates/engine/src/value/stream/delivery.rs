//! Delivery of entries to the consumers of a group.

use super::id::Id;
use super::{Forward, Group, Stream};

impl Stream {
    /// Iterates over the entries that no consumer of a group has got.
    pub fn undelivered(&self, group: &Group) -> Forward<'_> {
        // Behind the greatest ID there is nothing: a range that ends before it begins.
        let (from, to) = group.last().next().map_or((Id::MAX, Id::MIN), |from| (from, Id::MAX));
        self.range(from, to)
    }

    /// Whether there are entries that no consumer of a group has got.
    pub fn has_undelivered(&self, group: &Group) -> bool {
        self.last_entry().is_some_and(|last| last > group.last())
    }

    /// Notes that the next of the [`Stream::undelivered`] entries, with these IDs, are delivered to a
    /// consumer, which is created if needed. Without `acknowledging`, the entries do not become pending.
    /// Returns whether the consumer is new; `None` if there is no such group.
    pub fn deliver(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        ids: &[Id],
        acknowledging: bool,
        now_ms: u64,
    ) -> Option<bool> {
        let mut entries_read = self.group(group)?.entries_read();
        for id in ids {
            entries_read = self.read_with(entries_read, *id);
        }
        let group = self.group_mut(group)?;
        group.entries_read = entries_read;
        if let Some(last) = ids.last() {
            group.last = *last;
        }
        let seen = group.see(consumer, now_ms);
        let number = seen.or_else(|| group.create_consumer(consumer, now_ms))?;
        if acknowledging {
            ids.iter().for_each(|id| group.deliver(*id, number, now_ms));
        }
        Some(seen.is_none())
    }
}

//! The latest draws, for clients that want to see recent results.

use crate::persist::record::{Cursor, put_varint};
use std::collections::VecDeque;
use tidemark_pool::Event;

/// Draws that are kept with their times. The log has all draws.
const KEPT: usize = 256;

/// A draw that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// Number of the draw.
    pub number: u64,
    /// Time of the draw. Microseconds since 1970.
    pub time_us: u64,
    /// Index of the drawn item, if any.
    pub item: Option<u32>,
}

/// The latest draws, oldest first. Their numbers follow from the number of the next draw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Recent(VecDeque<(u64, Option<u32>)>);

impl Recent {
    /// Records the draws of an event.
    #[inline]
    pub(super) fn note(&mut self, time_us: u64, event: &Event<'_>) {
        match event {
            Event::Drew(item) => self.push(time_us, *item),
            Event::DrewDifferent { items } | Event::Reserved { items, .. } => {
                items.iter().for_each(|item| self.push(time_us, *item));
            }
            Event::Asked(asked) => asked.items.iter().for_each(|item| self.push(time_us, *item)),
            _ => {}
        }
    }

    #[inline]
    fn push(&mut self, time_us: u64, item: Option<u32>) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back((time_us, item));
    }

    /// Iterates over the latest draws, newest first. `next_draw` is the number of the next draw.
    pub(super) fn iter(&self, next_draw: u64) -> impl ExactSizeIterator<Item = Past> {
        self.0.iter().rev().enumerate().map(move |(back, &(time_us, item))| Past {
            number: next_draw - 1 - back as u64,
            time_us,
            item,
        })
    }

    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        put_varint(into, self.0.len() as u64);
        for (time_us, item) in &self.0 {
            put_varint(into, *time_us);
            put_varint(into, item.map_or(0, |item| u64::from(item) + 1));
        }
    }

    /// Parses the draws of a pool with `items` items and this next draw.
    pub(super) fn decode(bytes: &mut Cursor<'_>, next_draw: u64, items: usize) -> Option<Self> {
        let count = usize::try_from(bytes.varint()?).ok()?;
        if count > KEPT || count as u64 > next_draw {
            return None;
        }
        let mut recent = Self::default();
        for _ in 0..count {
            let time_us = bytes.varint()?;
            let item = match bytes.varint()?.checked_sub(1) {
                None => None,
                Some(item) => Some(u32::try_from(item).ok().filter(|&item| (item as usize) < items)?),
            };
            recent.push(time_us, item);
        }
        Some(recent)
    }
}

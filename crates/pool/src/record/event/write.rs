//! Encoding of events.

use super::asked::Asked;
use super::{Event, tag};
use crate::catalogue::item::Stock;
use crate::ending::Ending;
use crate::record::bytes::{put_bytes, put_number};
use crate::repeats::Repeats;

/// Encoder of events. Appending allocates only to grow the buffer.
///
/// ```
/// use tidemark_pool::{Events, Event, Recorder};
///
/// let mut recorder = Recorder::default();
/// recorder.drew(Some(3));
/// recorder.drew(None);
/// assert_eq!(recorder.bytes(), [19, 0]);
/// let events: Result<Vec<_>, _> = Events::new(recorder.bytes()).collect();
/// assert_eq!(events, Ok(vec![Event::Drew(Some(3)), Event::Drew(None)]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    bytes: Vec<u8>,
    draws: u64,
}

/// A position in a [`Recorder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    bytes: usize,
    draws: u64,
}

impl Recorder {
    /// Returns the bytes written since the last [`clear`](Self::clear).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of draws, including reserved ones.
    pub fn draws(&self) -> u64 {
        self.draws
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Empties the recorder and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.draws = 0;
    }

    /// Returns the current position, for [`back_to`](Self::back_to).
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), draws: self.draws }
    }

    /// Returns the bytes after a mark that is younger than the last [`clear`](Self::clear).
    ///
    /// # Panics
    /// If there is less than at the mark.
    pub fn since(&self, mark: Mark) -> &[u8] {
        &self.bytes[mark.bytes..]
    }

    /// Drops everything after a mark that is younger than the last [`clear`](Self::clear).
    ///
    /// # Panics
    /// If there is less than at the mark.
    pub fn back_to(&mut self, mark: Mark) {
        let (bytes, draws) = (self.bytes.len(), self.draws);
        assert!(
            mark.bytes <= bytes && mark.draws <= draws,
            "{bytes} bytes with {draws} draws cannot go back to {mark:?}"
        );
        self.bytes.truncate(mark.bytes);
        self.draws = mark.draws;
    }

    /// Appends a draw. One to five bytes.
    #[inline]
    pub fn drew(&mut self, item: Option<u32>) {
        self.draws += 1;
        put_number(&mut self.bytes, item.map_or(tag::NOTHING, |item| tag::ITEMS + u64::from(item)));
    }

    /// Appends an event.
    pub fn record(&mut self, event: &Event<'_>) {
        match event {
            Event::Drew(item) => self.drew(*item),
            Event::DrewDifferent { items } => {
                self.numbers(&[tag::DREW_DIFFERENT, items.len() as u64]);
                items.iter().for_each(|item| self.drew(*item));
            }
            Event::Reserved { items, repeats, until_us } => {
                let tag = match repeats {
                    Repeats::Allowed => tag::RESERVED,
                    Repeats::Excluded => tag::RESERVED_DIFFERENT,
                };
                self.numbers(&[tag, *until_us, items.len() as u64]);
                items.iter().for_each(|item| self.drew(*item));
            }
            Event::Asked(asked) => self.asked(asked),
            Event::Ended { number, how } => self.numbers(&[ending(*how), *number]),
            Event::Changed { item, weight, stock } => {
                self.numbers(&[tag::CHANGED, u64::from(*item), *weight, stocked(*stock)]);
            }
            Event::Added { id, weight, stock } => {
                self.numbers(&[tag::ADDED, *weight, stocked(*stock)]);
                put_bytes(&mut self.bytes, id.as_bytes());
            }
            Event::Removed { item } => self.numbers(&[tag::REMOVED, u64::from(*item)]),
            Event::GivenBack { item, count } => self.numbers(&[tag::GIVEN_BACK, u64::from(*item), *count]),
            Event::GivenBackBy { user, now_ms, item, count } => {
                self.numbers(&[tag::GIVEN_BACK_BY]);
                put_bytes(&mut self.bytes, user);
                self.numbers(&[*now_ms, u64::from(*item), *count]);
            }
            Event::Advanced { now_ms } => self.numbers(&[tag::ADVANCED, *now_ms]),
            Event::Epoch { client_seed, after } => {
                self.numbers(&[tag::EPOCH]);
                put_bytes(&mut self.bytes, client_seed);
                self.bytes.extend_from_slice(after.reveal());
            }
        }
    }

    fn asked(&mut self, asked: &Asked<'_>) {
        self.numbers(&[tag::ASKED]);
        asked.write_head(&mut self.bytes);
        asked.items.iter().for_each(|item| self.drew(*item));
    }

    fn numbers(&mut self, numbers: &[u64]) {
        numbers.iter().for_each(|&number| put_number(&mut self.bytes, number));
    }
}

fn ending(how: Ending) -> u64 {
    match how {
        Ending::Confirmed => tag::CONFIRMED,
        Ending::Cancelled => tag::CANCELLED,
        Ending::Expired => tag::EXPIRED,
    }
}

/// Encodes a stock: 0 if unlimited, otherwise the number left plus 1.
fn stocked(stock: Stock) -> u64 {
    match stock {
        Stock::Unlimited => 0,
        Stock::Limited(left) => left + 1,
    }
}

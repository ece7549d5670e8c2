//! Decoding of events.

use super::tag::{self, drawn};
use super::{Event, asked};
use crate::catalogue::ITEMS_MAX;
use crate::catalogue::item::{AMOUNT_MAX, Stock};
use crate::draw::secret::Secret;
use crate::ending::Ending;
use crate::record::bytes::Reader;
use crate::repeats::Repeats;

/// Iterator over encoded events. It ends after malformed bytes.
#[derive(Debug, Clone)]
pub struct Events<'a> {
    reader: Reader<'a>,
    is_over: bool,
}

/// The bytes are not an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("what begins at byte {offset} is no event of a pool")]
pub struct Malformed {
    /// Position of the malformed event, in bytes from the beginning.
    pub offset: usize,
}

impl<'a> Events<'a> {
    /// Reads the events in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), is_over: false }
    }

    /// Returns the result of the next event if it is a draw. Otherwise returns `None` and consumes
    /// nothing. Most events are draws; this avoids moving them as [`Event`]s, which takes longer
    /// than all the rest.
    ///
    /// ```
    /// use tidemark_pool::{Ending, Event, Events};
    ///
    /// let mut events = Events::new(&[19, 0, 2, 7]);
    /// assert_eq!([events.next_drew(), events.next_drew(), events.next_drew()], [Some(Some(3)), Some(None), None]);
    /// assert_eq!(events.next(), Some(Ok(Event::Ended { number: 7, how: Ending::Confirmed })));
    /// ```
    #[inline]
    pub fn next_drew(&mut self) -> Option<Option<u32>> {
        let mut ahead = self.reader;
        let item = if self.is_over { None } else { drawn(ahead.number()?) };
        if item.is_some() {
            self.reader = ahead;
        }
        item
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<Event<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.reader.is_at_end() {
            return None;
        }
        let offset = self.reader.offset();
        let event = event(&mut self.reader).ok_or(Malformed { offset });
        self.is_over = event.is_err();
        Some(event)
    }
}

#[inline]
fn event<'a>(reader: &mut Reader<'a>) -> Option<Event<'a>> {
    let first = reader.number()?;
    match drawn(first) {
        Some(item) => Some(Event::Drew(item)),
        None => other(first, reader),
    }
}

fn other<'a>(tag: u64, reader: &mut Reader<'a>) -> Option<Event<'a>> {
    let ended = |reader: &mut Reader<'a>, how| Some(Event::Ended { number: reader.number()?, how });
    match tag {
        tag::DREW_DIFFERENT => Some(Event::DrewDifferent { items: items(reader)? }),
        tag::RESERVED | tag::RESERVED_DIFFERENT => {
            let repeats = if tag == tag::RESERVED { Repeats::Allowed } else { Repeats::Excluded };
            let until_us = reader.number()?;
            Some(Event::Reserved { items: items(reader)?, repeats, until_us })
        }
        tag::ASKED => Some(Event::Asked(Box::new(asked::read(reader)?))),
        tag::CONFIRMED => ended(reader, Ending::Confirmed),
        tag::CANCELLED => ended(reader, Ending::Cancelled),
        tag::EXPIRED => ended(reader, Ending::Expired),
        tag::CHANGED => {
            Some(Event::Changed { item: item(reader)?, weight: reader.number()?, stock: stock(reader)? })
        }
        tag::ADDED => {
            let (weight, stock) = (reader.number()?, stock(reader)?);
            Some(Event::Added { id: reader.text()?, weight, stock })
        }
        tag::REMOVED => Some(Event::Removed { item: item(reader)? }),
        tag::GIVEN_BACK => Some(Event::GivenBack { item: item(reader)?, count: reader.number()? }),
        tag::GIVEN_BACK_BY => {
            let (user, now_ms) = (asked::name(reader)?, reader.number()?);
            Some(Event::GivenBackBy { user, now_ms, item: item(reader)?, count: reader.number()? })
        }
        tag::ADVANCED => Some(Event::Advanced { now_ms: reader.number()? }),
        tag::EPOCH => {
            let client_seed = reader.bytes()?;
            Some(Event::Epoch { client_seed, after: Secret::new(reader.array()?) })
        }
        _ => None,
    }
}

/// Reads the results of several draws, at least one.
fn items(reader: &mut Reader<'_>) -> Option<Vec<Option<u32>>> {
    let count: usize = reader.small()?;
    let items: Option<Vec<_>> = (0..count).map(|_| drawn(reader.number()?)).collect();
    items.filter(|items| !items.is_empty())
}

fn item(reader: &mut Reader<'_>) -> Option<u32> {
    reader.small().filter(|&item: &u32| (item as usize) < ITEMS_MAX)
}

fn stock(reader: &mut Reader<'_>) -> Option<Stock> {
    match reader.number()?.checked_sub(1) {
        None => Some(Stock::Unlimited),
        Some(left) => (left <= AMOUNT_MAX).then_some(Stock::Limited(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::by::{By, NAME_BYTES_MAX};
    use crate::record::event::{Asked, Recorder};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Fields that events borrow.
    #[derive(Debug, Clone)]
    struct Owned {
        text: String,
        seed: Vec<u8>,
        items: Vec<Option<u32>>,
        numbers: (u64, u64),
        stock: Stock,
        names: (Option<Vec<u8>>, Option<Vec<u8>>),
        kind: u8,
    }

    impl Owned {
        fn event(&self) -> Event<'_> {
            let Self { text, seed, items, numbers: (one, other), stock, kind, .. } = self;
            let (number, weight, item) = (*one, *other, items[0].unwrap_or_default());
            match kind % 12 {
                10 => self.asked(),
                11 => Event::Advanced { now_ms: number },
                0 | 1 => Event::Drew(items[0]),
                2 if seed.is_empty() => Event::DrewDifferent { items: items.clone() },
                2 => {
                    let repeats = if seed.len() == 1 { Repeats::Allowed } else { Repeats::Excluded };
                    Event::Reserved { items: items.clone(), repeats, until_us: number }
                }
                3 => Event::Ended { number, how: Ending::Confirmed },
                4 => Event::Ended { number, how: Ending::Cancelled },
                5 => Event::Ended { number, how: Ending::Expired },
                6 => Event::Changed { item, weight, stock: *stock },
                7 => Event::Added { id: text, weight, stock: *stock },
                8 if seed.is_empty() => Event::Removed { item },
                8 if let Some(user) = &self.names.0 => {
                    Event::GivenBackBy { user, now_ms: weight, item, count: number }
                }
                8 => Event::GivenBack { item, count: number },
                _ => Event::Epoch { client_seed: seed, after: Secret::new([*kind; 32]) },
            }
        }

        /// Draws of a call with or without a user.
        fn asked(&self) -> Event<'_> {
            let (user, request) = (self.names.0.as_deref(), self.names.1.as_deref());
            let (items, number) = (self.items.clone(), self.numbers.0);
            if user.is_none() && request.is_none() {
                let asked = Asked { by: By::default(), items, repeats: Repeats::Allowed, until_us: None };
                return match asked.items.len() {
                    1 => Event::DrewDifferent { items: asked.items },
                    _ => Event::Asked(Box::new(asked)),
                };
            }
            let until_us = (self.seed.len() == 2).then_some(number);
            let now_ms = if self.seed.len() == 3 { self.numbers.1 } else { 0 };
            let repeats = if self.kind < 128 { Repeats::Allowed } else { Repeats::Excluded };
            Event::Asked(Box::new(Asked { by: By { user, request, now_ms }, items, repeats, until_us }))
        }
    }

    fn owned() -> impl Strategy<Value = Owned> {
        let items = vec(prop::option::of(0..ITEMS_MAX as u32), 1..4);
        let stock = prop_oneof![Just(Stock::Unlimited), (0..=AMOUNT_MAX).prop_map(Stock::Limited)];
        let name = || prop::option::of(vec(any::<u8>(), 1..=NAME_BYTES_MAX));
        let seed = vec(any::<u8>(), 0..4);
        (".*", seed, items, any::<(u64, u64)>(), stock, (name(), name()), any::<u8>()).prop_map(
            |(text, seed, items, numbers, stock, names, kind)| Owned {
                text,
                seed,
                items,
                numbers,
                stock,
                names,
                kind,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_recorded_is_read_back(all in vec(owned(), 0..20)) {
            let mut recorder = Recorder::default();
            all.iter().for_each(|owned| recorder.record(&owned.event()));
            let read: Result<Vec<_>, _> = Events::new(recorder.bytes()).collect();
            prop_assert_eq!(read, Ok(all.iter().map(Owned::event).collect::<Vec<_>>()));
        }

        #[test]
        fn bytes_that_are_entries_are_those_that_these_entries_give(bytes in vec(any::<u8>(), 0..40)) {
            let mut recorder = Recorder::default();
            let mut end = bytes.len();
            let mut draws_apart = Vec::new();
            let mut events = Events::new(&bytes);
            loop {
                draws_apart.extend(std::iter::from_fn(|| events.next_drew()).map(|item| Ok(Event::Drew(item))));
                match events.next() {
                    Some(event) => draws_apart.push(event),
                    None => break,
                }
            }
            prop_assert_eq!(draws_apart, Events::new(&bytes).collect::<Vec<_>>());
            for event in Events::new(&bytes) {
                match event {
                    Ok(event) => recorder.record(&event),
                    Err(malformed) => end = malformed.offset,
                }
            }
            prop_assert_eq!(recorder.bytes(), &bytes[..end]);
        }
    }

    #[test]
    fn a_draw_of_a_request_takes_ten_bytes_more_if_the_id_has_eight() {
        for (item, bytes) in [(None, 11), (Some(111), 11), (Some(16_367), 12), (Some((1 << 21) - 17), 13)] {
            let mut recorder = Recorder::default();
            let (by, items) = (By::request(b"8 bytes."), vec![item]);
            let asked = Asked { by, items, repeats: Repeats::Allowed, until_us: None };
            recorder.record(&Event::Asked(Box::new(asked)));
            assert_eq!((recorder.bytes().len(), recorder.draws()), (bytes, 1), "{item:?}");
        }
    }

    #[test]
    fn a_draw_takes_as_many_bytes_as_its_items_number_needs() {
        for (item, bytes) in [
            (None, 1),
            (Some(111), 1),
            (Some(112), 2),
            (Some(16_367), 2),
            (Some(16_368), 3),
            (Some((1 << 21) - 17), 3),
        ] {
            let mut recorder = Recorder::default();
            recorder.drew(item);
            assert_eq!((recorder.bytes().len(), recorder.draws()), (bytes, 1), "{item:?}");
        }
    }
}

//! Serialisation of requests for snapshots.
//!
//! ```text
//! requests   count │ (id │ user │ first draw │ different │ until │ time │ count │ item*)*
//! ```
//!
//! The user is empty if there is none. `until` and items are stored plus 1, and 0 if there is none.

use super::{REQUEST_DRAWS_KEPT, REQUESTS_KEPT, Request, Requests};
use crate::by::{By, NAME_BYTES_MAX};
use crate::pool::draw::DRAWS_MAX;
use crate::record::bytes::{Reader, put_bytes, put_number};
use crate::repeats::Repeats;

impl Requests {
    pub(in crate::pool) fn write(&self, into: &mut Vec<u8>) {
        put_number(into, self.len() as u64);
        for (request, items) in self.iter() {
            put_bytes(into, &request.id);
            put_bytes(into, request.user.as_deref().unwrap_or_default());
            put_number(into, request.first);
            put_number(into, u64::from(request.repeats == Repeats::Excluded));
            // Only a deadline of `u64::MAX` saturates; it reads back one less.
            put_number(into, request.until_us.map_or(0, |until_us| until_us.saturating_add(1)));
            put_number(into, request.drawn_ms);
            put_number(into, u64::from(request.count));
            items.for_each(|item| put_number(into, item.map_or(0, |item| u64::from(item) + 1)));
        }
    }

    /// Reads the requests of a pool with `items` items and this next draw number.
    pub(in crate::pool) fn read(reader: &mut Reader<'_>, next_draw: u64, items: usize) -> Option<Self> {
        let mut requests = Self::default();
        for _ in 0..reader.small::<usize>().filter(|&count| count <= REQUESTS_KEPT)? {
            let (request, items) = read_one(reader, next_draw, items)?;
            let fits = requests.items.len() + items.len() <= REQUEST_DRAWS_KEPT || requests.len() == 0;
            if !fits || requests.find(&request.id).is_some() {
                return None;
            }
            requests.keep(request, items.into_iter());
        }
        Some(requests)
    }
}

fn read_one(
    reader: &mut Reader<'_>,
    next_draw: u64,
    items_max: usize,
) -> Option<(Request, Vec<Option<u32>>)> {
    let id = reader.bytes().filter(|id| (1..=NAME_BYTES_MAX).contains(&id.len()))?;
    let user = reader.bytes().filter(|user| user.len() <= NAME_BYTES_MAX)?;
    let by = By { user: Some(user).filter(|user| !user.is_empty()), ..By::request(id) };
    let first = reader.number()?;
    let repeats = match reader.number()? {
        0 => Repeats::Allowed,
        1 => Repeats::Excluded,
        _ => return None,
    };
    let until_us = reader.number()?.checked_sub(1);
    let by = By { now_ms: reader.number()?, ..by };
    let count: usize = reader.small().filter(|count| (1..=DRAWS_MAX).contains(count))?;
    if first.checked_add(count as u64).is_none_or(|end| end > next_draw) {
        return None;
    }
    let items = (0..count).map(|_| match reader.number()?.checked_sub(1) {
        None => Some(None),
        Some(item) if item < items_max as u64 => Some(Some(item as u32)),
        Some(_) => None,
    });
    let items: Option<Vec<_>> = items.collect();
    Some((Request::new(&by, first, repeats, until_us), items?))
}

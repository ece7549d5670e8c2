//! Draws of a named user or under a request ID.
//!
//! ```text
//! asked 12 │ what │ [request] │ [user] │ [time] │ [until] │ [count] │ item*      numbers: varints
//! ```
//!
//! *What* is one byte. Below 64 it is the length of the request ID less 1, and all other fields are
//! absent: one draw under a request ID. From 64 on, its bits say which fields are present; names
//! are preceded by their lengths. Without request ID and user it is a call of several draws of
//! which the last was impossible: such draws follow from the call, not from each draw alone.

use super::tag::drawn;
use crate::by::{By, NAME_BYTES_MAX};
use crate::record::bytes::{Reader, put_bytes, put_number};
use crate::repeats::Repeats;

/// Draws of one call by a user or under a request ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<'a> {
    /// User and request ID. If both are absent, these are several draws with repeats, not reserved,
    /// of which the last was impossible; all other anonymous draws are other events. The time is 0
    /// if nothing depends on it.
    pub by: By<'a>,
    /// Result of each draw.
    pub items: Vec<Option<u32>>,
    /// Whether an item may occur twice.
    pub repeats: Repeats,
    /// Deadline of the reservation, if the draws are reserved. Microseconds since 1970-01-01 UTC.
    pub until_us: Option<u64>,
}

const FLAGS: u64 = 64;
const HAS_REQUEST: u64 = 1;
const HAS_USER: u64 = 2;
const SEVERAL: u64 = 4;
const DIFFERENT: u64 = 8;
const SET_ASIDE: u64 = 16;
const TIMED: u64 = 32;

const _: () = assert!(NAME_BYTES_MAX <= FLAGS as usize && FLAGS + 2 * TIMED <= 128);

impl Asked<'_> {
    fn flags(&self) -> u64 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        flag(self.by.request.is_some(), HAS_REQUEST)
            | flag(self.by.user.is_some(), HAS_USER)
            | flag(self.items.len() > 1, SEVERAL)
            | flag(self.repeats == Repeats::Excluded, DIFFERENT)
            | flag(self.until_us.is_some(), SET_ASIDE)
            | flag(self.by.now_ms > 0, TIMED)
    }

    /// Returns whether these draws are encoded as this event, not as another.
    pub(crate) fn is_own_event(&self) -> bool {
        !self.items.is_empty() && (!self.by.is_anonymous() || self.flags() == SEVERAL)
    }

    /// Appends everything between the tag and the items.
    pub(super) fn write_head(&self, into: &mut Vec<u8>) {
        let (flags, draws) = (self.flags(), self.items.len());
        assert!(
            self.is_own_event(),
            "{draws} draws with the flags {flags} are no event, or another: no caller can have requested them"
        );
        if let (HAS_REQUEST, Some(request)) = (flags, self.by.request) {
            put_number(into, request.len() as u64 - 1);
            into.extend_from_slice(request);
            return;
        }
        put_number(into, FLAGS + flags);
        [self.by.request, self.by.user].into_iter().flatten().for_each(|name| put_bytes(into, name));
        let time = Some(self.by.now_ms).filter(|&now_ms| now_ms > 0);
        let count = Some(self.items.len() as u64).filter(|&count| count > 1);
        [time, self.until_us, count].into_iter().flatten().for_each(|number| put_number(into, number));
    }
}

/// Reads everything after the tag.
pub(super) fn read<'a>(reader: &mut Reader<'a>) -> Option<Asked<'a>> {
    let what = reader.number()?;
    let Some(flags) = what.checked_sub(FLAGS) else {
        let by = By::request(reader.take(what as usize + 1)?);
        let items = vec![drawn(reader.number()?)?];
        return Some(Asked { by, items, repeats: Repeats::Allowed, until_us: None });
    };
    // Draws with a shorter encoding must use that.
    let is_anonymous = flags & (HAS_REQUEST | HAS_USER) == 0;
    if flags >= 2 * TIMED || (is_anonymous && flags != SEVERAL) || flags == HAS_REQUEST {
        return None;
    }
    let has = |flag| flags & flag != 0;
    let request = if has(HAS_REQUEST) { Some(name(reader)?) } else { None };
    let user = if has(HAS_USER) { Some(name(reader)?) } else { None };
    let now_ms = if has(TIMED) { reader.number().filter(|&now_ms| now_ms > 0)? } else { 0 };
    let until_us = if has(SET_ASIDE) { Some(reader.number()?) } else { None };
    let count = if has(SEVERAL) { reader.small().filter(|&count: &usize| count > 1)? } else { 1 };
    let items: Option<Vec<_>> = (0..count).map(|_| drawn(reader.number()?)).collect();
    let repeats = if has(DIFFERENT) { Repeats::Excluded } else { Repeats::Allowed };
    Some(Asked { by: By { user, request, now_ms }, items: items?, repeats, until_us })
}

/// Reads the name of a user or a request ID.
pub(super) fn name<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    reader.bytes().filter(|name| (1..=NAME_BYTES_MAX).contains(&name.len()))
}

//! Appending: the caller's closure writes a record straight into the batch, under one short mutex.

use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

use tidemark_fault::{Fault, is_planted};

use crate::Lsn;
use crate::buffer::Cut;
use crate::entry::EntryEnd;
use crate::error::{AppendError, Failure};
use crate::format::{MARKER_BYTES_MAX, Step, raw};
use crate::ready::Ready;
use crate::segment_header::{HEADER_BYTES, SegmentHeader};
use crate::shared::{Parked, Position, Shared, State};

/// Kept free at the end of a segment: the marker that may open a batch, and the closing marker.
pub(crate) const RESERVE_BYTES: u64 = 2 * MARKER_BYTES_MAX as u64;

/// Records of at most this fraction of a segment need no reservation: see [`Shared::make_room`].
const SMALL_DIVISOR: u64 = 64;
/// Fraction of a segment that must be free next to reserved space when it is reserved ...
const SLACK_DIVISOR: u64 = 2;
/// ... and the fraction of it that small records leave free until the disk is known to be full.
const MARGIN_DIVISOR: u64 = 4;
/// Bytes that large records may fill of a group's entry together ...
const ENTRY_BYTES: u64 = 128 << 20;
/// ... and the size from which on they are large there, whatever the size of a segment.
const SMALL_IN_ENTRY_BYTES: usize = 1 << 20;
/// Growth limit of a payload in a text format: one byte becomes an escape of up to six characters.
pub(crate) const TEXT_FACTOR: u64 = 6;

/// Bytes that a frame may need beyond its own size in an otherwise empty segment.
const SEGMENT_OVERHEAD_BYTES: u64 = HEADER_BYTES as u64 + RESERVE_BYTES;

/// Space reserved in the log for one large record. Appending the record uses it, dropping this
/// releases it: see [`Log::make_room`](crate::Log::make_room).
#[derive(Debug)]
#[must_use = "room is given back when this is dropped"]
pub struct Room<'a> {
    /// The log and the reserved bytes; `None` for a small record, which needs no reservation.
    kept: Option<(&'a Shared, u64)>,
}

impl Room<'_> {
    /// No reservation, for records that need none.
    pub const NONE: Self = Self { kept: None };

    /// Ends the reservation, under the lock that the append holds. Returns whether there was one.
    #[inline]
    fn redeem(mut self, state: &mut State) -> bool {
        let Some((_, bytes)) = self.kept.take() else { return false };
        state.promised_bytes -= bytes;
        true
    }
}

impl Drop for Room<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some((shared, bytes)) = self.kept.take() {
            shared.give_back_room(bytes);
        }
    }
}

impl Shared {
    /// Appends a record. `IS_ADMITTED` means that [`Shared::has_room_for`] admitted the record and
    /// its appender holds locks: it takes the emergency reserve instead of waiting.
    pub(crate) fn append<const IS_ADMITTED: bool>(
        &self,
        room: Room<'_>,
        time_us: u64,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Lsn, AppendError> {
        if kind == raw::MARKER {
            return Err(AppendError::ReservedKind);
        }
        let mut state = self.lock();
        let is_promised = room.redeem(&mut state);
        state.check()?;
        if state.follows {
            return Err(AppendError::Follows);
        }
        let (state, lsn) = self.append_locked::<IS_ADMITTED>(state, is_promised, time_us, kind, write)?;
        self.wake_committer(state);
        Ok(lsn)
    }

    /// Appends a record under the lock. The caller wakes the commit thread.
    #[inline]
    pub(crate) fn append_locked<'a, const IS_ADMITTED: bool>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        is_promised: bool,
        time_us: u64,
        kind: u8,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(MutexGuard<'a, State>, Lsn), AppendError> {
        let start = self.begin_frame(&mut state, time_us, kind);
        write(&mut state.buffer.bytes);
        let Some(payload_bytes) = state.buffer.bytes.len().checked_sub(start + raw::OVERHEAD_BYTES) else {
            // Bytes of other records were removed with it; nothing later may be acknowledged.
            drop(state);
            let error = std::io::Error::other("a payload writer removed bytes that it had not written");
            let failure = Failure::new("appending a record", error);
            self.fail(failure.clone());
            return Err(AppendError::Failed(failure));
        };
        if payload_bytes > self.options.max_record_bytes {
            state.buffer.bytes.truncate(start);
            return Err(AppendError::TooLarge { bytes: payload_bytes, limit: self.options.max_record_bytes });
        }
        let salt = state.position.map_or(0, |position| position.salt);
        self.codec.seal(&mut state.buffer.bytes, start, salt);
        if !self.place::<IS_ADMITTED>(&mut state, start, time_us, is_promised) {
            state = self.place_when_possible(state, start, time_us, kind)?;
        }
        let lsn = state.next;
        let appended = self.appended.load(Ordering::Relaxed);
        assert!(lsn.0 > appended, "record {lsn} is appended behind record {appended}");
        if !is_planted(Fault::Lsn) {
            state.next = lsn.next();
        }
        state.time_us = time_us;
        state.buffer.seal(lsn);
        if state.buffer.sealed >= self.options.buffer_bytes {
            // The buffer only grows here, so no waiter needs a notification.
            let _ = self.update_crowded(&state);
        }
        self.appended.store(lsn.0, Ordering::Release);
        Ok((state, lsn))
    }

    /// Prepares the buffer for a frame and writes the frame's head. Returns the frame's start.
    #[inline]
    fn begin_frame(&self, state: &mut State, time_us: u64, kind: u8) -> usize {
        let lsn = state.next;
        // A writer that panicked may have left half a frame.
        let sealed = state.buffer.sealed;
        state.buffer.bytes.truncate(sealed);
        if sealed == 0 && self.has_entries {
            state.buffer.open_with_entry(self.codec, lsn.previous(), time_us);
        } else if sealed == 0 {
            self.open_buffer(state, time_us);
        }
        let start = state.buffer.bytes.len();
        raw::begin(&mut state.buffer.bytes, lsn, time_us, kind);
        start
    }

    /// Puts a marker at the front of an empty buffer, unless the segment is full or the rest of it
    /// is reserved.
    pub(crate) fn open_buffer(&self, state: &mut State, time_us: u64) {
        let previous = state.next.previous();
        let kept = self.kept_bytes(state, false);
        let is_free = |position: &&mut Position| {
            kept == 0
                || position.offset + kept + MARKER_BYTES_MAX as u64 <= position.capacity
                || first_with_room(&state.ready, kept).is_some()
        };
        if let Some(position) =
            state.position.as_mut().filter(|position| position.offset <= position.capacity).filter(is_free)
        {
            state.buffer.open_with_marker(self.codec, previous, time_us, position.salt);
            position.offset += state.buffer.sealed as u64;
        }
    }

    /// Places the frame at `start` in a segment, with the entry's marker if it is the first of an
    /// entry, cutting to the next segment if necessary, without using other appenders' reserved space. Returns whether that was possible without waiting;
    /// with a reservation it always is.
    #[inline]
    fn place<const IS_ADMITTED: bool>(
        &self,
        state: &mut State,
        start: usize,
        time_us: u64,
        is_promised: bool,
    ) -> bool {
        let size = (state.buffer.bytes.len() - state.buffer.sealed) as u64;
        let kept = self.kept_bytes(state, is_promised);
        if let Some(position) = &mut state.position {
            let aged = self.options.segment_age.is_some_and(|age| {
                u128::from(time_us.saturating_sub(position.created_us)) >= age.as_micros()
            });
            let end = position.offset + size;
            let fits = end + kept <= position.capacity
                || (end <= position.capacity && first_with_room(&state.ready, kept).is_some());
            let stays = !aged || first_with_room(&state.ready, size + kept).is_none();
            if fits && stays {
                position.offset = end;
                if state.buffer.sealed == 0 {
                    state.buffer.marker_salt = position.salt;
                }
                let half_used = end + kept > position.capacity / 2;
                if (half_used || aged) && state.ready.is_empty() {
                    self.want_next(state);
                }
                return true;
            }
        }
        let index = first_with_room(&state.ready, size + kept);
        let ready = index.and_then(|index| state.ready.remove(index)).or_else(|| {
            // The record was admitted before the disk was full, or while the disk does not answer.
            let may_use_reserve = IS_ADMITTED || state.full.is_some();
            state.reserve.take_if(|reserve| may_use_reserve && reserve.has_room(size))
        });
        let Some(ready) = ready else { return false };
        self.cut_to(state, ready, start, time_us);
        // The appender waits for the next segment itself, and that notifies the other waiters.
        let _ = self.update_crowded(state);
        true
    }

    fn cut_to(&self, state: &mut State, ready: Ready, start: usize, time_us: u64) {
        let header = SegmentHeader {
            first_lsn: state.next,
            follows: Lsn(self.appended.load(Ordering::Acquire)),
            salt: state.random.u32(..),
            created_us: time_us,
            recycled: ready.recycled,
            // Which entry that is, is known when the batch is written.
            entry: self.has_entries.then(EntryEnd::default),
        };
        self.codec.reseal(&mut state.buffer.bytes[start..], header.salt);
        let at = state.buffer.sealed;
        if at == 0 {
            state.buffer.marker_salt = header.salt;
        }
        let size = (state.buffer.bytes.len() - at) as u64;
        state.position = Some(Position {
            offset: self.codec.encode_header(&header).len() as u64 + size,
            capacity: ready.bytes - RESERVE_BYTES,
            salt: header.salt,
            created_us: time_us,
        });
        state.buffer.cuts.push(Cut { at, ready, header });
    }

    /// Slow path: takes the frame out of the buffer, waits for a segment and retries. Other
    /// appenders may overtake; the record gets its LSN when it is placed.
    fn place_when_possible<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        start: usize,
        time_us: u64,
        kind: u8,
    ) -> Result<MutexGuard<'a, State>, AppendError> {
        let salt = state.position.map_or(0, |position| position.salt);
        let frame = state.buffer.bytes.split_off(start);
        let mut raw_frame = Vec::new();
        let step = self.codec.decode(&frame, salt, &mut raw_frame);
        let is_whole = matches!(step, Step::Frame { consumed, .. } if consumed == frame.len());
        assert!(is_whole, "a frame of {} bytes that waits for a segment reads as {step:?}", frame.len());
        // The frame may come to be the first of an entry, and bring its marker.
        let marker_bytes = if self.has_entries { raw::ENTRY_MARKER_BYTES } else { 0 };
        let unit_bytes = (frame.len() + marker_bytes) as u64;
        let raw_frame = if raw_frame.is_empty() { frame } else { raw_frame };
        let payload = &raw_frame[raw::OVERHEAD_BYTES..];
        loop {
            let needed = unit_bytes + self.kept_bytes(&state, false) + SEGMENT_OVERHEAD_BYTES;
            state = self.wait_for_segment(state, needed)?;
            let start = self.begin_frame(&mut state, time_us, kind);
            state.buffer.bytes.extend_from_slice(payload);
            let salt = state.position.map_or(0, |position| position.salt);
            self.codec.seal(&mut state.buffer.bytes, start, salt);
            if self.place::<false>(&mut state, start, time_us, false) {
                return Ok(state);
            }
            state.buffer.bytes.truncate(start);
        }
    }

    /// Waits until a record of `payload_bytes` fits, and reserves the space. Small records need no
    /// reservation: the next segment is prepared once half of one is used, and without it nothing
    /// is admitted.
    #[inline]
    pub(crate) fn make_room(&self, payload_bytes: usize) -> Result<Room<'_>, AppendError> {
        if self.is_small(payload_bytes) { Ok(Room::NONE) } else { self.promise_room(payload_bytes) }
    }

    #[inline]
    pub(crate) fn is_small(&self, payload_bytes: usize) -> bool {
        let is_small = payload_bytes as u64 <= self.options.segment_bytes / SMALL_DIVISOR;
        is_small && (!self.has_entries || payload_bytes <= SMALL_IN_ENTRY_BYTES)
    }

    /// All reserved space is contiguous, after the position or in one prepared segment, so it stays
    /// available in any order of appends. Small records may use the slack next to it except a
    /// margin; then they wait for the next segment or for a full disk. Appenders that wait at that
    /// moment, at most one per thread, may use the margin, which holds the largest small records of
    /// 16 threads.
    #[cold]
    fn promise_room(&self, payload_bytes: usize) -> Result<Room<'_>, AppendError> {
        let bytes = self.bytes_to_promise(payload_bytes);
        let mut state = self.lock();
        loop {
            state.check()?;
            if self.overfills_entry(&state, payload_bytes) {
                self.wake_writer(state.is_syncing);
                drop(self.wait_for_space(state));
                self.look_for_stall();
                state = self.lock();
                continue;
            }
            let Some(lacking) = self.lacking_bytes(&state, payload_bytes) else {
                state.promised_bytes += bytes;
                if state.ready.is_empty() {
                    // Otherwise writers of large records would wait for the next segment at half
                    // use of this one.
                    self.want_next(&mut state);
                }
                return Ok(Room { kept: Some((self, bytes)) });
            };
            drop(self.wait_for_segment(state, lacking)?);
            self.look_for_stall();
            state = self.lock();
            if let Some(stall) = &state.stall {
                return Err(AppendError::Stalled(stall.clone()));
            }
        }
    }

    fn bytes_to_promise(&self, payload_bytes: usize) -> u64 {
        let factor = if self.codec.preallocates() { 1 } else { TEXT_FACTOR };
        payload_bytes as u64 * factor + raw::OVERHEAD_BYTES as u64 + MARKER_BYTES_MAX as u64
    }

    /// Returns whether a large record has to wait until others have left the buffer: what is in it
    /// becomes one entry of the group, which is sent whole. A record alone may be larger.
    pub(crate) fn overfills_entry(&self, state: &State, payload_bytes: usize) -> bool {
        let held = state.buffer.sealed as u64 + state.promised_bytes;
        self.has_entries && held > 0 && held + self.bytes_to_promise(payload_bytes) > ENTRY_BYTES
    }

    /// Releases the space that a large record has not used.
    #[cold]
    fn give_back_room(&self, bytes: u64) {
        let mut state = self.lock();
        state.promised_bytes -= bytes;
        self.end_wait_for_entry(state);
    }

    /// Has those look again who wait until a large record fits into an entry.
    fn end_wait_for_entry(&self, mut state: MutexGuard<'_, State>) {
        if !self.has_entries {
            return;
        }
        if state.waiting_for_space > 0 {
            self.wakers.space.notify_all();
        }
        let was_awaited = std::mem::take(&mut state.is_room_awaited);
        drop(state);
        if was_awaited {
            self.announce();
        }
    }

    /// Returns the segment size that must be prepared before a record of `payload_bytes` can get a
    /// reservation; `None` if the space is there.
    pub(crate) fn lacking_bytes(&self, state: &State, payload_bytes: usize) -> Option<u64> {
        let slack = self.options.segment_bytes / SLACK_DIVISOR;
        let promised = state.promised_bytes + self.bytes_to_promise(payload_bytes);
        // A reservation that does not fit in any segment must not depend on this one.
        let in_position =
            promised <= slack && state.position.is_some_and(|at| at.offset + promised + slack <= at.capacity);
        let has_room = in_position || first_with_room(&state.ready, promised + slack).is_some();
        (!has_room).then_some(promised + slack + SEGMENT_OVERHEAD_BYTES)
    }

    /// Bytes that a record must leave free for other appenders: their reservations and, until the
    /// disk is known to be full, the margin, unless the record has a reservation itself.
    #[inline]
    fn kept_bytes(&self, state: &State, is_promised: bool) -> u64 {
        let leaves_margin = state.promised_bytes > 0 && !is_promised && state.full.is_none();
        let margin = if leaves_margin { self.options.segment_bytes / MARGIN_DIVISOR } else { 0 };
        state.promised_bytes + margin
    }

    /// Requests a segment of `bytes` and waits for a change.
    ///
    /// # Errors
    /// There is no space for the segment. Records of the usual size may continue while they fit.
    fn wait_for_segment<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        bytes: u64,
    ) -> Result<MutexGuard<'a, State>, AppendError> {
        if let Some(failure) = state.full.clone() {
            if state.wanted_bytes.is_some_and(|bytes| bytes > self.options.segment_bytes) {
                state.wanted_bytes = Some(0);
                self.wakers.housekeeping.notify_one();
            }
            return Err(AppendError::Full(failure));
        }
        self.want_segment(&mut state, bytes);
        self.wake_writer(state.is_syncing);
        state = self.wait_for_space(state);
        state.check()?;
        Ok(state)
    }

    /// Requests the next segment, if none is prepared or requested.
    #[cold]
    pub(crate) fn want_next(&self, state: &mut State) {
        if state.wanted_bytes.is_none() {
            self.want_segment(state, 0);
        }
        // Space only shrinks here, so no waiter needs a notification.
        let _ = self.update_crowded(state);
    }

    pub(crate) fn want_segment(&self, state: &mut State, bytes: u64) {
        state.wanted_bytes = state.wanted_bytes.max(Some(bytes));
        self.wakers.housekeeping.notify_one();
    }

    #[inline]
    fn wake_committer(&self, mut state: MutexGuard<'_, State>) {
        let wake = match state.parked {
            Parked::Idle => true,
            Parked::Timed => state.buffer.sealed >= self.write_bytes(),
            Parked::Working => false,
        };
        if wake {
            state.parked = Parked::Working;
            let is_syncing = state.is_syncing;
            drop(state);
            self.wake_writer(is_syncing);
        }
    }
}

/// Index of the first prepared segment in which frames of `bytes` fit.
#[cold]
fn first_with_room(ready: &VecDeque<Ready>, bytes: u64) -> Option<usize> {
    ready.iter().position(|ready| ready.has_room(bytes))
}

impl Ready {
    fn has_room(&self, bytes: u64) -> bool {
        bytes + SEGMENT_OVERHEAD_BYTES <= self.bytes
    }
}

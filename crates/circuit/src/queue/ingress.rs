//! The queue into a circuit that everybody shares: any number of producers, one consumer, one order.
//!
//! ```text
//!  producer: ticket = tail++                 hint ──┐
//!                                                   ▼
//!  segment [base 0, 16 slots]  ─►  segment [base 16, 32 slots]  ─►  segment [base 48, 64 slots] ─► ...
//!            ▲ cursor of the consumer
//! ```
//!
//! A producer takes a ticket, which is its place in the order, and then writes the slot of that ticket; a slot is full as soon
//! as its token is not null. The consumer takes slots in the order of tickets, and waits at one that is claimed but not full
//! yet. So producers never wait for each other, except for the short lock under which a segment is added.
//!
//! **Why segments can be reused safely.** A producer that holds a ticket may look at any segment that `hint` ever pointed to. Two
//! facts make this sound. The segment of its own ticket cannot be reused, because the consumer has not passed the ticket; so
//! if a segment's range contains the ticket, it is the right one and stays so. And no segment is freed unless
//! the consumer has seen, after it withdrew the hint, that every ticket taken so far is consumed ([`Ingress::settle`]): then no
//! producer is between its ticket and its slot, and who takes a ticket later reads the hint that was withdrawn.
#![allow(unsafe_code, reason = "slots are shared without a lock, see above")]

use std::collections::VecDeque;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::ptr::{self, NonNull};

use super::token::Token;
use crate::sync::{Apart, AtomicPtr, AtomicU64, Mutex, Ordering, UnsafeCell, lock};

/// Words of a value that a slot has room for. A larger value takes several slots.
pub(crate) const SLOT_WORDS: usize = 3;

#[cfg(not(loom))]
const FIRST_SLOTS: usize = 8;
#[cfg(not(loom))]
const SLOTS_MAX: usize = if cfg!(miri) { 32 } else { 1024 };
// Small enough that the models reach the end of a segment, and so is what Miri sees.
#[cfg(loom)]
const FIRST_SLOTS: usize = 2;
#[cfg(loom)]
const SLOTS_MAX: usize = 2;

type Payload = [MaybeUninit<u64>; SLOT_WORDS];

/// The slots that a value of this many bytes takes.
pub(crate) const fn slots_for(bytes: usize) -> usize {
    let slots = bytes.div_ceil(SLOT_WORDS * 8);
    if slots == 0 { 1 } else { slots }
}

/// Aligned so that no slot lies on two cache lines.
#[repr(align(32))]
struct Slot {
    /// Null while the slot is free; for all but the first slot of a large value it stays null.
    token: AtomicPtr<()>,
    payload: UnsafeCell<Payload>,
}

struct Segment {
    /// The ticket of the first slot. Changes only when the segment is put to use again.
    base: AtomicU64,
    slots: Box<[Slot]>,
}

impl Segment {
    fn with_slots(count: usize) -> SegmentBox {
        let slot = || Slot {
            token: AtomicPtr::new(ptr::null_mut()),
            payload: UnsafeCell::new([MaybeUninit::uninit(); SLOT_WORDS]),
        };
        let segment = Self { base: AtomicU64::new(0), slots: (0..count).map(|_| slot()).collect() };
        SegmentBox(NonNull::from(Box::leak(Box::new(segment))))
    }

    #[inline]
    fn slot(&self, ticket: u64) -> Option<&Slot> {
        let index = ticket.wrapping_sub(self.base.load(Ordering::Acquire));
        self.slots.get(usize::try_from(index).unwrap_or(usize::MAX))
    }
}

/// A segment and the right to free it. Others read it while this is moved, which a box would not allow.
struct SegmentBox(NonNull<Segment>);

// SAFETY: segments are shared between threads, see the module.
unsafe impl Send for SegmentBox {}

impl SegmentBox {
    fn as_ptr(&self) -> *mut Segment {
        self.0.as_ptr()
    }
}

impl Deref for SegmentBox {
    type Target = Segment;

    fn deref(&self) -> &Segment {
        // SAFETY: it exists as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SegmentBox {
    fn drop(&mut self) {
        // SAFETY: made as a box.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// The segments, for who has to find, add or remove one.
#[derive(Default)]
struct Directory {
    /// In the order of their tickets, without gaps.
    live: VecDeque<SegmentBox>,
    /// Consumed and full-sized: used again for the next tickets.
    spare: Vec<SegmentBox>,
    /// Consumed and small: kept only because a producer may still look at them.
    retired: Vec<SegmentBox>,
    /// The ticket behind the last slot of the last live segment.
    end: u64,
}

impl Directory {
    /// The live segment that contains the ticket, adding segments up to it.
    fn reach(&mut self, ticket: u64) -> *mut Segment {
        while self.end <= ticket {
            let last =
                self.live.back().or(self.retired.last()).map_or(FIRST_SLOTS / 2, |last| last.slots.len());
            let segment = self.spare.pop().unwrap_or_else(|| Segment::with_slots((last * 2).min(SLOTS_MAX)));
            segment.base.store(self.end, Ordering::Release);
            self.end += segment.slots.len() as u64;
            self.live.push_back(segment);
        }
        let behind = self.live.partition_point(|segment| segment.base.load(Ordering::Relaxed) <= ticket);
        let index = behind.checked_sub(1).expect("a ticket that is not consumed has its segment");
        self.live[index].as_ptr()
    }

    /// Puts the segments whose tickets are all below `ticket` aside.
    fn retire_before(&mut self, ticket: u64) {
        while let Some(first) = self.live.front() {
            if first.base.load(Ordering::Relaxed) + first.slots.len() as u64 > ticket {
                break;
            }
            let segment = self.live.pop_front().expect("there is a first segment");
            if segment.slots.len() == SLOTS_MAX { &mut self.spare } else { &mut self.retired }.push(segment);
        }
    }
}

/// See the module.
pub(crate) struct Ingress {
    /// The next ticket.
    tail: Apart<AtomicU64>,
    /// A segment that was the last one not long ago, or null.
    hint: AtomicPtr<Segment>,
    directory: Mutex<Directory>,
}

/// Where the consumer is. There is one per queue.
pub(crate) struct Cursor {
    segment: *const Segment,
    index: usize,
    /// The ticket at `index`: everything below it is consumed.
    ticket: u64,
}

// SAFETY: slots hand values from one thread to another, which `push` demands to be `Send`; a slot's payload is written only
// by the holder of its ticket and read only by the consumer, after the token was stored with release and loaded with acquire.
unsafe impl Send for Ingress {}
// SAFETY: as above.
unsafe impl Sync for Ingress {}
// SAFETY: the pointer is to a live segment of the queue, which outlives its cursor.
unsafe impl Send for Cursor {}

impl Default for Cursor {
    fn default() -> Self {
        Self { segment: ptr::null(), index: 0, ticket: 0 }
    }
}

impl Cursor {
    /// How many slots were consumed.
    #[inline]
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Everything below the ticket is consumed, in a queue whose entries are kept elsewhere.
    pub(crate) fn skip_to(&mut self, ticket: u64) {
        debug_assert!(self.segment.is_null() && ticket > self.ticket);
        self.ticket = ticket;
    }
}

impl Ingress {
    pub(crate) fn new() -> Self {
        Self {
            tail: Apart::new(AtomicU64::new(0)),
            hint: AtomicPtr::new(ptr::null_mut()),
            directory: Mutex::new(Directory::default()),
        }
    }

    /// Takes a place in the order for an entry that is kept elsewhere.
    pub(crate) fn claim(&self) -> u64 {
        self.tail.fetch_add(1, Ordering::SeqCst)
    }

    /// How many slots were ever claimed.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail.load(Ordering::SeqCst)
    }

    /// Appends an entry, which from now on owns the value. Allocates only where a segment begins that was not used before.
    ///
    /// # Safety
    ///
    /// `E` is `Send`, and what takes the entry out reads an `E`.
    #[inline]
    pub(crate) unsafe fn push<E>(&self, token: Token, value: E) {
        let count = const { slots_for(size_of::<E>()) };
        // In one order with the consumer's going to sleep: either it sees this ticket, or the caller sees it sleep.
        let ticket = self.tail.fetch_add(count as u64, Ordering::SeqCst);
        if count > 1 {
            // Forgotten ahead of the copy: once the entry is there, not even moving the value is allowed, as it is the consumer's.
            let value = ManuallyDrop::new(value);
            // SAFETY: the tickets are ours.
            unsafe { self.write_large(token, ticket, (&raw const value).cast(), size_of::<E>()) };
            return;
        }
        let slot = self.slot(ticket);
        // SAFETY: the slot is ours until its token is stored, and an `E` fits.
        slot.payload.with_mut(|payload| unsafe { payload.cast::<E>().write_unaligned(value) });
        slot.token.store(token.into_raw(), Ordering::Release);
    }

    /// Copies a value over several slots; the first one last, because it makes the others known.
    #[cold]
    unsafe fn write_large(&self, token: Token, ticket: u64, value: *const u8, bytes: usize) {
        const BYTES: usize = SLOT_WORDS * 8;
        for part in (0..slots_for(bytes)).rev() {
            let slot = self.slot(ticket + part as u64);
            let length = BYTES.min(bytes - part * BYTES);
            // SAFETY: this part lies within the value and fits into the slot, which is ours.
            slot.payload.with_mut(|payload| unsafe {
                ptr::copy_nonoverlapping(value.add(part * BYTES), payload.cast::<u8>(), length);
            });
            if part == 0 {
                slot.token.store(token.into_raw(), Ordering::Release);
            }
        }
    }

    #[inline]
    fn slot(&self, ticket: u64) -> &Slot {
        let segment = self.hint.load(Ordering::Acquire);
        // SAFETY: a segment is freed only while no producer holds a ticket, see the module; we hold one.
        if let Some(segment) = unsafe { segment.as_ref() }
            && let Some(slot) = segment.slot(ticket)
        {
            return slot;
        }
        self.slot_in_directory(ticket)
    }

    #[cold]
    fn slot_in_directory(&self, ticket: u64) -> &Slot {
        let mut directory = lock(&self.directory);
        let reached = directory.reach(ticket);
        // SAFETY: as in `slot`. Under the lock the hint is compared with segments that are still there.
        let segment = unsafe { &*reached };
        let hint = self.hint.load(Ordering::Relaxed);
        // SAFETY: as in `slot`.
        let behind = unsafe { hint.as_ref() }
            .is_none_or(|hint| hint.base.load(Ordering::Relaxed) < segment.base.load(Ordering::Relaxed));
        if behind {
            self.hint.store(reached, Ordering::Release);
        }
        segment.slot(ticket).expect("reach gives the segment of the ticket")
    }

    /// The next entry if it is there: its token, and where its value lies until [`Ingress::advance`].
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue. `bytes` tells the size of the value that was pushed with this token;
    /// `scratch` is where a value that spans several slots is put together.
    #[inline]
    pub(crate) unsafe fn peek(
        &self,
        cursor: &mut Cursor,
        scratch: &mut Vec<u64>,
        bytes: impl FnOnce(Token) -> usize,
    ) -> Option<(Token, *mut u8, usize)> {
        // SAFETY: the cursor's segment is live: only the consumer retires segments.
        let slot =
            match unsafe { cursor.segment.as_ref() }.and_then(|segment| segment.slots.get(cursor.index)) {
                Some(slot) => slot,
                None => self.next_segment(cursor)?,
            };
        let raw = slot.token.load(Ordering::Acquire);
        if raw.is_null() {
            return None;
        }
        let token = Token::from_raw(raw);
        let bytes = bytes(token);
        let count = slots_for(bytes);
        if count == 1 {
            return Some((token, slot.payload.with_mut(<*mut Payload>::cast), 1));
        }
        // SAFETY: the token of the first slot was stored after the other slots had been written.
        Some((token, unsafe { self.read_large(cursor, scratch, bytes) }, count))
    }

    #[cold]
    unsafe fn read_large(&self, cursor: &Cursor, scratch: &mut Vec<u64>, bytes: usize) -> *mut u8 {
        let count = slots_for(bytes);
        scratch.clear();
        scratch.reserve(count * SLOT_WORDS);
        let to = scratch.as_mut_ptr();
        // SAFETY: the cursor's segment is live.
        let segment = unsafe { &*cursor.segment };
        for part in 0..count {
            let slot = match segment.slots.get(cursor.index + part) {
                Some(slot) => slot,
                None => self.slot_in_directory(cursor.ticket + part as u64),
            };
            // SAFETY: there is room for the payload of every part; words that were not written are copied as such.
            slot.payload.with(|payload| unsafe {
                ptr::copy_nonoverlapping(payload, to.add(part * SLOT_WORDS).cast::<Payload>(), 1);
            });
        }
        to.cast()
    }

    /// Passes the entry that [`Ingress::peek`] gave, whose value was moved out.
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue, and `count` is what `peek` gave.
    #[inline]
    #[allow(clippy::unused_self, reason = "the cursor is of this queue")]
    pub(crate) unsafe fn advance(&self, cursor: &mut Cursor, count: usize) {
        // SAFETY: `peek` has found an entry here.
        let segment = unsafe { &*cursor.segment };
        // A producer of a later use of this slot reads the segment's new base first, with acquire.
        segment.slots[cursor.index].token.store(ptr::null_mut(), Ordering::Relaxed);
        cursor.index += count;
        cursor.ticket += count as u64;
        if cursor.index > segment.slots.len() {
            // A large value went on in the next segment.
            cursor.segment = ptr::null();
        }
    }

    #[cold]
    fn next_segment(&self, cursor: &mut Cursor) -> Option<&Slot> {
        if self.tail.load(Ordering::Acquire) == cursor.ticket {
            return None;
        }
        let mut directory = lock(&self.directory);
        directory.retire_before(cursor.ticket);
        let segment = directory.reach(cursor.ticket);
        cursor.segment = segment;
        // SAFETY: the segment is live until the cursor has passed it.
        let segment = unsafe { &*segment };
        cursor.index = (cursor.ticket - segment.base.load(Ordering::Relaxed)) as usize;
        segment.slots.get(cursor.index)
    }

    /// Gives memory back, down to one small segment, if everything that was claimed is consumed; otherwise nothing changes.
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue.
    pub(crate) unsafe fn settle(&self, cursor: &mut Cursor) {
        let room = |segment: &Segment| segment.slots.len() == FIRST_SLOTS && cursor.index * 2 <= FIRST_SLOTS;
        // SAFETY: the cursor's segment is live.
        if unsafe { cursor.segment.as_ref() }.is_none_or(room) {
            return;
        }
        let mut directory = lock(&self.directory);
        self.hint.store(ptr::null_mut(), Ordering::Release);
        // A read-modify-write, so that whoever takes a later ticket sees the hint withdrawn.
        if self.tail.fetch_add(0, Ordering::SeqCst) != cursor.ticket {
            return;
        }
        let Directory { live, spare, retired, end } = &mut *directory;
        let mut all = live.drain(..).chain(retired.drain(..)).chain(spare.drain(..));
        let keep = all.find(|segment| segment.slots.len() == FIRST_SLOTS);
        drop(all);
        live.shrink_to(1);
        (*spare, *retired) = (Vec::new(), Vec::new());
        *end = cursor.ticket;
        *cursor = Cursor { segment: ptr::null(), index: 0, ticket: cursor.ticket };
        if let Some(segment) = keep {
            segment.base.store(*end, Ordering::Release);
            *end += segment.slots.len() as u64;
            cursor.segment = segment.as_ptr();
            self.hint.store(segment.as_ptr(), Ordering::Release);
            live.push_back(segment);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn token() -> Token {
        Token::from_raw(ptr::without_provenance_mut(8))
    }

    fn push(ingress: &Ingress, values: impl IntoIterator<Item = u64>) {
        for value in values {
            // SAFETY: what takes entries out reads numbers.
            unsafe { ingress.push(token(), value) };
        }
    }

    /// What is there in order, up to a place that is claimed and not filled.
    fn drain(ingress: &Ingress, cursor: &mut Cursor) -> Vec<u64> {
        let (mut scratch, mut found) = (Vec::new(), Vec::new());
        // SAFETY: the cursor is the only one, and every value is a number.
        unsafe {
            while let Some((_, value, count)) = ingress.peek(cursor, &mut scratch, |_| size_of::<u64>()) {
                found.push(value.cast::<u64>().read_unaligned());
                ingress.advance(cursor, count);
            }
        }
        found
    }

    /// The system may stop a thread anywhere: here it does between the halves of an emission.
    #[test]
    fn a_producer_that_pauses_between_its_ticket_and_its_slot_loses_and_doubles_nothing() {
        const OTHERS: u64 = 5 * SLOTS_MAX as u64;
        const LATE: u64 = u64::MAX;
        let (ingress, mut cursor) = (Ingress::new(), Cursor::default());
        for round in 0..if cfg!(miri) { 2 } else { 20 } {
            push(&ingress, 0..OTHERS);
            assert!(drain(&ingress, &mut cursor).into_iter().eq(0..OTHERS));
            push(&ingress, 0..round);
            // It has looked where the segment may be, and stops.
            let ticket = ingress.claim();
            let hint = ingress.hint.load(Ordering::Acquire);
            push(&ingress, 0..OTHERS);
            assert!(drain(&ingress, &mut cursor).into_iter().eq(0..round));
            // SAFETY: the cursor is the only one.
            unsafe { ingress.settle(&mut cursor) };
            assert_eq!(drain(&ingress, &mut cursor), []);
            // It goes on with what it has seen.
            // SAFETY: a segment is freed only while no producer holds a ticket.
            let seen = unsafe { hint.as_ref() }.and_then(|segment| segment.slot(ticket));
            let slot = seen.unwrap_or_else(|| ingress.slot(ticket));
            // SAFETY: the slot is the ticket's, and a number fits.
            slot.payload.with_mut(|payload| unsafe { payload.cast::<u64>().write_unaligned(LATE) });
            slot.token.store(token().into_raw(), Ordering::Release);
            assert!(drain(&ingress, &mut cursor).into_iter().eq([LATE].into_iter().chain(0..OTHERS)));
            if round % 3 == 0 {
                // Otherwise the segments are used again.
                // SAFETY: the cursor is the only one.
                unsafe { ingress.settle(&mut cursor) };
            }
        }
    }
}

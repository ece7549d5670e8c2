//! The shared queue into a circuit: any number of producers, one consumer, one order.
//!
//! ```text
//!  producer: ticket = tail++                 hint ──┐
//!                                                   ▼
//!  segment [base 0, 16 slots]  ─►  segment [base 16, 32 slots]  ─►  segment [base 48, 64 slots] ─► ...
//!            ▲ cursor of the consumer
//! ```
//!
//! A producer takes a ticket, which is its place in the order, and then writes the slot of that
//! ticket. A slot is full once its token is not null. The consumer takes slots in the order of
//! tickets, and waits at one that is claimed but not yet full. So producers never wait for each
//! other, except for the short lock under which a segment is added.
//!
//! **Why segments can be reused safely.** A producer that holds a ticket may read any segment that
//! `hint` ever pointed to. Two facts make this sound:
//!
//! 1. The segment of its own ticket is not reused, because the consumer has not passed the ticket.
//!    So if a segment's range contains the ticket, it is the right segment and stays so.
//! 2. A segment is freed only if the consumer has seen, after it withdrew the hint, that every
//!    ticket taken so far is consumed ([`Ingress::settle`]). Then no producer is between its ticket
//!    and its slot, and a producer that takes a later ticket sees the hint withdrawn.
#![allow(unsafe_code, reason = "slots are shared without a lock, see above")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::mem::{self, ManuallyDrop, MaybeUninit, offset_of};
use std::ptr;

use super::token::Token;
use crate::sync::{AtomicPtr, AtomicU64, Mutex, Ordering, UnsafeCell, lock};

/// Words of a value that fit into a slot. A larger value takes several slots.
pub(crate) const SLOT_WORDS: usize = 3;
/// The same in bytes.
const SLOT_BYTES: usize = SLOT_WORDS * 8;

#[cfg(not(loom))]
const FIRST_SLOTS: usize = 8;
#[cfg(not(loom))]
const SLOTS_MAX: usize = if cfg!(miri) { 32 } else { 1024 };
// Small enough that the loom models, and Miri above, reach the end of a segment.
#[cfg(loom)]
const FIRST_SLOTS: usize = 2;
#[cfg(loom)]
const SLOTS_MAX: usize = 2;

type Payload = [MaybeUninit<u64>; SLOT_WORDS];

/// Number of slots for a value of this many bytes.
pub(crate) const fn slots_for(bytes: usize) -> usize {
    let slots = bytes.div_ceil(SLOT_BYTES);
    if slots == 0 { 1 } else { slots }
}

/// Aligned so that no slot spans two cache lines.
#[repr(align(32))]
struct Slot {
    /// Null while the slot is free. Stays null for all but the first slot of a large value.
    token: AtomicPtr<()>,
    payload: UnsafeCell<Payload>,
}

impl Slot {
    fn free() -> Self {
        Self {
            token: AtomicPtr::new(ptr::null_mut()),
            payload: UnsafeCell::new([MaybeUninit::uninit(); SLOT_WORDS]),
        }
    }
}

/// Header of a row of slots, which follow it in the same allocation.
///
/// Other threads read it while it is linked, moved between lists and freed, so it is used only
/// through pointers to the whole allocation. A reference would not cover the slots, and would
/// promise that the links do not change.
#[repr(C)]
struct Segment {
    /// Ticket of the first slot. Changes only when the segment is reused.
    base: AtomicU64,
    count: usize,
    /// Neighbours in a list of the directory, whose lock guards both.
    before: *mut Segment,
    behind: *mut Segment,
    slots: [Slot; 0],
}

/// Nothing lies between a segment and its slots. Loom's atomics are larger.
const _: () = assert!(cfg!(loom) || size_of::<Segment>() == size_of::<Slot>());

impl Segment {
    fn layout(count: usize) -> Layout {
        let slots = Layout::array::<Slot>(count);
        let both = slots.and_then(|slots| Layout::new::<Self>().extend(slots));
        both.expect("there are at most so many slots").0
    }

    #[allow(clippy::cast_ptr_alignment, reason = "the layout has the alignment")]
    fn with_slots(count: usize) -> *mut Self {
        let layout = Self::layout(count);
        // SAFETY: the layout has a non-zero size.
        let segment = unsafe { alloc(layout) }.cast::<Self>();
        if segment.is_null() {
            handle_alloc_error(layout);
        }
        let (before, behind) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: there is room for the segment and for this many slots.
        unsafe {
            segment.write(Self { base: AtomicU64::new(0), count, before, behind, slots: [] });
            let slots = Self::slots(segment).cast_mut();
            (0..count).for_each(|index| slots.add(index).write(Slot::free()));
        }
        segment
    }

    /// # Safety
    ///
    /// The segment was made by [`Segment::with_slots`], and no thread uses it any more.
    unsafe fn free(segment: *mut Self) {
        // SAFETY: as the caller says.
        unsafe {
            let count = (*segment).count;
            // Loom's slots have drop glue.
            ptr::slice_from_raw_parts_mut(Self::slots(segment).cast_mut(), count).drop_in_place();
            segment.drop_in_place();
            dealloc(segment.cast(), Self::layout(count));
        }
    }

    /// # Safety
    ///
    /// The segment exists.
    #[inline]
    unsafe fn slots(segment: *const Self) -> *const Slot {
        // SAFETY: as the caller says. The pointer to the empty array may be used for the slots,
        // because the segment's pointer may.
        unsafe { (&raw const (*segment).slots).cast() }
    }

    /// Returns the slot of this ticket, if there is a segment and it has the ticket.
    ///
    /// # Safety
    ///
    /// The segment is null, or exists for as long as the slot is used.
    #[inline]
    unsafe fn of<'a>(segment: *const Self, ticket: u64) -> Option<&'a Slot> {
        if segment.is_null() {
            return None;
        }
        // SAFETY: as the caller says.
        unsafe {
            let index = ticket.wrapping_sub((*segment).base.load(Ordering::Acquire));
            if index >= (*segment).count as u64 {
                return None;
            }
            Some(&*Self::slots(segment).add(index as usize))
        }
    }

    /// The ticket after the last slot.
    ///
    /// # Safety
    ///
    /// The segment exists, and is not reused meanwhile.
    unsafe fn end(segment: *const Self) -> u64 {
        // SAFETY: as the caller says.
        unsafe { (*segment).base.load(Ordering::Relaxed) + (*segment).count as u64 }
    }
}

/// The segments, for finding, adding and removing them. Owns all that are in its lists, which are
/// linked by `behind`.
struct Directory {
    /// The oldest segment in use. Those in use are in the order of their tickets, without gaps, and
    /// linked by `before` as well.
    first: *mut Segment,
    /// The newest in use. Meaningless if there is none.
    last: *mut Segment,
    /// Consumed and full-sized: reused for the next tickets.
    spare: *mut Segment,
    /// Consumed and small, the largest first: kept only because a producer may still read them.
    retired: *mut Segment,
    /// The ticket after the last slot of the last segment in use.
    end: u64,
}

// SAFETY: segments are shared between threads, see the module.
unsafe impl Send for Directory {}

impl Directory {
    fn new() -> Self {
        let none = ptr::null_mut();
        Self { first: none, last: none, spare: none, retired: none, end: 0 }
    }

    /// Returns the segment in use that contains the ticket, after adding segments up to it.
    fn reach(&mut self, ticket: u64) -> *mut Segment {
        while self.end <= ticket {
            self.append();
        }
        assert!(!self.first.is_null(), "a ticket that is not consumed has its segment");
        // SAFETY: segments in the directory exist, and their links are accessed only under its
        // lock.
        unsafe {
            let start = (*self.first).base.load(Ordering::Relaxed);
            assert!(start <= ticket, "a ticket that is not consumed has its segment");
            // The consumer looks for one of the oldest, producers for one of the newest.
            let is_old = ticket - start < self.end - ticket;
            let mut at = if is_old { self.first } else { self.last };
            while is_old && Segment::end(at) <= ticket {
                at = (*at).behind;
            }
            while (*at).base.load(Ordering::Relaxed) > ticket {
                at = (*at).before;
            }
            at
        }
    }

    /// Puts one more segment into use.
    fn append(&mut self) {
        let before = if self.first.is_null() { ptr::null_mut() } else { self.last };
        let largest = if before.is_null() { self.retired } else { before };
        // SAFETY: as in `reach`.
        unsafe {
            let count = if largest.is_null() { FIRST_SLOTS } else { ((*largest).count * 2).min(SLOTS_MAX) };
            let segment = pop(&mut self.spare).unwrap_or_else(|| Segment::with_slots(count));
            (*segment).base.store(self.end, Ordering::Release);
            self.end += (*segment).count as u64;
            ((*segment).before, (*segment).behind) = (before, ptr::null_mut());
            if before.is_null() {
                self.first = segment;
            } else {
                (*before).behind = segment;
            }
            self.last = segment;
        }
    }

    /// Retires the segments whose tickets are all below `ticket`.
    fn retire_before(&mut self, ticket: u64) {
        // SAFETY: as in `reach`.
        unsafe {
            while !self.first.is_null() && Segment::end(self.first) <= ticket {
                let segment = self.first;
                self.first = (*segment).behind;
                let aside = if (*segment).count == SLOTS_MAX { &mut self.spare } else { &mut self.retired };
                (*segment).behind = mem::replace(aside, segment);
            }
        }
    }

    /// Takes any segment out.
    fn pop_any(&mut self) -> Option<*mut Segment> {
        [&mut self.first, &mut self.retired, &mut self.spare].into_iter().find_map(pop)
    }
}

/// Takes the first segment out of a list, under its directory's lock.
fn pop(list: &mut *mut Segment) -> Option<*mut Segment> {
    let first = *list;
    if first.is_null() {
        return None;
    }
    // SAFETY: segments in a list exist.
    *list = unsafe { (*first).behind };
    Some(first)
}

impl Drop for Directory {
    fn drop(&mut self) {
        while let Some(segment) = self.pop_any() {
            // SAFETY: the queue is being dropped, so no other thread has it.
            unsafe { Segment::free(segment) };
        }
    }
}

/// See the module.
#[repr(C)]
pub(crate) struct Ingress {
    /// A recently last segment, or null.
    hint: AtomicPtr<Segment>,
    /// Where the consumer assembles a value that spans several slots. Most queues never have one,
    /// and should be small.
    #[allow(clippy::box_collection, reason = "two words less in queues without large values")]
    scratch: UnsafeCell<Option<Box<Vec<u64>>>>,
    // Rarely used, so it separates what all producers read from what each of them writes.
    directory: Mutex<Directory>,
    /// The next ticket.
    tail: AtomicU64,
}

/// Position of the consumer. There is one per queue.
pub(crate) struct Cursor {
    /// Slot of the next ticket. Equal to `end` if its segment has no more slots, or if there is no
    /// segment.
    next: *const Slot,
    /// End of the segment's slots.
    end: *const Slot,
    /// The ticket at `next`: everything below it is consumed.
    ticket: u64,
}

// SAFETY: slots move values between threads, which `push` requires to be `Send`. Only the holder of
// its ticket writes a slot's payload, and only the consumer reads it, after the token was stored
// with release and loaded with acquire.
unsafe impl Send for Ingress {}
// SAFETY: as above.
unsafe impl Sync for Ingress {}
// SAFETY: the pointers are into a live segment of the queue, which outlives its cursor.
unsafe impl Send for Cursor {}

impl Default for Cursor {
    fn default() -> Self {
        Self::between(0)
    }
}

impl Cursor {
    /// A cursor before this ticket, with no segment yet.
    fn between(ticket: u64) -> Self {
        Self { next: ptr::null(), end: ptr::null(), ticket }
    }

    /// A cursor before this ticket, which has a slot in this segment.
    ///
    /// # Safety
    ///
    /// The segment exists, and is not reused before the cursor has passed it.
    unsafe fn within(segment: *const Segment, ticket: u64) -> Self {
        // SAFETY: as the caller says.
        unsafe {
            let index = (ticket - (*segment).base.load(Ordering::Relaxed)) as usize;
            let (slots, count) = (Segment::slots(segment), (*segment).count);
            assert!(index < count, "ticket {ticket} is slot {index} of a segment of {count}");
            Self { next: slots.add(index), end: slots.add(count), ticket }
        }
    }

    /// Number of slots that the segment has from the next ticket on.
    fn left(&self) -> usize {
        (self.end.addr() - self.next.addr()) / size_of::<Slot>()
    }

    /// Number of slots consumed.
    #[inline]
    pub(crate) fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Marks everything below the ticket as consumed, in a queue whose entries are stored
    /// elsewhere.
    pub(crate) fn skip_to(&mut self, ticket: u64) {
        assert!(self.next.is_null() && ticket > self.ticket, "{ticket} is consumed behind {}", self.ticket);
        self.ticket = ticket;
    }
}

impl Ingress {
    /// Offset of the hint, which producers read.
    pub(crate) const HINT: usize = offset_of!(Self, hint);
    /// Offset of the word that each producer writes.
    pub(crate) const TAIL: usize = offset_of!(Self, tail);

    pub(crate) fn new() -> Self {
        Self {
            hint: AtomicPtr::new(ptr::null_mut()),
            scratch: UnsafeCell::new(None),
            directory: Mutex::new(Directory::new()),
            tail: AtomicU64::new(0),
        }
    }

    /// Takes a ticket for an entry that is stored elsewhere.
    pub(crate) fn claim(&self) -> u64 {
        self.tail.fetch_add(1, Ordering::SeqCst)
    }

    /// Number of slots ever claimed.
    #[inline]
    pub(crate) fn tail(&self) -> u64 {
        self.tail.load(Ordering::SeqCst)
    }

    /// Appends an entry, which owns the value from then on. Allocates only where a new segment
    /// begins.
    ///
    /// # Safety
    ///
    /// `E` is `Send`, and the code that takes the entry out reads an `E`.
    #[inline]
    pub(crate) unsafe fn push<E>(&self, token: Token, value: E) {
        // SAFETY: the tickets are the caller's; the rest as the caller says.
        unsafe { self.fill(self.claim_for::<E>(), token, value) };
    }

    /// As [`Ingress::push`] if `is_open` returns true after the tickets are taken. Otherwise
    /// returns the value and fills its slots with barriers, because a ticket cannot be returned.
    ///
    /// # Safety
    ///
    /// As for [`Ingress::push`].
    #[inline]
    pub(crate) unsafe fn push_if<E>(
        &self,
        token: Token,
        value: E,
        is_open: impl FnOnce() -> bool,
    ) -> Result<(), E> {
        let ticket = self.claim_for::<E>();
        if is_open() {
            // SAFETY: the tickets are the caller's; the rest as the caller says.
            unsafe { self.fill(ticket, token, value) };
            return Ok(());
        }
        self.fill_with_barriers(ticket, slots_for(size_of::<E>()));
        Err(value)
    }

    /// Takes the tickets of a value and returns the first.
    #[inline]
    fn claim_for<E>(&self) -> u64 {
        let count = const { slots_for(size_of::<E>()) };
        // SeqCst: ordered with a consumer that goes idle. Either it sees this ticket, or the caller
        // sees it idle.
        self.tail.fetch_add(count as u64, Ordering::SeqCst)
    }

    /// Writes an entry into the slots of its tickets.
    ///
    /// # Safety
    ///
    /// As for [`Ingress::push`]; the ticket is from [`Ingress::claim_for`] of this type, and its
    /// slots were not written yet.
    #[inline]
    unsafe fn fill<E>(&self, ticket: u64, token: Token, value: E) {
        if const { slots_for(size_of::<E>()) } > 1 {
            // Before the copy: once the entry is in the queue the consumer owns the value, and not
            // even moving it is allowed.
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

    /// Writes an entry without a value into each of these slots.
    #[cold]
    fn fill_with_barriers(&self, ticket: u64, count: usize) {
        for part in 0..count {
            // In ascending order: the segments of the slots that are still empty stay, see the
            // module.
            self.slot(ticket + part as u64).token.store(Token::barrier().into_raw(), Ordering::Release);
        }
    }

    /// Copies a value into several slots. The token publishes all of them, so it is written last.
    #[cold]
    unsafe fn write_large(&self, token: Token, ticket: u64, value: *const u8, bytes: usize) {
        let first = self.slot(ticket);
        for part in 0..slots_for(bytes) {
            let slot = self.slot(ticket + part as u64);
            let length = SLOT_BYTES.min(bytes - part * SLOT_BYTES);
            // SAFETY: this part lies within the value and fits into the slot, which is ours.
            slot.payload.with_mut(|payload| unsafe {
                ptr::copy_nonoverlapping(value.add(part * SLOT_BYTES), payload.cast::<u8>(), length);
            });
        }
        first.token.store(token.into_raw(), Ordering::Release);
    }

    #[inline]
    fn slot(&self, ticket: u64) -> &Slot {
        // SAFETY: a segment is freed only while no producer holds a ticket, see the module; this
        // one holds a ticket.
        let slot = unsafe { Segment::of(self.hint.load(Ordering::Acquire), ticket) };
        slot.unwrap_or_else(|| self.slot_in_directory(ticket))
    }

    #[cold]
    fn slot_in_directory(&self, ticket: u64) -> &Slot {
        let mut directory = lock(&self.directory);
        let segment = directory.reach(ticket);
        let hint = self.hint.load(Ordering::Relaxed);
        // SAFETY: as in `slot`. Under the lock, the hint and the segment that it is compared with
        // both exist.
        unsafe {
            let base = |segment: *mut Segment| (*segment).base.load(Ordering::Relaxed);
            if hint.is_null() || base(hint) < base(segment) {
                self.hint.store(segment, Ordering::Release);
            }
            Segment::of(segment, ticket).expect("reach gives the segment of the ticket")
        }
    }

    /// Returns the next entry if it is there: its token, and where its value is until
    /// [`Ingress::advance`]. May be called again before that if the entry is small.
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue. `bytes` returns the size of the value that was
    /// pushed with this token.
    #[inline]
    pub(crate) unsafe fn peek(
        &self,
        cursor: &mut Cursor,
        bytes: impl FnOnce(Token) -> usize,
    ) -> Option<(Token, *mut u8)> {
        if cursor.next == cursor.end && !self.enter_segment(cursor) {
            return None;
        }
        // SAFETY: the cursor's segment is live: only the consumer retires segments.
        let slot = unsafe { &*cursor.next };
        let raw = slot.token.load(Ordering::Acquire);
        if raw.is_null() {
            return None;
        }
        let token = Token::from_raw(raw);
        let bytes = bytes(token);
        if bytes <= SLOT_BYTES {
            return Some((token, slot.payload.with_mut(<*mut Payload>::cast)));
        }
        // SAFETY: the token of the first slot was stored after the other slots were written.
        Some((token, unsafe { self.read_large(cursor, bytes) }))
    }

    /// Assembles a value, and advances to its last slot.
    #[cold]
    unsafe fn read_large(&self, cursor: &mut Cursor, bytes: usize) -> *mut u8 {
        let count = slots_for(bytes);
        let to = self.scratch.with_mut(|scratch| {
            // SAFETY: only the consumer calls this, and there is one.
            let scratch = unsafe { &mut *scratch }.get_or_insert_default();
            scratch.clear();
            scratch.reserve(count * SLOT_WORDS);
            scratch.as_mut_ptr()
        });
        for part in 0..count {
            // SAFETY: there is room for the payload of every part; words that were not written are
            // copied as uninitialised. The slots were written, so their segments exist, and only
            // the consumer passes them.
            unsafe {
                if part > 0 {
                    self.advance(cursor);
                    let is_there = cursor.next != cursor.end || self.enter_segment(cursor);
                    assert!(is_there, "part {part} of {count} has no slot at ticket {}", cursor.ticket);
                }
                (*cursor.next).payload.with(|payload| {
                    ptr::copy_nonoverlapping(payload, to.add(part * SLOT_WORDS).cast::<Payload>(), 1);
                });
            }
        }
        to.cast()
    }

    /// Advances past the entry that [`Ingress::peek`] returned, whose value was moved out.
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue, and `peek` returned an entry.
    #[inline]
    #[allow(clippy::unused_self, reason = "the cursor is of this queue")]
    pub(crate) unsafe fn advance(&self, cursor: &mut Cursor) {
        debug_assert!(cursor.next != cursor.end);
        // SAFETY: the cursor is at a slot.
        unsafe {
            // Relaxed suffices: a producer that reuses this slot first loads the segment's new
            // base, with acquire.
            (*cursor.next).token.store(ptr::null_mut(), Ordering::Relaxed);
            cursor.next = cursor.next.add(1);
        }
        cursor.ticket += 1;
    }

    /// Advances to the segment of the next ticket, if that was taken.
    #[cold]
    fn enter_segment(&self, cursor: &mut Cursor) -> bool {
        if self.tail.load(Ordering::Acquire) == cursor.ticket {
            return false;
        }
        let mut directory = lock(&self.directory);
        directory.retire_before(cursor.ticket);
        // SAFETY: only the consumer retires segments, and not before the cursor has passed them.
        *cursor = unsafe { Cursor::within(directory.reach(cursor.ticket), cursor.ticket) };
        true
    }

    /// Frees memory, down to one small segment, if everything claimed is consumed; otherwise only
    /// the memory of large values.
    ///
    /// # Safety
    ///
    /// The cursor is the only one of this queue.
    pub(crate) unsafe fn settle(&self, cursor: &mut Cursor) {
        self.scratch.with_mut(|scratch| {
            // SAFETY: only the consumer accesses it, and there is one; the value assembled there is
            // handled.
            let scratch = unsafe { &mut *scratch };
            // Written only if needed: producers read the words next to it.
            if scratch.is_some() {
                *scratch = None;
            }
        });
        // There is nothing to free if the newest segment is small, the cursor is in it, and it has
        // room.
        let newest = self.hint.load(Ordering::Acquire);
        // SAFETY: only the consumer frees segments. No reference to it: a producer may be about to
        // link a segment behind it.
        let is_small = || unsafe {
            let count = (*newest).count;
            count == FIRST_SLOTS && cursor.end == Segment::slots(newest).add(count)
        };
        let has_room = cursor.left() * 2 >= FIRST_SLOTS;
        if cursor.next.is_null() || has_room && !newest.is_null() && is_small() {
            return;
        }
        let mut directory = lock(&self.directory);
        self.hint.store(ptr::null_mut(), Ordering::Release);
        // A read-modify-write on the ticket counter, so that a producer that takes a later ticket
        // sees the hint withdrawn.
        if self.tail.fetch_add(0, Ordering::SeqCst) != cursor.ticket {
            return;
        }
        let mut kept: *mut Segment = ptr::null_mut();
        while let Some(segment) = directory.pop_any() {
            // SAFETY: no producer uses any, see the module.
            unsafe {
                if kept.is_null() && (*segment).count == FIRST_SLOTS {
                    // The segments that it was linked to are freed.
                    (*segment).behind = ptr::null_mut();
                    kept = segment;
                } else {
                    Segment::free(segment);
                }
            }
        }
        directory.end = cursor.ticket;
        *cursor = Cursor::between(cursor.ticket);
        if !kept.is_null() {
            directory.spare = kept;
            directory.append();
            // SAFETY: its first slot is that of the next ticket.
            *cursor = unsafe { Cursor::within(kept, cursor.ticket) };
            self.hint.store(kept, Ordering::Release);
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

    /// Takes out what is there, in order, up to a slot that is claimed but not filled.
    fn drain(ingress: &Ingress, cursor: &mut Cursor) -> Vec<u64> {
        let mut found = Vec::new();
        // SAFETY: the cursor is the only one, and every value is a number.
        unsafe {
            while let Some((_, value)) = ingress.peek(cursor, |_| size_of::<u64>()) {
                found.push(value.cast::<u64>().read_unaligned());
                ingress.advance(cursor);
            }
        }
        found
    }

    /// Miri detects here whether both threads access the same memory without ordering.
    #[test]
    fn memory_is_given_back_while_more_comes() {
        const VALUES: u64 = if cfg!(miri) { 60 } else { 50_000 };
        let (ingress, mut cursor, mut seen) = (Ingress::new(), Cursor::default(), Vec::new());
        std::thread::scope(|scope| {
            scope.spawn(|| push(&ingress, 0..VALUES));
            while (seen.len() as u64) < VALUES {
                seen.append(&mut drain(&ingress, &mut cursor));
                // SAFETY: the cursor is the only one.
                unsafe { ingress.settle(&mut cursor) };
            }
        });
        assert!(seen.into_iter().eq(0..VALUES));
    }

    /// The system may preempt a thread anywhere: here between the two halves of an emission.
    #[test]
    fn memory_is_given_back_also_behind_a_value_that_ran_over_the_end_of_a_segment() {
        type Large = [u64; 5 * FIRST_SLOTS * SLOT_WORDS];
        let (ingress, mut cursor) = (Ingress::new(), Cursor::default());
        for round in 0..4 {
            // SAFETY: the cursor is the only one, and what is taken out is of the size that was pushed.
            unsafe {
                ingress.push::<Large>(token(), [round; 5 * FIRST_SLOTS * SLOT_WORDS]);
                let (_, value) = ingress.peek(&mut cursor, |_| size_of::<Large>()).expect("it was pushed");
                assert_eq!(value.cast::<Large>().read_unaligned(), [round; 5 * FIRST_SLOTS * SLOT_WORDS]);
                ingress.advance(&mut cursor);
                ingress.settle(&mut cursor);
                let directory = lock(&ingress.directory);
                assert!(directory.spare.is_null() && directory.retired.is_null());
                assert!(directory.first.is_null() || (*directory.first).count == FIRST_SLOTS);
                drop(directory);
                (0..100).for_each(|number| ingress.push::<u64>(token(), number));
                assert_eq!(drain(&ingress, &mut cursor), (0..100).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_producer_that_pauses_between_its_ticket_and_its_slot_loses_and_doubles_nothing() {
        const OTHERS: u64 = 5 * SLOTS_MAX as u64;
        const LATE: u64 = u64::MAX;
        let (ingress, mut cursor) = (Ingress::new(), Cursor::default());
        for round in 0..if cfg!(miri) { 2 } else { 20 } {
            push(&ingress, 0..OTHERS);
            assert!(drain(&ingress, &mut cursor).into_iter().eq(0..OTHERS));
            push(&ingress, 0..round);
            // The producer has read where its segment may be, and pauses.
            let ticket = ingress.claim();
            let hint = ingress.hint.load(Ordering::Acquire);
            push(&ingress, 0..OTHERS);
            assert!(drain(&ingress, &mut cursor).into_iter().eq(0..round));
            // SAFETY: the cursor is the only one.
            unsafe { ingress.settle(&mut cursor) };
            assert_eq!(drain(&ingress, &mut cursor), []);
            // The producer continues with what it has read. SAFETY: a segment is freed only while
            // no producer holds a ticket.
            let seen = unsafe { Segment::of(hint, ticket) };
            let slot = seen.unwrap_or_else(|| ingress.slot(ticket));
            // SAFETY: the slot is the ticket's, and a number fits.
            slot.payload.with_mut(|payload| unsafe { payload.cast::<u64>().write_unaligned(LATE) });
            slot.token.store(token().into_raw(), Ordering::Release);
            assert!(drain(&ingress, &mut cursor).into_iter().eq([LATE].into_iter().chain(0..OTHERS)));
            if round % 3 == 0 {
                // In other rounds the segments are reused. SAFETY: the cursor is the only one.
                unsafe { ingress.settle(&mut cursor) };
            }
        }
    }
}

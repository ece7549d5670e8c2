//! Labels of inputs, and how a recording reads values on their way from the queue to their node.
#![allow(unsafe_code, reason = "values are looked at where they lie, which has no type and no alignment")]

use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::recorded::Recorded;
use crate::identity::subject::Subject;
use crate::structure::pipe::Pipe;
use crate::structure::port::Request;

/// Label and role of a subject.
pub(super) struct Labelled {
    pub(super) label: String,
    pub(super) role: Role,
}

#[derive(Clone, Copy)]
pub(super) enum Role {
    /// A component that receives values.
    Node(Look),
    /// A conduit, whose pipes receive values.
    Conduit(Look),
    /// A component that only begins and ends.
    Life,
}

/// Reads the value at the address, appends its recorded form to the bytes, and returns what the
/// input requests.
pub(super) type Look = unsafe fn(*mut u8, &mut Vec<u8>) -> Asked;

/// What an input requests.
pub(super) enum Asked {
    /// The receptor handles it. The bytes are the value.
    Receive,
    /// It becomes a port's value. The bytes are the value.
    Replace,
    /// A port reports an update that panicked with this message.
    Fail(Arc<str>),
    /// The content is emitted to the pipe with this subject.
    Send(Subject),
    /// The outcome is not known before it is handled; it is recorded then.
    Later,
}

/// Reads a pipe's value.
pub(super) unsafe fn look_at_value<E: Recorded>(value: *mut u8, bytes: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller guarantees an `E` at the address.
    let lent = unsafe { Lent::<E>::take(value) };
    lent.value.write(bytes);
    Asked::Receive
}

/// Reads a port's request.
pub(super) unsafe fn look_at_request<E: Recorded>(value: *mut u8, bytes: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller guarantees a request at the address.
    let mut lent = unsafe { Lent::<Request<E>>::take(value) };
    let request = &mut *lent.value;
    if let Request::Update(transform) = request {
        // A placeholder, replaced in the next line.
        let transform = std::mem::replace(transform, Box::new(|_| None));
        *request = Request::Noted(transform);
    }
    match request {
        Request::Replace(value) => {
            value.write(bytes);
            Asked::Replace
        }
        Request::Update(_) | Request::Noted(_) => Asked::Later,
        Request::Fail(message) => Asked::Fail(Arc::clone(message)),
        Request::Emit(target) => Asked::Send(target.node().subject().clone()),
    }
}

/// Reads the pipe that a basin is drained to.
pub(super) unsafe fn look_at_target<E>(value: *mut u8, _: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller guarantees a pipe at the address.
    let lent = unsafe { Lent::<Pipe<E>>::take(value) };
    Asked::Send(lent.value.node().subject().clone())
}

/// A value that was moved out of its address, which may be unaligned.
struct Lent<E> {
    place: *mut E,
    value: ManuallyDrop<E>,
}

impl<E> Lent<E> {
    /// # Safety
    ///
    /// There is an `E` at the address, and nothing else accesses it before this is dropped.
    unsafe fn take(place: *mut u8) -> Self {
        let place = place.cast::<E>();
        // SAFETY: as the caller says.
        Self { place, value: ManuallyDrop::new(unsafe { place.read_unaligned() }) }
    }
}

impl<E> Drop for Lent<E> {
    fn drop(&mut self) {
        // SAFETY: the value returns to its address, also if reading it has changed it or panicked.
        unsafe { self.place.write_unaligned(ManuallyDrop::take(&mut self.value)) };
    }
}

//! Labels: what inputs are known by, and how a recording looks at values on their way from the queue to their node.
#![allow(unsafe_code, reason = "values are looked at where they lie, which has no type and no alignment")]

use std::mem::ManuallyDrop;
use std::sync::Arc;

use super::recorded::Recorded;
use crate::identity::subject::Subject;
use crate::structure::pipe::Pipe;
use crate::structure::port::Request;

/// What the subject with this label is.
pub(super) struct Labelled {
    pub(super) label: String,
    pub(super) role: Role,
}

#[derive(Clone, Copy)]
pub(super) enum Role {
    /// Something that is given values.
    Node(Look),
    /// A conduit, whose pipes are given values.
    Conduit(Look),
    /// Something that begins and ends only.
    Life,
}

/// Looks at the value that lies there, appends to the bytes what a journal has to have of it, and says what it is about.
pub(super) type Look = unsafe fn(*mut u8, &mut Vec<u8>) -> Asked;

/// What an input asks for.
pub(super) enum Asked {
    /// To be handled by the receptor. The bytes are the value's.
    Receive,
    /// To be a port's value. The bytes are the value's.
    Replace,
    /// To have a port report an update that panicked with this message.
    Fail(Arc<str>),
    /// To have what is there sent to the pipe with this subject.
    Send(Subject),
    /// Something that is known only when it was done; it will be told of again then.
    Later,
}

/// Looks at a pipe's value.
pub(super) unsafe fn look_at_value<E: Recorded>(value: *mut u8, bytes: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller says that an `E` lies there.
    let lent = unsafe { Lent::<E>::take(value) };
    lent.value.write(bytes);
    Asked::Receive
}

/// Looks at a port's request.
pub(super) unsafe fn look_at_request<E: Recorded>(value: *mut u8, bytes: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller says that a request lies there.
    let mut lent = unsafe { Lent::<Request<E>>::take(value) };
    let request = &mut *lent.value;
    if let Request::Update(transform) = request {
        // Has no content: it is there only for the moment.
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

/// Looks at what a basin is asked to be drained to.
pub(super) unsafe fn look_at_target<E>(value: *mut u8, _: &mut Vec<u8>) -> Asked {
    // SAFETY: the caller says that a pipe lies there.
    let lent = unsafe { Lent::<Pipe<E>>::take(value) };
    Asked::Send(lent.value.node().subject().clone())
}

/// A value while it is away from its place, which need not be aligned for it.
struct Lent<E> {
    place: *mut E,
    value: ManuallyDrop<E>,
}

impl<E> Lent<E> {
    /// # Safety
    ///
    /// An `E` lies there, and nobody else looks at it before this is dropped.
    unsafe fn take(place: *mut u8) -> Self {
        let place = place.cast::<E>();
        // SAFETY: as the caller says.
        Self { place, value: ManuallyDrop::new(unsafe { place.read_unaligned() }) }
    }
}

impl<E> Drop for Lent<E> {
    fn drop(&mut self) {
        // SAFETY: the value goes back to where it came from, also if looking at it has changed it or panicked.
        unsafe { self.place.write_unaligned(ManuallyDrop::take(&mut self.value)) };
    }
}

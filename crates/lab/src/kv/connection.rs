//! One non-blocking connection of the load.

use super::reply::Reply;
use super::workload::Operation;
use mio::net::TcpStream;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

/// A socket with its requests in flight.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Limit of requests in flight.
    pub(super) slots: usize,
    /// Requests that the socket has not taken yet.
    pub(super) outgoing: Vec<u8>,
    /// Start of an incomplete reply.
    incomplete: Vec<u8>,
    in_flight: VecDeque<InFlight>,
    /// Slots in use. A worker may send two requests in one turn and waits for the reply to the
    /// second.
    occupied: usize,
    pub(super) open: bool,
}

/// A request that awaits its reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    pub(super) operation: Operation,
    /// Time at which it was sent, or was due in an open loop; nanoseconds on the run's clock.
    pub(super) started: u64,
}

/// Size limit of an incomplete reply: the largest value and some overhead.
const INCOMPLETE_BYTES_MAX: usize = (512 << 20) + (1 << 20);

impl Connection {
    pub(super) fn new(stream: TcpStream, slots: usize) -> Self {
        Connection {
            stream,
            slots,
            outgoing: Vec::new(),
            incomplete: Vec::new(),
            in_flight: VecDeque::with_capacity(slots),
            occupied: 0,
            open: true,
        }
    }

    pub(super) fn free_slots(&self) -> usize {
        if self.open { self.slots - self.occupied } else { 0 }
    }

    pub(super) fn awaited(&self) -> usize {
        self.in_flight.len()
    }

    /// Registers a request that was just appended to `outgoing`.
    pub(super) fn sent(&mut self, flight: InFlight) {
        assert!(self.occupied < self.slots, "{} of {} slots are in use", self.occupied, self.slots);
        self.occupied += usize::from(flight.operation.ends_turn());
        self.in_flight.push_back(flight);
    }

    /// Closes the connection and returns the requests in flight, which are lost.
    pub(super) fn close(&mut self) -> Vec<InFlight> {
        self.open = false;
        self.outgoing.clear();
        self.occupied = 0;
        self.in_flight.drain(..).collect()
    }

    /// Reads what has arrived and passes every complete reply to `each`.
    pub(super) fn receive(
        &mut self,
        scratch: &mut [u8],
        mut each: impl FnMut(InFlight, &Reply<'_>),
    ) -> io::Result<()> {
        let occupied = &mut self.occupied;
        let mut each = |flight: InFlight, reply: &Reply<'_>| {
            *occupied -= usize::from(flight.operation.ends_turn());
            each(flight, reply);
        };
        loop {
            let length = match self.stream.read(scratch) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let received = &scratch[..length];
            if self.incomplete.is_empty() {
                let consumed = replies(received, &mut self.in_flight, &mut each)?;
                self.incomplete.extend_from_slice(&received[consumed..]);
            } else {
                self.incomplete.extend_from_slice(received);
                let consumed = replies(&self.incomplete, &mut self.in_flight, &mut each)?;
                self.incomplete.drain(..consumed);
            }
            if self.incomplete.len() > INCOMPLETE_BYTES_MAX {
                return Err(io::Error::other("a reply exceeds the largest value"));
            }
            // A short read has emptied the socket; later data raises a new event.
            if length < scratch.len() {
                return Ok(());
            }
        }
    }

    /// Writes as much as the socket accepts; a writable event continues.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut written = 0;
        while written < self.outgoing.len() {
            match self.stream.write(&self.outgoing[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => written += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if written == self.outgoing.len() {
            self.outgoing.clear();
        } else {
            self.outgoing.drain(..written);
        }
        Ok(())
    }
}

/// Matches the replies in `input` with the requests in flight, in order. Returns the bytes
/// consumed.
fn replies(
    input: &[u8],
    in_flight: &mut VecDeque<InFlight>,
    each: &mut impl FnMut(InFlight, &Reply<'_>),
) -> io::Result<usize> {
    let mut consumed = 0;
    while consumed < input.len() {
        let Some((reply, length)) = Reply::read(&input[consumed..]).map_err(io::Error::other)? else { break };
        let flight = in_flight.pop_front().ok_or_else(|| io::Error::other("a reply without a request"))?;
        each(flight, &reply);
        consumed += length;
    }
    Ok(consumed)
}

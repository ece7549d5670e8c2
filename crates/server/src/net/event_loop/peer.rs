//! A connection and its socket.

use crate::net::connection::Connection;
use crate::net::socket::Socket;
use crate::observe::counters::Counters;
use std::io;
use std::time::Instant;

/// Most reads from a connection that is about to be closed. Bounds the delay by a client that never
/// stops sending.
const DISCARD_READS: usize = 16;

/// A connection and its socket.
pub(super) struct Peer {
    pub(super) socket: Socket,
    pub(super) connection: Connection,
    /// The kernel may hold unread bytes.
    pub(super) readable: bool,
    /// The client has closed its side; the end is still to be read.
    pub(super) read_closed: bool,
    /// The slot is in `flush`.
    pub(super) is_dirty: bool,
    /// The slot is in `again`.
    pub(super) is_waiting_for_turn: bool,
    /// The slot is in `holding`.
    pub(super) is_holding: bool,
    /// The earliest timer that is set for it.
    pub(super) timer: Option<Instant>,
}

impl Peer {
    pub(super) fn new(socket: Socket, connection: Connection) -> Peer {
        Peer {
            socket,
            connection,
            readable: false,
            read_closed: false,
            is_dirty: false,
            is_waiting_for_turn: false,
            is_holding: false,
            timer: None,
        }
    }

    /// Reads and discards input that will not be run. The kernel resets a connection that is closed
    /// with unread bytes, which may cost the client replies in flight.
    pub(super) fn discard_input(&mut self, buffer: &mut [u8]) {
        for _ in 0..DISCARD_READS {
            match self.socket.read(buffer) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }

    /// Sends what may be sent, until the kernel's buffer is full.
    pub(super) fn send(&mut self, counters: &Counters) -> io::Result<()> {
        loop {
            let bytes = self.connection.session.outbox.sendable();
            if bytes.is_empty() {
                return Ok(());
            }
            match self.socket.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    let was_all = count == bytes.len();
                    counters.sent_bytes.add(count as u64);
                    self.connection.sent(count);
                    if was_all {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

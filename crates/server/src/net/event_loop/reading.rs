//! Reads from connections and runs what they have sent.

use super::WorkerState;
use crate::context::Context;
use crate::net::client_eviction::choose_victims;
use crate::net::connection::CloseReason;
use crate::net::inbox::Message;
use std::io;

impl WorkerState {
    pub(super) fn note_readable(&mut self, slot: usize, closed: bool) {
        if let Some(peer) = self.peer_mut(slot) {
            peer.readable = true;
            peer.read_closed |= closed;
        }
    }

    /// Reads once from a connection and runs the commands received.
    pub(super) fn read(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        if peer.readable && peer.read_closed && peer.connection.session.wait.is_some() {
            // The client has disconnected, so its wait is pointless.
            self.close(slot, cx);
            return;
        }
        if peer.readable && peer.connection.wants_input() {
            match peer.socket.read(&mut self.buffer) {
                Ok(0) => {
                    peer.readable = false;
                    peer.connection.end_input(cx);
                }
                Ok(count) => {
                    cx.counters.received_bytes.add(count as u64);
                    // A short read emptied the kernel's buffer. The kernel reports when there is
                    // more.
                    peer.readable = count == self.buffer.len() || peer.read_closed;
                    peer.connection.receive(&self.buffer[..count], cx);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => peer.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.close(slot, cx);
                    return;
                }
            }
        }
        self.after_running(slot, cx);
        self.free_memory(cx);
    }

    /// Disconnects the clients that use most memory while all together use too much.
    #[inline]
    pub(super) fn free_memory(&mut self, cx: &Context<'_>) {
        if cx.shared.client_memory.budget.needs_relief() && !self.is_relief_vain {
            self.evict_clients(cx);
        }
    }

    #[cold]
    fn evict_clients(&mut self, cx: &Context<'_>) {
        let victims = choose_victims(&cx.shared.client_memory, &cx.shared.clients);
        self.is_relief_vain = victims.is_empty();
        for client in victims {
            if client.worker != self.index {
                cx.shared.inboxes[client.worker].send(Message::Evict(client.connection_id));
            } else if self.peer_of(client.connection_id).is_some() {
                self.disconnect(client.connection_id.slot, CloseReason::Memory, cx);
            }
        }
    }

    /// Puts a connection that has run commands, or may run some, on its lists.
    pub(super) fn after_running(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        peer.connection.settle();
        if !peer.is_dirty {
            peer.is_dirty = true;
            self.flush.push(slot);
        }
        self.log_wanted = self.log_wanted.max(peer.connection.session.outbox.wanted());
        if !peer.is_holding && peer.connection.waits_for_log() {
            peer.is_holding = true;
            self.holding.push(slot);
        }
        let has_more = peer.connection.can_resume() || (peer.readable && peer.connection.wants_input());
        if has_more && !peer.is_waiting_for_turn {
            peer.is_waiting_for_turn = true;
            self.again.push(slot);
        }
        self.set_timer(slot, cx.config);
    }

    /// Has a connection read in a later turn.
    pub(super) fn read_later(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut)
            && !peer.is_waiting_for_turn
        {
            peer.is_waiting_for_turn = true;
            self.again.push(slot);
        }
    }

    pub(super) fn mark_dirty(&mut self, slot: usize) {
        if let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut)
            && !peer.is_dirty
        {
            peer.is_dirty = true;
            self.flush.push(slot);
        }
    }

    /// Continues connections that had more work than fitted into the last turn.
    pub(super) fn run_waiting(&mut self, cx: &Context<'_>) {
        for slot in std::mem::take(&mut self.again) {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_waiting_for_turn = false;
            if peer.connection.can_resume() {
                peer.connection.resume(cx);
                self.after_running(slot, cx);
                self.free_memory(cx);
            } else {
                self.read(slot, cx);
            }
        }
    }
}

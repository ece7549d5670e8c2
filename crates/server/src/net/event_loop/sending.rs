//! Sends replies and closes connections.

use super::WorkerState;
use super::environment::Environment;
use crate::context::Context;
use crate::net::connection::CloseReason;

impl WorkerState {
    pub(super) fn send(&mut self, environment: &Environment, cx: &Context<'_>) {
        let mut flush = std::mem::take(&mut self.flush);
        // Flush in reverse order: emissions, which result from commands, before acknowledgements.
        // Their latency is longer already.
        for slot in flush.drain(..).rev() {
            let Some(peer) = self.peer_mut(slot) else { continue };
            peer.is_dirty = false;
            match peer.send(environment.counters()) {
                Err(_) => self.close(slot, cx),
                Ok(()) if peer.connection.is_finished() => self.finish(slot, cx),
                Ok(()) => self.after_sending(slot, cx),
            }
        }
        if self.flush.is_empty() {
            // Keep the allocation; sending adds nothing to the list.
            self.flush = flush;
        }
    }

    /// Closes a connection that has been sent everything.
    fn finish(&mut self, slot: usize, cx: &Context<'_>) {
        if self.stop_at.is_some()
            && let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut)
        {
            peer.discard_input(&mut self.buffer);
        }
        self.close(slot, cx);
    }

    fn after_sending(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        if peer.connection.session.outbox.pending() > 0 {
            // A client that has not read everything may be slow.
            peer.connection.session.outbox.reply.trim();
        }
        peer.connection.settle();
        if peer.connection.holds_bytes() {
            if let Some(reason) = peer.connection.exceeded(cx.config, cx.shared.clock.now()) {
                self.disconnect(slot, reason, cx);
                return;
            }
            self.set_timer(slot, cx.config);
        }
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        let has_more = peer.connection.can_resume() || (peer.readable && peer.connection.wants_input());
        if has_more && !peer.is_waiting_for_turn {
            peer.is_waiting_for_turn = true;
            self.again.push(slot);
        }
    }

    pub(super) fn disconnect(&mut self, slot: usize, reason: CloseReason, cx: &Context<'_>) {
        match reason {
            CloseReason::SlowReader => cx.counters.slow_readers.add(1),
            CloseReason::Memory => cx.counters.evicted_clients.add(1),
            CloseReason::QueryBuffer | CloseReason::Unfinished => cx.counters.protocol_errors.add(1),
            CloseReason::Idle | CloseReason::Unauthenticated => {}
        }
        self.close(slot, cx);
    }

    pub(super) fn close(&mut self, slot: usize, cx: &Context<'_>) {
        let Some(mut peer) = self.peers.get_mut(slot).and_then(Option::take) else { return };
        peer.connection.close(cx);
        peer.socket.deregister(self.poll.registry());
        self.closed.push(slot);
    }
}

//! Messages from other threads.

use super::WorkerState;
use super::environment::Environment;
use crate::context::Context;
use crate::events::invalidation;
use crate::net::connection::CloseReason;
use crate::net::inbox::Message;
use crate::wait;
use std::sync::atomic::Ordering;
use tidemark_engine::watch::Query;

/// Most rounds of messages in one turn. Bounds clients that wake each other in a cycle.
const MESSAGE_ROUNDS: usize = 16;

impl WorkerState {
    pub(super) fn take_messages(&mut self, environment: &Environment, cx: &Context<'_>) {
        for _ in 0..MESSAGE_ROUNDS {
            let mut messages = std::mem::take(&mut self.messages);
            environment.inbox().take(&mut messages);
            if messages.is_empty() {
                self.messages = messages;
                return;
            }
            for message in messages.drain(..) {
                self.handle(message, cx);
            }
            self.messages = messages;
        }
    }

    fn handle(&mut self, message: Message, cx: &Context<'_>) {
        let connection_id = match message {
            Message::Stop => return self.begin_stop(cx),
            Message::PauseChanged => return self.look_after_pause(cx),
            Message::Beat(taken) => {
                taken.fetch_add(1, Ordering::AcqRel);
                return;
            }
            Message::Emitted(query) => return self.emit(&query, cx),
            Message::Broadcast(broadcast) => return broadcast.pass_on(),
            Message::Invalidated(connection_id, source) => {
                match self.peer_of(connection_id).filter(|peer| peer.connection.takes_invalidations()) {
                    Some(peer) => peer.connection.invalidate(source, cx),
                    None => return invalidation::return_to_owner(&source, connection_id, &cx.shared.inboxes),
                }
                connection_id
            }
            Message::RedirectBroken(connection_id, taker) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    invalidation::break_redirect(&mut peer.connection.session, taker);
                }
                connection_id
            }
            Message::Kill(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.close(connection_id.slot, cx);
                }
                return;
            }
            Message::CutOff(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.disconnect(connection_id.slot, CloseReason::SlowReader, cx);
                }
                return;
            }
            Message::Evict(connection_id) => {
                if self.peer_of(connection_id).is_some() {
                    self.disconnect(connection_id.slot, CloseReason::Memory, cx);
                }
                return;
            }
            Message::Deliver(connection_id, delivery) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.deliver(&delivery, cx);
                }
                connection_id
            }
            Message::Publish(connection_id, publication) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.publish(&publication, cx.config);
                }
                connection_id
            }
            Message::Taken(connection_id, query, fencing_token) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.lose_name(query, fencing_token, cx);
                }
                connection_id
            }
            Message::Older(connection_id, query) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.older(query, cx);
                }
                connection_id
            }
            Message::Done(connection_id, done) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.finish_long(&done, cx);
                }
                connection_id
            }
            Message::Changed(connection_id) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.write_changes(cx);
                }
                connection_id
            }
            Message::Dice(connection_id, notice) => {
                if let Some(peer) = self.peer_of(connection_id) {
                    peer.connection.heed(notice, cx);
                }
                connection_id
            }
            Message::Unblock(connection_id, how, waiter) => {
                if let Some(peer) = self.peer_of(connection_id)
                    && wait::is_waiting(&peer.connection.session, waiter.as_ref())
                {
                    peer.connection.unblock(how, cx);
                }
                connection_id
            }
        };
        if self.peer_of(connection_id).is_some() {
            self.after_running(connection_id.slot, cx);
        }
    }

    /// Delivers a query's emissions to its subscribers.
    fn emit(&mut self, query: &Query, cx: &Context<'_>) {
        // Re-armed before the emissions are read: later emissions notify again.
        query.look(self.index);
        for slot in cx.registry.of(query.id()) {
            if let Some(peer) = self.peer_mut(slot) {
                peer.connection.emit(query.id(), cx);
                self.after_running(slot, cx);
            }
        }
    }

    /// Continues clients that `CLIENT PAUSE` no longer blocks.
    pub(super) fn look_after_pause(&mut self, cx: &Context<'_>) {
        for slot in 0..self.peers.len() {
            if self.peer_mut(slot).is_some_and(|peer| peer.connection.end_pause(cx)) {
                self.after_running(slot, cx);
            }
        }
    }
}

//! Deadlines of connections and of the keyspace.

use super::WorkerState;
use super::environment::Environment;
use crate::config::Config;
use crate::context::Context;
use crate::net::connection_id::ConnectionId;
use crate::net::inbox::Unblock;
use std::time::Instant;

impl WorkerState {
    pub(super) fn set_timer(&mut self, slot: usize, config: &Config) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_deref_mut) else { return };
        let Some(at) = peer.connection.next_deadline(config) else { return };
        // An earlier timer recomputes the deadline when it fires.
        if peer.timer.is_none_or(|set| at < set) {
            peer.timer = Some(at);
            let connection_id = peer.connection.session.connection_id();
            let live = self.peers.len() - self.free.len() - self.closed.len();
            let peers = &self.peers;
            self.timers.set(at, connection_id, live, |at, connection_id| {
                let peer = peers.get(connection_id.slot).and_then(Option::as_deref);
                peer.is_some_and(|peer| {
                    peer.timer == Some(at) && peer.connection.session.connection_id() == connection_id
                })
            });
        }
    }

    /// Applies changed settings to the deadlines of silent clients.
    pub(super) fn set_all_timers(&mut self, config: &Config) {
        (0..self.peers.len()).for_each(|slot| self.set_timer(slot, config));
    }

    pub(super) fn look_after_time(&mut self, environment: &Environment, cx: &Context<'_>) {
        environment.shared.do_due_work(cx.now_us);
        environment.shared.forget_watched(cx.now_us);
        if self.timers.next().is_none() && self.accept_at.is_none() {
            return;
        }
        let now = cx.shared.clock.now();
        if self.accept_at.is_some_and(|at| at <= now) {
            self.accept_at = None;
            (0..self.listeners.len()).for_each(|number| self.accept(number, environment));
        }
        // Collected first: timers set meanwhile wait for the next turn.
        let due: Vec<ConnectionId> = std::iter::from_fn(|| self.timers.take_due(now)).collect();
        for connection_id in due {
            if let Some(peer) = self.peer_of(connection_id) {
                peer.timer = None;
                self.time_has_come(connection_id.slot, now, cx);
            }
        }
    }

    fn time_has_come(&mut self, slot: usize, now: Instant, cx: &Context<'_>) {
        let Some(peer) = self.peer_mut(slot) else { return };
        if peer.connection.wait_is_over(now) {
            peer.connection.unblock(Unblock::Timeout, cx);
        }
        peer.connection.watching_time(now, cx);
        let reason =
            peer.connection.overdue(cx.config, now).or_else(|| peer.connection.exceeded(cx.config, now));
        match reason {
            Some(reason) => self.disconnect(slot, reason, cx),
            None => self.after_running(slot, cx),
        }
    }
}

//! Runs a command's handler under its locks, for client commands and for replayed ones.

use crate::command::{self, Run};
use crate::context::{Context, Keys};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::event::Events;
use crate::execute::call::Call;
use crate::execute::locking::Access;
use crate::execute::noted::Noted;
use crate::persist::points::PointsRun;
use crate::wire::reply::Reply;

impl Engine {
    /// Runs a command from the log: as [`Engine::execute`], but without logging and without serving
    /// blocked clients. Appends the subscribers that the change concerns to `noted`.
    pub(crate) fn replay(&self, call: &Call<'_>, reply: &mut Reply, noted: &mut Vec<Noted>) {
        let mut keys = self.lock_for(call);
        keys.begin_replay();
        // Subscribers were notified when the command first ran.
        keys.events = Events::default();
        self.run(call, &mut keys, reply);
        noted.append(&mut keys.effects.take_noted());
    }

    /// Removes a key that has expired, from the log: as [`Engine::replay`].
    pub(crate) fn replay_expiry(&self, db: u8, key: &[u8], now_us: u64, noted: &mut Vec<Noted>) {
        let locked =
            self.lock_reachable(self.lock_one(key), Access::Write, || std::iter::once(key), |_| false);
        let mut keys = self.keys(locked, db, now_us);
        keys.events = Events::default();
        keys.remove_expired(key);
        noted.append(&mut keys.effects.take_noted());
    }

    /// Adds the points of a record to a series, as [`Engine::replay`] does.
    pub(crate) fn replay_points(
        &self,
        db: u8,
        now_us: u64,
        run: PointsRun<'_>,
        noted: &mut Vec<Noted>,
    ) -> Result<(), CommandError> {
        let key = run.key;
        let locked =
            self.lock_reachable(self.lock_one(key), Access::Write, || std::iter::once(key), |_| false);
        let mut keys = self.keys(locked, db, now_us);
        keys.begin_replay();
        keys.events = Events::default();
        let result = command::replay_points(&mut keys, run);
        noted.append(&mut keys.effects.take_noted());
        result
    }

    /// Runs a handler; an error replaces any partial reply.
    #[inline]
    pub(crate) fn run(&self, call: &Call<'_>, keys: &mut Keys<'_>, reply: &mut Reply) {
        let Run::Keys(handler) = call.command.run else {
            reply.error_text("ERR this command belongs to the connection and cannot run on keys");
            return;
        };
        let mark = reply.len();
        if keys.events.are_wanted() {
            keys.note_misses(call.command, call.args);
        }
        if let Err(error) = CommandError::guard(|| handler(&mut Context { keys, reply }, call.args)) {
            answer_failure(call, keys, reply, mark, error);
        }
        if let Some(at) = keys.effects.earliest_deadline.take() {
            self.deadlines().lower(at);
        }
    }
}

/// Replaces the command's reply, from `mark` on, with its error.
#[cold]
fn answer_failure(call: &Call<'_>, keys: &mut Keys<'_>, reply: &mut Reply, mark: usize, error: CommandError) {
    assert!(
        !keys.effects.changed,
        "command '{}' has failed with '{error}' and changed something",
        call.command.name
    );
    keys.events.forget_misses();
    keys.effects.drop_rest();
    reply.truncate(mark);
    let mut named = call.command.keys.keys(call.args);
    let error = match (named.next(), named.next()) {
        (Some(key), None) => error.of_series(key),
        _ => error,
    };
    reply.error(&call.command.explain(call.args, error));
}

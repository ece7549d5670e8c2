//! Runs a command's handler under its locks, for client commands and for replayed ones.

use crate::command::Run;
use crate::context::{Context, Keys};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::wire::reply::Reply;

impl Engine {
    /// Runs a handler; an error replaces any partial reply.
    #[inline]
    pub(crate) fn run(&self, call: &Call<'_>, keys: &mut Keys<'_>, reply: &mut Reply) {
        let Run::Keys(handler) = call.command.run else {
            return self.run_otherwise(call, keys, reply);
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

    /// Runs what has no handler of keys. Of its own, so that handlers do not save registers for it.
    #[inline(never)]
    fn run_otherwise(&self, call: &Call<'_>, keys: &mut Keys<'_>, reply: &mut Reply) {
        match call.command.run {
            Run::Script(named) => self.run_script(named, call, keys, reply),
            _ => reply.error_text("ERR this command belongs to the connection and cannot run on keys"),
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

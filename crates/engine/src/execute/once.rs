//! Commands that clients number, so that a repetition is answered and not executed: `ONCE`.
//!
//! ```text
//! ONCE session number ─► lock keys and session ─► look: new ────────► run, note the answer ─┐
//!                                                  │ executed: answer it                    ▼
//!                                                  └ lost: refuse         one record: changes and note
//! ```
//!
//! The note is in the record of the changes, so that both are kept or neither, on every machine that
//! has the log. What a command does and answers without a record has one too. Moves of counters that
//! are in no record are committed by it.

use crate::command::{find_logged, once, parse};
use crate::context::{Effects, Keys};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::execute::logging::encode_effects;
use crate::keyspace::{SESSIONS, hash};
use crate::value::{Known, NotedAnswer, NumberedAnswer, SESSION_ANSWERS_BYTES, SESSION_WINDOW};
use crate::wire::reply::Reply;
use crate::wire::translated::translate;
use tidemark_log::Lsn;
use xxhash_rust::xxh3::Xxh3;

/// The name under which a client has a command executed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnceName<'a> {
    /// The session: 1 to [`OnceName::SESSION_BYTES`] bytes.
    pub session: &'a [u8],
    /// The number in the session: 1 to [`i64::MAX`].
    pub number: u64,
}

impl OnceName<'_> {
    /// Maximum bytes of a session's name.
    pub const SESSION_BYTES: usize = 128;
}

/// Maximum bytes of a note besides the session's name and the answer.
pub(super) const NOTE_BYTES: usize = 64;

/// What was done about a name before its commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    /// Nothing was executed under it.
    New,
    /// The answer, or the error, is written.
    Answered,
}

/// Commands that are executed under a name.
#[derive(Clone, Copy)]
pub(super) struct Once<'a> {
    pub(super) name: OnceName<'a>,
    /// Digest of the commands.
    digest: u64,
    /// Whether the answer is that of `EXEC`.
    pub(super) is_transaction: bool,
}

impl<'a> Once<'a> {
    pub(super) fn of_command(name: OnceName<'a>, calls: &[Call<'_>]) -> Self {
        Self { name, digest: digest_of(calls, false), is_transaction: false }
    }

    pub(super) fn of_transaction(name: OnceName<'a>, calls: &[Call<'_>]) -> Self {
        Self { name, digest: digest_of(calls, true), is_transaction: true }
    }

    /// Answers a number that is not new. The session's shard is locked.
    pub(super) fn look(self, keys: &Keys<'_>, reply: &mut Reply) -> Looked {
        let OnceName { session: name, number } = self.name;
        let known = keys.session(name).map_or(Known::New, |session| session.look(number));
        let session = parse::shown(name);
        let error = match known {
            Known::New => return Looked::New,
            Known::Lost { newest } => format!(
                "ONCE_LOST whether number {number} of session {session} was executed is not known any more: its \
                 newest is {newest}, and it keeps {SESSION_WINDOW}; nothing was done"
            ),
            Known::Executed(executed) if executed.digest != self.digest => format!(
                "ONCE_OTHER number {number} of session {session} was given to another command, and nothing was done: \
                 a new command takes a new number"
            ),
            Known::Executed(NumberedAnswer { answer: NotedAnswer::Kept { protocol, bytes }, .. }) => {
                if translate(bytes, *protocol, reply) {
                    return Looked::Answered;
                }
                format!("ERR the answer to number {number} of session {session} is malformed")
            }
            Known::Executed(NumberedAnswer { answer: NotedAnswer::Dropped, .. }) => format!(
                "ONCE_DONE number {number} of session {session} was executed, and its answer was too long to be kept; \
                 it was not executed again"
            ),
        };
        reply.error_text(&error);
        Looked::Answered
    }
}

impl Engine {
    /// Returns the number of sessions of `ONCE`. O(shards).
    pub fn session_count(&self) -> usize {
        let shards = 0..self.keyspace().shard_count();
        shards.map(|index| self.keyspace().lock(index).database(usize::from(SESSIONS)).len()).sum()
    }

    /// Returns an upper bound of the last LSN that an answer from a session may show. Locks the
    /// session's shard.
    pub fn newest_shown_by_session(&self, session: &[u8]) -> Lsn {
        self.keyspace().lock(self.keyspace().shard_of(session)).last()
    }

    /// Refuses a session that would be one too many. Sessions that other threads begin at the same time
    /// are not counted. The caller holds no locks.
    pub(super) fn admit_session(&self, name: OnceName<'_>) -> Result<(), CommandError> {
        let shard = self.keyspace().shard_of(name.session);
        let sessions = |index| self.keyspace().lock(index);
        let is_there = |index| {
            sessions(index).database(usize::from(SESSIONS)).get(hash(name.session), name.session).is_some()
        };
        if is_there(shard) {
            return Ok(());
        }
        let (count, most) = (self.session_count(), self.keyspace().sessions_max());
        if count < most {
            return Ok(());
        }
        Err(CommandError::Text(
            format!(
                "ONCE_FULL there are {count} sessions, and once-max-sessions allows {most}: nothing was done; \
                 go on with a session that exists, or raise the setting"
            )
            .into(),
        ))
    }

    /// Notes the answer, which begins at a mark of a reply, in the session, and appends what the log
    /// gets of that to the payloads. Returns the effects. The session's shard is locked.
    pub(super) fn note_once(
        &self,
        once: Once<'_>,
        now_us: u64,
        keys: &mut Keys<'_>,
        (reply, mark): (&Reply, usize),
        payloads: &mut Vec<Vec<u8>>,
    ) -> Effects {
        let OnceName { session, number } = once.name;
        let is_kept = !reply.has_overflowed() && reply.len() - mark <= SESSION_ANSWERS_BYTES;
        let answer = if is_kept {
            NotedAnswer::Kept { protocol: reply.protocol(), bytes: reply.bytes()[mark..].into() }
        } else {
            NotedAnswer::Dropped
        };
        let noted = once::arguments(&NumberedAnswer { number, digest: once.digest, answer });
        let args = [once::NOTE.as_bytes(), session, &noted[0], &noted[1], &noted[2]];
        let command = find_logged(once::NOTE).expect("the table of logged commands has it");
        let call = Call { command, args: &args, db: SESSIONS, now_us };
        let mut failure = Reply::default();
        keys.select(SESSIONS);
        keys.see_expired(false);
        self.run(&call, keys, &mut failure);
        assert!(
            failure.is_empty(),
            "number {number} of a session is new, and is not noted: {}",
            String::from_utf8_lossy(failure.bytes())
        );
        let effects = std::mem::take(&mut keys.effects);
        encode_effects(&call, &effects, payloads);
        effects
    }
}

/// Digest of commands, each with its database.
fn digest_of(calls: &[Call<'_>], is_transaction: bool) -> u64 {
    let mut hasher = Xxh3::new();
    hasher.update(&[u8::from(is_transaction)]);
    for call in calls {
        hasher.update(&[call.db]);
        hasher.update(&call.command.id.to_le_bytes());
        hasher.update(&(call.args.len() as u64).to_le_bytes());
        for arg in &call.args[1..] {
            hasher.update(&(arg.len() as u64).to_le_bytes());
            hasher.update(arg);
        }
    }
    hasher.digest()
}

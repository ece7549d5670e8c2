//! The part of a record that says under which number of a session its changes were made, and what was
//! answered.

use crate::command::{Command, Group, KeySpec, Run, flags, parse};
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::SESSIONS;
use crate::persist::level;
use crate::value::{NotedAnswer, NumberedAnswer};

/// Name of the command that only the log has.
pub(crate) const NOTE: &str = "once.note";

/// Its id in the log.
pub(crate) const NOTE_ID: u16 = 650;

/// Rows that only the log has.
pub(super) const LOGGED: &[Command] =
    &[Command::new(Group::Transactions, NOTE_ID, NOTE, 5, flags::WRITE, KeySpec::ONE, Run::Keys(note))
        .at_level(level::ONCE)
        .using(&["RW update"])
        .doc(
            "tidemark 0.1.0",
            "O(log(N)) with N the numbers in the window",
            "session number digest answer",
            "A command was executed under a number.",
        )];

/// Returns the arguments that note an executed number, without the session and the command's name.
pub(crate) fn arguments(executed: &NumberedAnswer) -> [Vec<u8>; 3] {
    let mut answer = Vec::new();
    executed.answer.encode(&mut answer);
    [executed.number.to_string().into_bytes(), executed.digest.to_le_bytes().to_vec(), answer]
}

fn executed(number: &[u8], digest: &[u8], answer: &[u8]) -> Option<NumberedAnswer> {
    let number = parse::canonical_integer(number).and_then(|number| u64::try_from(number).ok())?;
    let digest = u64::from_le_bytes(digest.try_into().ok()?);
    (number > 0).then_some(NumberedAnswer { number, digest, answer: NotedAnswer::decode(answer)? })
}

/// `once.note session number digest answer`
fn note(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let &[_, session, number, digest, answer] = args else { return Err(CommandError::Syntax) };
    if ctx.keys.db() != SESSIONS {
        return Err(CommandError::text("ERR a session is noted in a database of keys"));
    }
    let executed = executed(number, digest, answer);
    let executed = executed.ok_or(CommandError::text("ERR what is noted for a session is malformed"))?;
    if ctx.keys.note_once(session, executed)? {
        Ok(())
    } else {
        Err(CommandError::Text(
            format!("ERR number {} of session {} is not new", parse::shown(number), parse::shown(session))
                .into(),
        ))
    }
}

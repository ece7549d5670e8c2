//! Runs commands for HTTP requests: with the same handlers, records and waits as for clients of the
//! Redis protocol.

use crate::command::gate;
use crate::command::rows::command_table;
use crate::durability::hold::{COMMIT_LOST, holds_back};
use crate::durability::log_state::CommitLost;
use crate::events::publishing::send_published;
use crate::http::refusal::Refusal;
use crate::net::client_eviction::NO_MEMORY;
use crate::net::outbox::Until;
use crate::resp::Value;
use crate::shared::Shared;
use crate::value_json::decode;
use tidemark_engine::command::flags;
use tidemark_engine::{Call, Command, Engine, Protocol, Reply, Terms};

/// A command and its arguments, as over the wire.
pub(crate) type Words<'a> = Vec<&'a [u8]>;

/// Runs one command, or several as a transaction, which returns an array. Waits until the answer is
/// committed, if the mode requires that.
pub(crate) async fn run(shared: &Shared, db: u8, commands: &[Words<'_>]) -> Result<Value, Refusal> {
    let rows: Vec<&'static Command> =
        commands.iter().map(|words| command_table().resolve(words)).collect::<Result<_, _>>()?;
    check_lead(shared, commands, &rows)?;
    let changes = rows.iter().any(|row| row.is(flags::WRITE));
    let pause = &shared.pause;
    let concerns = || changes || !pause.is_of_changes_only();
    shared.http_registry.wait_while_paused(pause, concerns).await;
    if changes {
        let bytes = commands.iter().map(|words| Engine::record_bytes(words)).sum();
        shared.http_registry.wait_for_room(shared.engine.log(), bytes).await;
    }
    // A command admitted after this check is committed before the log closes.
    if shared.is_stopping() {
        return Err(Refusal::unavailable("the server is stopping"));
    }
    let ended_terms = shared.ended_terms();
    check_lead(shared, commands, &rows)?;
    let (answer, until) = execute(shared, db, commands, &rows);
    let until = until.map_err(|CommitLost| Refusal::unavailable(COMMIT_LOST))?;
    let reached = shared.wait_for_log(until, ended_terms).await;
    reached.map_err(Refusal::outcome_unknown)?;
    match answer {
        Value::Error(text) => {
            shared.errors.count(&text);
            Err(Refusal::of_error(&text))
        }
        answer => Ok(answer),
    }
}

/// Refuses commands that this member of a group may not run now, and names the leader.
fn check_lead(shared: &Shared, commands: &[Words<'_>], rows: &[&'static Command]) -> Result<(), Refusal> {
    let Some(group) = &shared.group else { return Ok(()) };
    let commands = rows.iter().zip(commands).map(|(row, words)| (*row, words.as_slice()));
    gate::objection_to_all(group, commands)
        .map_or(Ok(()), |error| Err(Refusal::of_error(error.to_string().as_bytes())))
}

/// Runs the commands and returns the answer and the watermark that it must wait for.
fn execute(
    shared: &Shared,
    db: u8,
    commands: &[Words<'_>],
    rows: &[&'static Command],
) -> (Value, Result<Option<Until>, CommitLost>) {
    assert_eq!(commands.len(), rows.len(), "each command has its row of the table");
    let now_us = shared.clock.now_us();
    let calls: Vec<Call<'_>> =
        rows.iter().zip(commands).map(|(command, args)| Call { command, args, db, now_us }).collect();
    shared.counters.last().inspect(|counters| counters.commands.add(calls.len() as u64));
    let due_before = shared.next_due_work();
    let mut reply = Reply::new(Protocol::Resp3);
    reply.set_budget(&shared.client_memory.budget);
    let executed = match calls.as_slice() {
        [call] => shared.engine.execute_as(call, Terms::default(), &mut reply),
        calls => shared.engine.execute_transaction_as(calls, None, &[], now_us, Terms::default(), &mut reply),
    };
    send_published(executed.published(), shared);
    assert!(!executed.blocks(), "nothing is run here that waits for keys");
    let shown = || calls.iter().map(|call| shared.engine.newest_shown(call.command, call.args)).max();
    let until = holds_back(&executed, false, reply.bytes(), || shown().unwrap_or_default(), shared);
    if shared.next_due_work() != due_before {
        // The workers may all sleep until the earlier deadline, or without one.
        shared.inboxes.first().inspect(|inbox| inbox.wake());
    }
    let answer = if reply.was_refused() { Value::Error(NO_MEMORY.into()) } else { decode(reply.bytes()) };
    (answer, until)
}

//! A data directory changed by a forger who knows the log's format: every checksum is right, and
//! the chain as well if the forger has fixed it.

use std::path::Path;
use std::sync::Arc;
use tidemark_engine::command;
use tidemark_engine::record::{Cursor, LoggedCommand, encode_command, kind};
use tidemark_log::tools::Records;
use tidemark_log::{FileStorage, Log, Lsn, Options, Storage};
use tidemark_pool::{Chain, Event, Events, Frame, Recorder};

/// Change of a record by name and arguments: returns the new arguments, the same, or `None` to drop
/// the record.
pub(crate) type Change<'a> = &'a mut dyn FnMut(&str, Vec<Vec<u8>>) -> Option<Vec<Vec<u8>>>;

/// Writes the commands of a log into a new directory, each as returned by `change`. Returns the
/// number of commands written.
pub(crate) fn forge(from: &Path, into: &Path, change: Change<'_>) -> u64 {
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::existing(from).expect("a directory"));
    let forged = FileStorage::new(into).expect("a directory");
    let (log, _) = Log::open(Arc::new(forged), Options::default()).expect("a new log");
    let mut records = Records::open(&storage, Lsn::FIRST, Lsn(u64::MAX)).expect("a log");
    while let Some(batch) = records.next_batch(&mut |_| ()).expect("a good log") {
        for record in batch {
            let Some(payload) = changed(record.kind, record.payload, change) else { continue };
            log.append(record.time_us, record.kind, |buffer| buffer.extend_from_slice(&payload))
                .expect("room");
        }
    }
    let last = log.appended();
    log.wait_durable(last).expect("a disk");
    log.close().expect("a disk");
    last.0
}

fn changed(of: u8, payload: &[u8], change: Change<'_>) -> Option<Vec<u8>> {
    if of != kind::COMMAND {
        return Some(payload.to_vec());
    }
    let logged = LoggedCommand::decode(&mut Cursor::new(payload)).expect("a command");
    let name = command::by_id(logged.id).expect("a known one").name;
    let args = change(name, logged.args.iter().map(|arg| arg.to_vec()).collect())?;
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let mut payload = Vec::new();
    encode_command(&mut payload, logged.db, logged.id, &args);
    Some(payload)
}

/// Returns the frame with each event changed, chained to `before`; and the new chain.
pub(crate) fn reframed(
    frame: &[u8],
    before: Chain,
    change: &mut dyn FnMut(u64, &mut Event<'_>),
) -> (Vec<u8>, Chain) {
    let old = Frame::read_alone(frame).expect("a frame");
    let (mut events, mut number) = (Recorder::default(), old.first_draw);
    for event in Events::new(old.events) {
        let mut event = event.expect("an event");
        let draws = match &event {
            Event::Drew(_) => 1,
            Event::DrewDifferent { items } | Event::Reserved { items, .. } => items.len() as u64,
            Event::Asked(asked) => asked.items.len() as u64,
            _ => 0,
        };
        change(number, &mut event);
        number += draws;
        events.record(&event);
    }
    let mut bytes = Vec::new();
    let chain = Frame { events: events.bytes(), ..old }.write(before, &mut bytes);
    (bytes, chain)
}

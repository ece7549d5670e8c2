//! Messages of a watched read on a channel: one line of JSON, which is also the reply to the client
//! that requests the watch.
//!
//! | line | meaning |
//! |---|---|
//! | `{"sub_id":"17-0","lsn":18,"seq":1,"value":"101"}` | an emission; the reply to a watch |
//! | `{"sub_id":"17-0","lsn":18,"seq":1,"change":[[180,3.5]]}` | an emission: what has changed |
//! | `{"sub_id":"17-0","lsn":18,"seq":1}` | the reply to `RESUME`; later emissions follow |
//! | `{…,"value":"102","reason":"STALE_SEQUENCE","floor":40}` | emissions are missing |
//! | `{"sub_id":"17-0","error":"ERR …"}` | the watch has ended |
//!
//! With `STALE_SEQUENCE`, emissions are missing at least up to `floor`; `value` is the current
//! answer.

use crate::subscription::cursor::Cursor;
use crate::subscription::json_cache::Json;
use crate::subscription::resume_error::ResumeError;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    sub_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    lsn: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Encodes a subscription's position, its answer there, and why earlier emissions are missing, if
/// so.
pub(crate) fn position(cursor: &Cursor, value: Option<&Json>, missed: Option<ResumeError>) -> Vec<u8> {
    encode(&Line {
        sub_id: cursor.name().as_str(),
        lsn: Some(cursor.lsn().0),
        seq: Some(cursor.sequence()),
        value,
        change: None,
        reason: missed.map(ResumeError::word),
        floor: missed.map(|missed| missed.lsn().0),
        error: None,
    })
}

/// Encodes an emission: the answer, or what has changed of it.
pub(crate) fn emission(cursor: &Cursor, json: &Json, is_change: bool) -> Vec<u8> {
    encode(&Line {
        sub_id: cursor.name().as_str(),
        lsn: Some(cursor.lsn().0),
        seq: Some(cursor.sequence()),
        value: (!is_change).then_some(json),
        change: is_change.then_some(json),
        reason: None,
        floor: None,
        error: None,
    })
}

/// Encodes the end of a subscription and the reason.
pub(crate) fn ended(cursor: &Cursor, error: &str) -> Vec<u8> {
    let sub_id = cursor.name();
    let sub_id = sub_id.as_str();
    encode(&Line {
        sub_id,
        lsn: None,
        seq: None,
        value: None,
        change: None,
        reason: None,
        floor: None,
        error: Some(error),
    })
}

fn encode(line: &Line<'_>) -> Vec<u8> {
    serde_json::to_vec(line).expect("a line has a form in JSON")
}

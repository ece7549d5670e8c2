//! What a channel's subscribers are told of a watched read: one line of JSON, which is also what whoever asks for the watch is
//! answered.
//!
//! | line | meaning |
//! |---|---|
//! | `{"sub_id":"17-0","lsn":18,"seq":1,"value":"101"}` | an emission, or the answer to a beginning |
//! | `{"sub_id":"17-0","lsn":18,"seq":1}` | the answer to `RESUME`: emissions behind this one follow |
//! | `{…,"value":"102","reason":"STALE_SEQUENCE","floor":40}` | emissions are missing, up to the floor at least; this is the present answer |
//! | `{"sub_id":"17-0","error":"ERR …"}` | the watch has ended |

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
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// Where a subscription is, its answer there, and why emissions before it are missing if they are.
pub(crate) fn position(cursor: &Cursor, value: Option<&Json>, missed: Option<ResumeError>) -> Vec<u8> {
    encode(&Line {
        sub_id: cursor.name().as_str(),
        lsn: Some(cursor.lsn().0),
        seq: Some(cursor.sequence()),
        value,
        reason: missed.map(ResumeError::word),
        floor: missed.map(|missed| missed.lsn().0),
        error: None,
    })
}

/// That a subscription has ended, and why.
pub(crate) fn ended(cursor: &Cursor, error: &str) -> Vec<u8> {
    let sub_id = cursor.name();
    let sub_id = sub_id.as_str();
    encode(&Line { sub_id, lsn: None, seq: None, value: None, reason: None, floor: None, error: Some(error) })
}

fn encode(line: &Line<'_>) -> Vec<u8> {
    serde_json::to_vec(line).expect("a line has a form in JSON")
}

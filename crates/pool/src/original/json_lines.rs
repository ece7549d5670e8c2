//! Format `json`: one object per line.
//!
//! ```text
//! {"type":1,"request_id":7,"item_id":"gold","success":true}
//! {"type":1,"error":1,"request_id":8,"success":false}
//! {"type":2,"item_id":"gold","quantity":10,"probability":20}
//! {"type":3,"path":"tmp/snapshot.json"}
//! ```

use super::record::{Record, Unreadable, draw};
use serde::Deserialize;
use std::borrow::Cow;

/// Any record; its type determines the required fields.
#[derive(Deserialize)]
struct Line {
    r#type: u8,
    #[serde(default)]
    error: u64,
    request_id: Option<u64>,
    item_id: Option<String>,
    success: Option<bool>,
    quantity: Option<i64>,
    probability: Option<i64>,
    path: Option<String>,
}

/// Parses a line, without its end.
pub(super) fn parse(line: &[u8]) -> Result<Record<'static>, Unreadable> {
    let line: Line = serde_json::from_slice(line).map_err(|_| Unreadable::Json)?;
    match line.r#type {
        1 => {
            let request = line.request_id.ok_or(Unreadable::Fields)?;
            let success = line.success.ok_or(Unreadable::Fields)?;
            draw(request, Cow::Owned(line.item_id.unwrap_or_default()), line.error, success)
        }
        2 => Ok(Record::Update {
            item: Cow::Owned(line.item_id.ok_or(Unreadable::Fields)?),
            quantity: line.quantity.ok_or(Unreadable::Fields)?,
            weight: line.probability.ok_or(Unreadable::Fields)?,
        }),
        3 => line.path.map(|_| Record::Snapshot).ok_or(Unreadable::Fields),
        4 => Ok(Record::Rotation),
        _ => Err(Unreadable::UnknownKind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read() {
        let draw = br#"{"type":1,"request_id":7,"item_id":"gold","success":true}"#;
        assert_eq!(parse(draw), Ok(Record::Draw { request: 7, item: "gold".into() }));
        let failed = br#"{"type":1,"error":1,"request_id":8,"success":false}"#;
        assert_eq!(parse(failed), Ok(Record::FailedDraw { request: 8 }));
        let update = br#"{"type":2,"item_id":"a\u003cb","quantity":-1,"probability":-7}"#;
        assert_eq!(parse(update), Ok(Record::Update { item: "a<b".into(), quantity: -1, weight: -7 }));
        assert_eq!(parse(br#"{"type":3,"path":"tmp/snapshot.json"}"#), Ok(Record::Snapshot));
    }

    #[test]
    fn what_is_missing_or_contradicts_is_no_record() {
        for (line, reason) in [
            (r#"{"type":1,"request_id":7,"item_id":"gold","success":true"#, Unreadable::Json),
            (r#"{"type":1,"request_id":-7,"item_id":"gold","success":true}"#, Unreadable::Json),
            (r#"{"type":1,"item_id":"gold","success":true}"#, Unreadable::Fields),
            (r#"{"type":1,"request_id":7,"success":true}"#, Unreadable::Contradiction),
            (r#"{"type":2,"item_id":"gold","quantity":1}"#, Unreadable::Fields),
            (r#"{"type":3}"#, Unreadable::Fields),
            (r#"{"type":9}"#, Unreadable::UnknownKind),
            ("{", Unreadable::Json),
        ] {
            assert_eq!(parse(line.as_bytes()), Err(reason), "{line}");
        }
    }
}

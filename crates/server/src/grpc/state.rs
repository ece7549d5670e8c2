//! `GetState`: returns the remaining stock of each item.

use super::messages::{GetStateRequest, GetStateResponse, RewardItem};
use super::pool::{ask, key, misread, status};
use crate::resp::Value;
use crate::shared::Shared;
use tonic::Status;

/// Items per command: a large pool must not delay draws.
const PAGE: &[u8] = b"1000";

/// Reads the items in pages.
pub(super) async fn state(shared: &Shared, request: &GetStateRequest) -> Result<GetStateResponse, Status> {
    let settings = shared.settings.current();
    let key = key(&request.pool, &settings.grpc_pool)?;
    let (mut items, mut from) = (Vec::new(), "0".to_owned());
    loop {
        let words = vec![&b"pool.state"[..], key, b"from", from.as_bytes(), b"count", PAGE];
        let state = ask(shared, words).await.map_err(|refusal| status(&refusal))?;
        if state == Value::Null {
            return Err(Status::not_found("there is no such pool: POOL.CREATE makes one"));
        }
        let Some(Value::Array(entries)) = field(&state, b"entries") else { return Err(misread()) };
        // An entry that leads to a table is not drawn itself.
        let leads = |entry: &Value| field(entry, b"leads-to").is_some_and(|table| *table != Value::Null);
        for entry in entries.iter().filter(|entry| !leads(entry)) {
            items.push(item(entry).ok_or_else(misread)?);
        }
        match field(&state, b"next") {
            Some(Value::Integer(next)) => from = next.to_string(),
            _ => return Ok(GetStateResponse { items }),
        }
    }
}

fn item(entry: &Value) -> Option<RewardItem> {
    let Value::Bulk(id) = field(entry, b"id")? else { return None };
    let Value::Integer(probability) = *field(entry, b"weight")? else { return None };
    let quantity = match field(entry, b"left")? {
        Value::Integer(left) => *left,
        _ => -1,
    };
    Some(RewardItem { item_id: String::from_utf8_lossy(id).into_owned(), quantity, probability })
}

/// Returns a field of a map.
fn field<'a>(map: &'a Value, name: &[u8]) -> Option<&'a Value> {
    let Value::Map(pairs) = map else { return None };
    pairs.iter().find(|(key, _)| matches!(key, Value::Bulk(key) if key == name)).map(|(_, value)| value)
}

//! Fields of a server's replies.

use tidemark_server::resp::Value;

pub(crate) fn field<'v>(map: &'v Value, name: &str) -> Option<&'v Value> {
    let pairs = map.as_pairs()?;
    pairs.into_iter().find(|(key, _)| key.as_bytes() == Some(name.as_bytes())).map(|(_, value)| value)
}

pub(crate) fn number(map: &Value, name: &str) -> Option<u64> {
    u64::try_from(field(map, name)?.as_integer()?).ok()
}

/// Returns a share, which RESP2 has as text.
pub(crate) fn share(value: &Value) -> Option<f64> {
    match value.plain() {
        Value::Double(number) => Some(*number),
        other => std::str::from_utf8(other.as_bytes()?).ok()?.parse().ok(),
    }
}

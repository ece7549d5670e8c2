//! The messages of the protocol: begin a subscription, resume one, and read its pushes.

use crate::event::{Emission, Reason};
use crate::link::Link;
use crate::position::Position;
use redis::{ErrorKind, PushInfo, PushKind, RedisError, RedisResult, Value};

/// A push about a subscription.
#[derive(Debug, PartialEq)]
pub(crate) enum Push {
    Emission(Emission),
    /// The subscription has ended: its emissions up to `floor` were evicted before they could be
    /// sent.
    Stale {
        floor: u64,
    },
}

/// Separator between a read and its operators.
const BAR: &[u8] = b"|";
/// Keywords after the separator that control delivery, which this client decides itself.
const DELIVERY: [&str; 6] = ["MARK", "OLD", "PROGRESS", "RESUME", "SQUASH", "UPDATES"];

/// Returns a read without its operators.
fn without_operators(read: &[Vec<u8>]) -> RedisResult<&[Vec<u8>]> {
    let mut parts = read.splitn(2, |word| word == BAR);
    let (words, operators) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_delivery = |word: &Vec<u8>| DELIVERY.iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes()));
    if words.is_empty() {
        Err((ErrorKind::InvalidClientConfig, "a read has a name").into())
    } else if operators.iter().any(is_delivery) {
        Err((ErrorKind::InvalidClientConfig, "how emissions are delivered is up to the client").into())
    } else {
        Ok(words)
    }
}

/// Begins a subscription; returns its position and the answer.
pub(crate) async fn begin(link: &mut Link, read: &[Vec<u8>]) -> RedisResult<(Position, Value)> {
    let key = first_key(link, without_operators(read)?).await?;
    let mut words = read.to_vec();
    if let Some(name) = words.first_mut() {
        name.extend_from_slice(b".WATCH");
    }
    let mut begun = link.ask(words.iter().map(Vec::as_slice)).await?;
    let position = Position {
        subscription: take(&mut begun, "sub_id").and_then(bytes).ok_or_else(strange)?,
        lsn: take(&mut begun, "lsn").and_then(number).ok_or_else(strange)?,
        seq: take(&mut begun, "seq").and_then(number).ok_or_else(strange)?,
        key,
        read: read.to_vec(),
        listed: Vec::new(),
    };
    let answer = take(&mut begun, "value").ok_or_else(strange)?;
    let watches = link.ask([b"WATCHES".as_slice()]).await?;
    let listed = listed(watches, &position.subscription)?;
    Ok((Position { listed, ..position }, answer))
}

/// Resumes a subscription after a position; returns a reason if that would leave out emissions.
pub(crate) async fn resume(link: &mut Link, position: &Position) -> RedisResult<Option<Reason>> {
    let lsn = position.lsn.to_string();
    let words = [b"EMITRECONNECT", position.key.as_slice(), &position.subscription, lsn.as_bytes()];
    // Sent together, so the second reply does not come after all that the subscriber has missed.
    let [answer, watches] = link.ask_both(&words, &[b"WATCHES"]).await?;
    let Value::Array(answer) = answer else { return Err(strange()) };
    let [word, found] = <[Value; 2]>::try_from(answer).map_err(|_| strange())?;
    let (word, found) = bytes(word).zip(number(found)).ok_or_else(strange)?;
    Ok(match word.as_slice() {
        b"OK" if found != position.seq_next() => Some(Reason::Gap { expected: position.seq_next(), found }),
        // Another subscription has the same id, key and number by chance.
        b"OK" if listed(watches, &position.subscription)? != position.listed => Some(Reason::NotFound),
        b"OK" => None,
        b"STALE_SEQUENCE" => Some(Reason::Stale { floor: found }),
        b"INVALID_SEQUENCE" => Some(Reason::TakenBack { head: found }),
        b"SUBSCRIPTION_NOT_FOUND" => Some(Reason::NotFound),
        _ => return Err(strange()),
    })
}

/// Reads a push about this subscription; `None` if it is about something else.
pub(crate) fn decode_push(push: PushInfo, subscription: &[u8]) -> Option<Push> {
    let PushKind::Other(kind) = push.kind else { return None };
    let mut fields = push.data.into_iter();
    if fields.next().and_then(bytes)? != subscription {
        return None;
    }
    let (first, second) = (fields.next().and_then(number)?, fields.next().and_then(number)?);
    match kind.as_str() {
        "emission" => Some(Push::Emission(Emission { lsn: first, seq: second, value: fields.next()? })),
        "stale" => Some(Push::Stale { floor: second }),
        _ => None,
    }
}

/// Returns the first key of a read, which the server requires to resume a subscription; empty if it
/// has none.
async fn first_key(link: &mut Link, read: &[Vec<u8>]) -> RedisResult<Vec<u8>> {
    let words = [b"COMMAND".as_slice(), b"GETKEYS"].into_iter().chain(read.iter().map(Vec::as_slice));
    match link.ask(words).await {
        Ok(Value::Array(keys)) => Ok(keys.into_iter().next().and_then(bytes).unwrap_or_default()),
        Ok(_) => Err(strange()),
        // The read has no keys, or does not exist; the server reports the latter better when it is
        // watched.
        Err(error) if matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the read of a subscription as the server lists it.
fn listed(watches: Value, subscription: &[u8]) -> RedisResult<Vec<Vec<u8>>> {
    let Value::Array(watches) = watches else { return Err(strange()) };
    for mut watch in watches {
        if take(&mut watch, "sub_id").and_then(bytes).as_deref() == Some(subscription) {
            let Some(Value::Array(mut words)) = take(&mut watch, "command") else { return Err(strange()) };
            if let Some(Value::Array(operators)) = take(&mut watch, "operators") {
                words.push(Value::BulkString(BAR.to_vec()));
                words.extend(operators);
            }
            return words.into_iter().map(bytes).collect::<Option<_>>().ok_or_else(strange);
        }
    }
    Ok(Vec::new())
}

fn take(map: &mut Value, name: &str) -> Option<Value> {
    let Value::Map(fields) = map else { return None };
    let is_named = |key: &Value| matches!(key, Value::BulkString(key) if key == name.as_bytes());
    fields.iter_mut().find(|(key, _)| is_named(key)).map(|(_, value)| std::mem::take(value))
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.into_bytes()),
        Value::Okay => Some(b"OK".to_vec()),
        _ => None,
    }
}

fn number(value: Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

fn strange() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "the server does not answer as a Tidemark server does").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(kind: &str, data: Vec<Value>) -> PushInfo {
        PushInfo { kind: PushKind::Other(kind.to_owned()), data }
    }

    fn name(name: &str) -> Value {
        Value::BulkString(name.as_bytes().to_vec())
    }

    #[test]
    fn only_what_is_said_of_the_subscription_counts() {
        let fields = vec![name("2-0"), Value::Int(17), Value::Int(4), Value::Nil];
        let emission = Emission { lsn: 17, seq: 4, value: Value::Nil };
        assert_eq!(decode_push(push("emission", fields.clone()), b"2-0"), Some(Push::Emission(emission)));
        assert_eq!(decode_push(push("emission", fields.clone()), b"3-0"), None);
        assert_eq!(decode_push(push("news", fields.clone()), b"2-0"), None);
        assert_eq!(decode_push(PushInfo { kind: PushKind::Message, data: fields.clone() }, b"2-0"), None);
        assert_eq!(decode_push(push("stale", fields), b"2-0"), Some(Push::Stale { floor: 4 }));
    }

    #[test]
    fn a_read_may_have_operators_but_no_words_about_delivery() {
        let split = |line: &str| {
            let read: Vec<_> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            without_operators(&read).map(<[_]>::len).ok()
        };
        assert_eq!(split("GET k"), Some(2));
        assert_eq!(split("GET squash"), Some(2));
        assert_eq!(split("GET k | HIGH | EVERY 2"), Some(2));
        assert_eq!(split("GET k | HIGH squash"), None);
        assert_eq!(split("| HIGH"), None);
        assert!(without_operators(&[]).is_err());
    }

    #[test]
    fn a_push_that_is_cut_short_or_has_other_types_is_not_taken_for_one() {
        let fields = [name("2-0"), Value::Int(17), Value::Int(4), Value::Nil];
        for length in 0..fields.len() {
            let beginning = fields.iter().take(length).cloned().collect();
            assert_eq!(decode_push(push("emission", beginning), b"2-0"), None, "{length}");
        }
        let negative = vec![name("2-0"), Value::Int(-1), Value::Int(4), Value::Nil];
        assert_eq!(decode_push(push("emission", negative), b"2-0"), None);
    }
}

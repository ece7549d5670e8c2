//! The contract's answers and pushes, parsed from values; malformed ones are errors.

use tidemark_server::resp::Value;

/// Answer to `GET.WATCH`: the subscription and the state that its first emission follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watched {
    pub(crate) subscription: Vec<u8>,
    pub(crate) lsn: u64,
    pub(crate) seq: u64,
}

/// Answer to `EMITRECONNECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// The missed emissions follow, starting with this seq.
    Ok { next: u64 },
    /// Emissions up to this lsn are no longer available.
    Stale { floor: u64 },
    /// The log ends at this lsn, before the requested position.
    Invalid { head: u64 },
    /// The server has no such subscription.
    NotFound,
}

/// A message that the server pushes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Push {
    Emission(Emission),
    /// The subscriber fell too far behind; the server has ended this subscription.
    Stale {
        subscription: Vec<u8>,
    },
    /// A push outside the contract.
    Other,
}

/// An emission.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Emission {
    pub(crate) subscription: Vec<u8>,
    pub(crate) lsn: u64,
    pub(crate) seq: u64,
    /// Empty if the value is not a string.
    pub(crate) value: Vec<u8>,
}

/// An answer that violates the contract.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("{command} was refused with {text:?}")]
    Refused { command: &'static str, text: String },
    #[error("{command} was answered with {got}, which the contract does not know")]
    Unknown { command: &'static str, got: String },
}

const GET_WATCH: &str = "GET.WATCH";
const EMITRECONNECT: &str = "EMITRECONNECT";

impl Watched {
    pub(crate) fn read(reply: &Value) -> Result<Self, AnswerError> {
        refused(GET_WATCH, reply)?;
        let pairs = reply.as_pairs().unwrap_or_default();
        let field =
            |name: &[u8]| pairs.iter().find(|(key, _)| key.as_bytes() == Some(name)).map(|(_, value)| *value);
        let watched = || {
            Some(Watched {
                subscription: field(b"sub_id")?.as_bytes()?.to_vec(),
                lsn: position(field(b"lsn")?)?,
                seq: position(field(b"seq")?)?,
            })
        };
        watched().ok_or_else(|| unknown(GET_WATCH, reply))
    }
}

impl Resumed {
    pub(crate) fn read(reply: &Value) -> Result<Self, AnswerError> {
        refused(EMITRECONNECT, reply)?;
        let resumed = || {
            let [status, number] = reply.as_elements()? else { return None };
            let number = position(number)?;
            match status.as_bytes()? {
                b"OK" => Some(Resumed::Ok { next: number }),
                b"STALE_SEQUENCE" => Some(Resumed::Stale { floor: number }),
                b"INVALID_SEQUENCE" => Some(Resumed::Invalid { head: number }),
                b"SUBSCRIPTION_NOT_FOUND" => Some(Resumed::NotFound),
                _ => None,
            }
        };
        resumed().ok_or_else(|| unknown(EMITRECONNECT, reply))
    }

    /// Returns the contract's name for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Resumed::Ok { .. } => "OK",
            Resumed::Stale { .. } => "STALE_SEQUENCE",
            Resumed::Invalid { .. } => "INVALID_SEQUENCE",
            Resumed::NotFound => "SUBSCRIPTION_NOT_FOUND",
        }
    }
}

impl Push {
    /// Parses a push frame. A push of another kind is `Other`; a malformed emission is an error.
    pub(crate) fn read(frame: &Value) -> Result<Self, AnswerError> {
        let elements = frame.as_elements().unwrap_or_default();
        let kind = elements.first().and_then(Value::as_bytes).unwrap_or_default();
        let push = || match (kind, elements) {
            (b"emission", [_, subscription, lsn, seq, value]) => Some(Push::Emission(Emission {
                subscription: subscription.as_bytes()?.to_vec(),
                lsn: position(lsn)?,
                seq: position(seq)?,
                value: value.as_bytes().unwrap_or_default().to_vec(),
            })),
            (b"stale", [_, subscription, _, _]) => {
                Some(Push::Stale { subscription: subscription.as_bytes()?.to_vec() })
            }
            (b"emission" | b"stale", _) => None,
            _ => Some(Push::Other),
        };
        push().ok_or_else(|| unknown("a push", frame))
    }
}

fn position(value: &Value) -> Option<u64> {
    value.as_integer().and_then(|number| u64::try_from(number).ok())
}

fn refused(command: &'static str, reply: &Value) -> Result<(), AnswerError> {
    match reply.as_error() {
        Some(text) => Err(AnswerError::Refused { command, text: String::from_utf8_lossy(text).into_owned() }),
        None => Ok(()),
    }
}

fn unknown(command: &'static str, got: &Value) -> AnswerError {
    const SHOWN_CHARACTERS: usize = 200;
    AnswerError::Unknown { command, got: format!("{got:?}").chars().take(SHOWN_CHARACTERS).collect() }
}

#[cfg(test)]
mod tests {
    use super::{AnswerError, Emission, Push, Resumed, Watched};
    use crate::test_server::bulk;
    use tidemark_server::resp::Value;

    #[test]
    fn a_watch_is_read_from_the_map_and_from_the_flat_array() {
        let pairs = vec![
            (bulk("sub_id"), bulk("s1")),
            (bulk("lsn"), Value::Integer(7)),
            (bulk("seq"), Value::Integer(0)),
            (bulk("value"), Value::Null),
        ];
        let flat = pairs.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect::<Vec<_>>();
        let expected = Watched { subscription: b"s1".to_vec(), lsn: 7, seq: 0 };
        assert_eq!(Watched::read(&Value::Map(pairs)), Ok(expected.clone()));
        assert_eq!(Watched::read(&Value::Array(flat)), Ok(expected));
    }

    #[test]
    fn what_is_no_watch_is_named() {
        let refused = Watched::read(&Value::Error(b"ERR unknown command".to_vec()));
        assert!(matches!(refused, Err(AnswerError::Refused { text, .. }) if text == "ERR unknown command"));
        for reply in [
            Value::Simple(b"OK".to_vec()),
            Value::Map(vec![(bulk("sub_id"), bulk("s1"))]),
            Value::Array(vec![
                bulk("sub_id"),
                bulk("s1"),
                bulk("lsn"),
                Value::Integer(-1),
                bulk("seq"),
                Value::Integer(0),
            ]),
        ] {
            assert!(matches!(Watched::read(&reply), Err(AnswerError::Unknown { .. })), "{reply:?}");
        }
    }

    #[test]
    fn every_answer_to_a_reconnection_has_its_meaning() {
        let answer = |status: &str| Resumed::read(&Value::Array(vec![bulk(status), Value::Integer(9)]));
        assert_eq!(answer("OK"), Ok(Resumed::Ok { next: 9 }));
        assert_eq!(answer("STALE_SEQUENCE"), Ok(Resumed::Stale { floor: 9 }));
        assert_eq!(answer("INVALID_SEQUENCE"), Ok(Resumed::Invalid { head: 9 }));
        assert_eq!(answer("SUBSCRIPTION_NOT_FOUND"), Ok(Resumed::NotFound));
        assert!(answer("MAYBE").is_err());
        assert!(Resumed::read(&Value::Array(vec![bulk("OK")])).is_err());
        assert!(Resumed::read(&Value::Error(b"ERR".to_vec())).is_err());
    }

    #[test]
    fn an_emission_must_be_whole_and_other_pushes_may_come() {
        let frame = |elements: &[Value]| Push::read(&Value::Push(elements.to_vec()));
        let (kind, subscription) = (bulk("emission"), bulk("s1"));
        let whole = [kind.clone(), subscription.clone(), Value::Integer(5), Value::Integer(2), bulk("v")];
        let emission = Emission { subscription: b"s1".to_vec(), lsn: 5, seq: 2, value: b"v".to_vec() };
        assert_eq!(frame(&whole), Ok(Push::Emission(emission)));
        assert!(frame(&whole[..4]).is_err());
        let stale = [bulk("stale"), subscription.clone(), Value::Integer(5), Value::Integer(9)];
        assert_eq!(frame(&stale), Ok(Push::Stale { subscription: b"s1".to_vec() }));
        assert_eq!(frame(&[bulk("invalidate"), Value::Null]), Ok(Push::Other));
        assert_eq!(frame(&[]), Ok(Push::Other));
    }
}

//! Translates the JSON body of a check or release to commands.
//!
//! ```json
//! {"key": "user:42", "amount": 1, "limit": "GCRA 10 PER 1000 BURST 20"}
//! {"limits": [{"key": "tenant:7"}, {"key": "user:42", "limit": {"units": 10, "per_ms": 1000, "burst": 20}}], "peek": true}
//! {"key": "exports", "lease": 1763906655000000}
//! ```

use crate::http::refusal::Refusal;
use crate::http::running::Words;
use crate::http::word::Word;
use serde::Deserialize;
use serde_json::value::RawValue;
use tidemark_engine::command::parse;

/// Body for one key, or for several in `limits`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Body {
    key: Option<Word>,
    amount: Option<u64>,
    limit: Option<Box<RawValue>>,
    lease: Option<u64>,
    limits: Option<Vec<Item>>,
    peek: Option<bool>,
    db: Option<u8>,
}

/// Request for one key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    key: Word,
    amount: Option<u64>,
    limit: Option<Box<RawValue>>,
    /// Lease to return, if the key has leases.
    lease: Option<u64>,
}

/// Definition of a limiter by its parameters.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    algorithm: Option<String>,
    units: u64,
    per_ms: Option<u64>,
    /// For leases.
    ttl_ms: Option<u64>,
    burst: Option<u64>,
}

/// Parsed request.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) db: u8,
    /// Check without taking units.
    pub(crate) is_peek: bool,
    /// Whether the body has a list of keys, of any length.
    pub(crate) is_list: bool,
    count: String,
    wanted: Vec<KeyRequest>,
}

/// Request for one key, with numbers in the form of commands.
#[derive(Debug)]
struct KeyRequest {
    key: Vec<u8>,
    amount: String,
    definition: Vec<String>,
    lease: Option<String>,
}

impl Wish {
    /// Parses a body; the error is for the client.
    pub(crate) fn parse(body: &[u8]) -> Result<Wish, Refusal> {
        let body: Body = serde_json::from_slice(body)
            .map_err(|error| Refusal::wrong(format!("ERR the body is not what is expected: {error}")))?;
        let db = parse::database(body.db.unwrap_or_default().to_string().as_bytes())?;
        let is_list = body.limits.is_some();
        let has_more = body.amount.is_some() || body.limit.is_some() || body.lease.is_some();
        let items = match (body.key, body.limits) {
            (Some(key), None) => {
                vec![Item { key, amount: body.amount, limit: body.limit, lease: body.lease }]
            }
            (None, Some(items)) if !has_more && !items.is_empty() => items,
            _ => {
                return Err(Refusal::wrong(
                    "ERR give either key, with optional amount, limit and lease, or limits, a list of such objects"
                        .to_owned(),
                ));
            }
        };
        let wanted: Vec<KeyRequest> = items.into_iter().map(KeyRequest::of).collect::<Result<_, _>>()?;
        let (is_peek, count) = (body.peek.unwrap_or(false), wanted.len().to_string());
        Ok(Wish { db, is_peek, is_list, count, wanted })
    }

    /// Returns the command that checks, or peeks at, all keys.
    pub(crate) fn check(&self) -> Words<'_> {
        let name: &[u8] = if self.is_peek { b"limit.peekall" } else { b"limit.checkall" };
        let keys = self.wanted.iter().map(|wanted| wanted.key.as_slice());
        let amounts = self.wanted.iter().map(|wanted| wanted.amount.as_bytes());
        let definitions = self.wanted.iter().flat_map(|wanted| &wanted.definition).map(String::as_bytes);
        [name, self.count.as_bytes()]
            .into_iter()
            .chain(keys)
            .chain(std::iter::once(b"AMOUNT".as_slice()))
            .chain(amounts)
            .chain(definitions)
            .collect()
    }

    /// Whether the request names leases, which only a release may.
    pub(crate) fn has_leases(&self) -> bool {
        self.wanted.iter().any(|wanted| wanted.lease.is_some())
    }

    /// Returns the commands that release the units or leases.
    pub(crate) fn release(&self) -> Vec<Words<'_>> {
        self.wanted.iter().map(KeyRequest::release).collect()
    }
}

impl KeyRequest {
    fn release(&self) -> Words<'_> {
        if let Some(lease) = &self.lease {
            return vec![b"limit.release", &self.key, lease.as_bytes()];
        }
        vec![b"limit.refund", &self.key, b"AMOUNT", self.amount.as_bytes()]
    }

    fn of(item: Item) -> Result<KeyRequest, Refusal> {
        let key = item.key.into_bytes().map_err(Refusal::wrong)?;
        if item.lease.is_some() && item.amount.is_some() {
            return Err(Refusal::wrong("ERR a lease is given back as a whole, without an amount".to_owned()));
        }
        let definition = match item.limit {
            None => vec!["DEFINED".to_owned()],
            Some(written) => definition(written.get())?,
        };
        let lease = item.lease.map(|lease| lease.to_string());
        Ok(KeyRequest { key, amount: item.amount.unwrap_or(1).to_string(), definition, lease })
    }
}

/// Splits the text of exactly one definition into words.
fn definition(written: &str) -> Result<Vec<String>, Refusal> {
    let refused = || {
        Refusal::wrong(
            "ERR limit is a text such as \"GCRA 10 PER 1000 BURST 20\", or {\"algorithm\": \"GCRA\", \"units\": 10, \
             \"per_ms\": 1000, \"burst\": 20}, or of leases \"CONCURRENCY 2 TTL 60000\", or {\"algorithm\": \"CONCURRENCY\", \
             \"units\": 2, \"ttl_ms\": 60000}"
                .to_owned(),
        )
    };
    let words: Vec<String> = if written.starts_with('"') {
        let text: String = serde_json::from_str(written).map_err(|_| refused())?;
        text.split_ascii_whitespace().map(str::to_owned).collect()
    } else {
        let Definition { algorithm, units, per_ms, ttl_ms, burst } =
            serde_json::from_str(written).map_err(|_| refused())?;
        let (word, period_ms) = match (per_ms, ttl_ms) {
            (Some(per_ms), None) => ("PER", per_ms),
            (None, Some(ttl_ms)) => ("TTL", ttl_ms),
            _ => return Err(refused()),
        };
        let algorithm = algorithm.unwrap_or_else(|| "GCRA".to_owned());
        let burst = burst.into_iter().flat_map(|burst| ["BURST".to_owned(), burst.to_string()]);
        [algorithm, units.to_string(), word.to_owned(), period_ms.to_string()]
            .into_iter()
            .chain(burst)
            .collect()
    };
    let is = |at: usize, word: &str| words.get(at).is_some_and(|other| other.eq_ignore_ascii_case(word));
    match words.len() {
        4 if is(2, "PER") || is(2, "TTL") => Ok(words),
        6 if is(2, "PER") && is(4, "BURST") => Ok(words),
        _ => Err(refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(body: &str) -> Result<Wish, String> {
        Wish::parse(body.as_bytes()).map_err(|refusal| refusal.reason)
    }

    fn line(words: &Words<'_>) -> String {
        words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn bodies_become_commands() {
        for (body, command) in [
            (r#"{"key": "a"}"#, "limit.checkall 1 a AMOUNT 1 DEFINED"),
            (r#"{"key": "a", "amount": 0, "peek": true, "db": 3}"#, "limit.peekall 1 a AMOUNT 0 DEFINED"),
            (
                r#"{"key": 7, "amount": 5, "limit": "gcra 10 per 1000"}"#,
                "limit.checkall 1 7 AMOUNT 5 gcra 10 per 1000",
            ),
            (
                r#"{"limits": [{"key": "a"}, {"key": "b", "amount": 2, "limit": {"units": 10, "per_ms": 1000, "burst": 20}}]}"#,
                "limit.checkall 2 a b AMOUNT 1 2 DEFINED GCRA 10 PER 1000 BURST 20",
            ),
            (
                r#"{"limits": [{"key": "a", "limit": {"algorithm": "fixed", "units": 1, "per_ms": 2}}]}"#,
                "limit.checkall 1 a AMOUNT 1 fixed 1 PER 2",
            ),
            (
                r#"{"limits": [{"key": "a", "limit": "concurrency 2 ttl 500"}, {"key": "b", "limit": {"algorithm": "concurrency", "units": 1, "ttl_ms": 9}}]}"#,
                "limit.checkall 2 a b AMOUNT 1 1 concurrency 2 ttl 500 concurrency 1 TTL 9",
            ),
        ] {
            let wish = parse(body).expect(body);
            assert!(!wish.has_leases());
            assert_eq!(line(&wish.check()), command, "{body}");
        }
        let wish = parse(r#"{"limits": [{"key": "a", "limit": "LOG 1 PER 2"}, {"key": "b", "amount": 2}]}"#);
        let release = wish.expect("a wish").release().iter().map(line).collect::<Vec<_>>();
        assert_eq!(release, ["limit.refund a AMOUNT 1", "limit.refund b AMOUNT 2"]);
        let wish = parse(r#"{"limits": [{"key": "a"}, {"key": "b", "lease": 7}]}"#).expect("a wish");
        assert!(wish.has_leases());
        let release = wish.release().iter().map(line).collect::<Vec<_>>();
        assert_eq!(release, ["limit.refund a AMOUNT 1", "limit.release b 7"]);
    }

    #[test]
    fn what_a_body_gets_wrong_is_said() {
        for (body, reason) in [
            ("", "ERR the body is not what is expected"),
            ("{", "ERR the body is not what is expected"),
            ("[]", "ERR the body is not what is expected"),
            (r#"{"kye": "a"}"#, "ERR the body is not what is expected: unknown field `kye`"),
            (r#"{"key": "a", "amount": -1}"#, "ERR the body is not what is expected"),
            (r#"{"key": "a", "amount": 1.5}"#, "ERR the body is not what is expected"),
            (r#"{"key": "a", "amount": 18446744073709551616}"#, "ERR the body is not what is expected"),
            (r#"{"key": "a", "db": 16}"#, "ERR DB index is out of range"),
            (r#"{"key": null}"#, "ERR give either key"),
            (r#"{"key": true}"#, "ERR a word is text"),
            ("{}", "ERR give either key"),
            (r#"{"limits": []}"#, "ERR give either key"),
            (r#"{"limits": [{}]}"#, "ERR the body is not what is expected: missing field `key`"),
            (r#"{"key": "a", "limits": [{"key": "b"}]}"#, "ERR give either key"),
            (r#"{"amount": 1, "limits": [{"key": "b"}]}"#, "ERR give either key"),
            (r#"{"lease": 1, "limits": [{"key": "b"}]}"#, "ERR give either key"),
            (r#"{"key": "a", "lease": -1}"#, "ERR the body is not what is expected"),
            (r#"{"key": "a", "lease": 1, "amount": 1}"#, "ERR a lease is given back as a whole"),
            (r#"{"key": "a", "limit": {"units": 5, "per_ms": 1, "ttl_ms": 1}}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": 5}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": "GCRA 5"}"#, "ERR limit is a text"),
            // Other options cannot be smuggled in after it.
            (r#"{"key": "a", "limit": "GCRA 5 PER 10 AMOUNT 9"}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": "GCRA 5 PER 10 NX"}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": "DEFINED DEFINED DEFINED DEFINED"}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": {"units": 5}}"#, "ERR limit is a text"),
            (r#"{"key": "a", "limit": {"units": 5, "per_ms": 10, "brust": 3}}"#, "ERR limit is a text"),
        ] {
            let refused = parse(body).err().unwrap_or_default();
            assert!(refused.starts_with(reason), "{body}: {refused}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Arbitrary bytes, and a body with some bytes replaced.
        #[test]
        fn a_body_is_a_command_or_is_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            replaced in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        ) {
            let mut body = br#"{"limits": [{"key": "a", "amount": 7}, {"key": "b", "limit": "GCRA 5 PER 10"}]}"#.to_vec();
            replaced.iter().for_each(|(at, byte)| *at.get_mut(&mut body) = *byte);
            for body in [bytes, body] {
                match Wish::parse(&body) {
                    Ok(wish) => {
                        // `count` keys and amounts, and at least one word for each definition.
                        let (command, count) = (wish.check(), wish.wanted.len());
                        prop_assert_eq!(command[1], wish.count.as_bytes());
                        prop_assert_eq!(&wish.count, &count.to_string());
                        prop_assert_eq!(command[2 + count], b"AMOUNT");
                        prop_assert!(command.len() >= 3 + 3 * count);
                        prop_assert_eq!(wish.release().len(), count);
                    }
                    Err(refusal) => prop_assert!(refusal.reason.starts_with("ERR "), "{}", refusal.reason),
                }
            }
        }
    }
}

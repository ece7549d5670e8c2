//! The options of `MIGRATE`.

use std::collections::HashSet;
use std::time::Duration;
use tidemark_engine::CommandError;
use tidemark_engine::command::parse::{self, is};

/// The timeout that is meant by none.
const USUAL_TIMEOUT: Duration = Duration::from_secs(1);

/// What `MIGRATE` is to do.
pub(super) struct Options {
    pub(super) host: String,
    /// `None` if it is no port, to which no connection can be made.
    pub(super) port: Option<u16>,
    /// Distinct keys: of one that comes twice, the second move would find that the first has changed it.
    pub(super) keys: Vec<Box<[u8]>>,
    /// The database at the target, as it is sent.
    pub(super) db: i64,
    /// How long the target may take for each step.
    pub(super) timeout: Duration,
    /// Whether the keys stay.
    pub(super) copies: bool,
    /// Whether keys at the target are replaced.
    pub(super) replaces: bool,
    /// The arguments of `AUTH`.
    pub(super) login: Option<Vec<Box<[u8]>>>,
}

impl Options {
    pub(super) fn parse(args: &[&[u8]]) -> Result<Self, CommandError> {
        let [_, host, port, key, db, timeout, rest @ ..] = args else { return Err(CommandError::Syntax) };
        let (mut rest, mut keys): (&[&[u8]], &[&[u8]]) = (rest, &[key]);
        let (mut copies, mut replaces, mut login) = (false, false, None);
        let owned = |words: &[&[u8]]| words.iter().map(|word| Box::from(*word)).collect::<Vec<Box<[u8]>>>();
        while let [option, others @ ..] = rest {
            rest = match others {
                _ if is(option, "COPY") => {
                    copies = true;
                    others
                }
                _ if is(option, "REPLACE") => {
                    replaces = true;
                    others
                }
                [password, others @ ..] if is(option, "AUTH") => {
                    login = Some(owned(&[password]));
                    others
                }
                [user, password, others @ ..] if is(option, "AUTH2") => {
                    login = Some(owned(&[user, password]));
                    others
                }
                _ if is(option, "KEYS") => {
                    if !key.is_empty() {
                        return Err(CommandError::text(
                            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
                        ));
                    }
                    keys = others;
                    &[]
                }
                _ => return Err(CommandError::Syntax),
            };
        }
        let timeout = parse::integer(timeout)?;
        let db = parse::integer(db)?;
        let mut known = HashSet::new();
        let keys: Vec<&[u8]> = keys.iter().copied().filter(|key| known.insert(*key)).collect();
        Ok(Self {
            host: String::from_utf8_lossy(host).into_owned(),
            port: parse::integer(port).ok().and_then(|port| u16::try_from(port).ok()),
            keys: owned(&keys),
            db,
            timeout: u64::try_from(timeout)
                .ok()
                .filter(|ms| *ms > 0)
                .map_or(USUAL_TIMEOUT, Duration::from_millis),
            copies,
            replaces,
            login,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        Options::parse(&args).map_err(|error| error.to_string())
    }

    #[test]
    fn options_come_in_any_order_and_keys_last() {
        let options = parsed("migrate h 6379  2 50 auth2 u p replace copy KEYS a copy a").expect("options");
        assert_eq!(options.keys, [Box::from(&b"a"[..]), Box::from(&b"copy"[..])]);
        assert_eq!((options.host.as_str(), options.port, options.db), ("h", Some(6379), 2));
        assert_eq!(options.timeout, Duration::from_millis(50));
        assert!(options.copies && options.replaces);
        assert_eq!(options.login.map(|words| words.len()), Some(2));
        let one = parsed("migrate h x k 0 0").expect("options");
        assert_eq!((one.keys.len(), one.port, one.timeout), (1, None, USUAL_TIMEOUT));
        assert!(parsed("migrate h 1  0 0 keys").expect("options").keys.is_empty());
    }

    #[test]
    fn what_is_malformed_is_refused() {
        for (line, reason) in [
            ("migrate h 1 k 0 0 other", "ERR syntax error"),
            ("migrate h 1 k 0 0 auth", "ERR syntax error"),
            ("migrate h 1 k 0 0 auth2 u", "ERR syntax error"),
            ("migrate h 1 k 0 x", "ERR value is not an integer or out of range"),
            ("migrate h 1 k x 0", "ERR value is not an integer or out of range"),
            ("migrate h 1 k 0 0 keys a", "ERR When using MIGRATE KEYS option"),
        ] {
            let error = parsed(line).err().expect("it is refused");
            assert!(error.starts_with(reason), "{line}: {error}");
        }
    }
}

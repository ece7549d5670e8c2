//! Formats of the change stream.
//!
//! JSON. Bytes that are not UTF-8 become `{"base64": "…"}`:
//!
//! ```text
//! {"lsn":7,"time_us":1700000000000000,"kind":"command","commands":[{"db":0,"command":"set","args":["k","v"]}]}
//! ```
//!
//! Binary: an array of the Redis protocol, the same in RESP2 and RESP3:
//!
//! ```text
//! [lsn, time_us, kind, [[db, name, argument ...] ...]]
//! ```
//!
//! The kind is `command`, `transaction` or `expiry`. Expired keys appear as the `del` that removes
//! them. Points are `ts.add` and `ts.madd` commands; a record with several of them is a `transaction`.

use crate::pools;
use crate::selection::Selection;
use crate::text::Bytes;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::io;
use std::str::FromStr;
use tidemark_engine::change::{Change, Changes};
use tidemark_engine::command::parse;
use tidemark_engine::record::kind;
use tidemark_engine::{ApplyError, EqualCommand, Protocol, Reply};
use tidemark_log::{Lsn, Record};

/// Format of the change stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people, and for programs in any language.
    #[default]
    Json,
    /// For programs that decode the Redis protocol anyway.
    Binary,
}

/// The text is not the name of a format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the format must be json or binary")]
pub struct UnknownFormat;

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Format, UnknownFormat> {
        if parse::is(text.as_bytes(), "json") {
            Ok(Format::Json)
        } else if parse::is(text.as_bytes(), "binary") {
            Ok(Format::Binary)
        } else {
            Err(UnknownFormat)
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Json => "json",
            Format::Binary => "binary",
        })
    }
}

/// Why a record cannot be encoded.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// It cannot be decoded.
    #[error("record {0}: {1}")]
    Unreadable(Lsn, ApplyError),
    /// It would be longer than the limit.
    #[error("record {lsn} takes more than {limit} bytes in the change stream")]
    TooLong {
        /// The record.
        lsn: Lsn,
        /// The limit, in bytes.
        limit: usize,
    },
}

impl Format {
    /// Encodes a record; `None` if it changes no data, or none that is selected. Uses memory of at
    /// most a small multiple of `limit`.
    pub fn encode(
        self,
        record: &Record<'_>,
        selection: &Selection,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, EncodeError> {
        let Some(changes) = Changes::of(record) else { return Ok(None) };
        let (mut commands, mut count) = (Vec::new(), 0);
        for change in changes {
            let change = change.map_err(|error| EncodeError::Unreadable(record.lsn, error))?;
            if change.is_internal() {
                continue;
            }
            count += 1;
            if let Some(change) = selection.select(change) {
                CommandForm::push(change, &mut commands)
                    .map_err(|error| EncodeError::Unreadable(record.lsn, error))?;
            }
        }
        if commands.is_empty() {
            return Ok(None);
        }
        // A command that was executed once is in a transaction with its number.
        let is_alone = record.kind == kind::TRANSACTION && count == 1;
        let kind = if is_alone { "command" } else { kind_name(record.kind, commands.len()) };
        let form = RecordForm { lsn: record.lsn.0, time_us: record.time_us, kind, commands };
        let too_long = || EncodeError::TooLong { lsn: record.lsn, limit };
        if form.argument_bytes() > limit {
            return Err(too_long());
        }
        match self {
            Format::Json => {
                let mut json = LimitedWriter { bytes: Vec::new(), limit };
                // Every field has a JSON form, so the only possible error is the limit.
                serde_json::to_writer(&mut json, &form).map_err(|_| too_long())?;
                Ok(Some(json.bytes))
            }
            Format::Binary => Ok(Some(form.binary())),
        }
    }
}

/// Writer into memory that fails beyond a limit, in bytes.
struct LimitedWriter {
    bytes: Vec<u8>,
    limit: usize,
}

impl io::Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the name of a kind of record in the change stream.
fn kind_name(record_kind: u8, commands: usize) -> &'static str {
    match record_kind {
        kind::POINTS if commands > 1 => "transaction",
        kind::TRANSACTION => "transaction",
        kind::EXPIRY => "expiry",
        _ => "command",
    }
}

/// Change-stream form of a record.
struct RecordForm<'a> {
    lsn: u64,
    time_us: u64,
    kind: &'static str,
    commands: Vec<CommandForm<'a>>,
}

/// Change-stream form of a command.
struct CommandForm<'a> {
    db: u8,
    name: &'static str,
    args: Vec<Cow<'a, [u8]>>,
}

impl<'a> CommandForm<'a> {
    /// Appends the change-stream form of a change to `forms`: nothing if it concerns no key, and as
    /// many commands as a pool's step stands for.
    fn push(change: Change<'a>, forms: &mut Vec<CommandForm<'a>>) -> Result<(), ApplyError> {
        let (db, name, args) =
            match change {
                Change::Command { command, db, mut args } => {
                    args.remove(0);
                    if let Some(pool_commands) = pools::commands_of(command.name, &args) {
                        forms.extend(pool_commands?.into_iter().map(|pools::PoolCommand { name, args }| {
                            Self { db, name, args: args.into_iter().map(Cow::Owned).collect() }
                        }));
                        return Ok(());
                    }
                    (db, command.called(), args)
                }
                Change::Expired { db, keys } => (db, "del", keys),
                Change::Points(points) => {
                    let owned = |args: Vec<Vec<u8>>| args.into_iter().map(Cow::Owned).collect();
                    let form = |(command, args): EqualCommand| Self {
                        db: points.db(),
                        name: command.name,
                        args: owned(args),
                    };
                    forms.extend(points.commands().into_iter().map(form));
                    return Ok(());
                }
                Change::Acknowledged { .. } => return Ok(()),
            };
        forms.push(Self { db, name, args: args.into_iter().map(Cow::Borrowed).collect() });
        Ok(())
    }
}

impl RecordForm<'_> {
    /// Returns the length of all arguments, which no format makes shorter.
    fn argument_bytes(&self) -> usize {
        self.commands.iter().flat_map(|command| &command.args).map(|arg| arg.len()).sum()
    }

    /// Encodes the record as an array of the Redis protocol.
    fn binary(&self) -> Vec<u8> {
        let mut reply = Reply::new(Protocol::Resp2);
        reply.array(4);
        reply.integer(i64::try_from(self.lsn).unwrap_or(i64::MAX));
        reply.integer(i64::try_from(self.time_us).unwrap_or(i64::MAX));
        reply.bulk(self.kind.as_bytes());
        reply.array(self.commands.len());
        for command in &self.commands {
            reply.array(command.args.len() + 2);
            reply.integer(i64::from(command.db));
            reply.bulk(command.name.as_bytes());
            command.args.iter().for_each(|arg| reply.bulk(arg));
        }
        std::mem::take(reply.buffer_mut())
    }
}

impl Serialize for RecordForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("change", 4)?;
        object.serialize_field("lsn", &self.lsn)?;
        object.serialize_field("time_us", &self.time_us)?;
        object.serialize_field("kind", self.kind)?;
        object.serialize_field("commands", &self.commands)?;
        object.end()
    }
}

impl Serialize for CommandForm<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let args: Vec<Bytes<'_>> = self.args.iter().map(|arg| Bytes(arg)).collect();
        let mut object = serializer.serialize_struct("command", 3)?;
        object.serialize_field("db", &self.db)?;
        object.serialize_field("command", self.name)?;
        object.serialize_field("args", &args)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use proptest::prelude::*;
    use tidemark_engine::command::find;
    use tidemark_engine::encoded;
    use tidemark_engine::record::{encode_command, put_bytes};
    use tidemark_log::Lsn;

    fn command(db: u8, words: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, db, find(words[0]).expect("a command").id, &words[1..]);
        bytes
    }

    fn encode(format: Format, kind: u8, payload: &[u8]) -> Option<Vec<u8>> {
        let record = Record { lsn: Lsn(7), time_us: 9, kind, payload };
        format.encode(&record, &Selection::default(), usize::MAX).expect("a record")
    }

    fn text(encoded: Option<Vec<u8>>) -> String {
        String::from_utf8(encoded.expect("an encoded record")).expect("text")
    }

    #[test]
    fn both_formats_encode_a_command() {
        let payload = command(2, &[b"SET", b"k", b"\xff"]);
        assert_eq!(
            text(encode(Format::Json, kind::COMMAND, &payload)),
            "{\"lsn\":7,\"time_us\":9,\"kind\":\"command\",\
             \"commands\":[{\"db\":2,\"command\":\"set\",\"args\":[\"k\",{\"base64\":\"/w==\"}]}]}"
        );
        assert_eq!(
            encode(Format::Binary, kind::COMMAND, &payload).as_deref(),
            Some(
                b"*4\r\n:7\r\n:9\r\n$7\r\ncommand\r\n*1\r\n*4\r\n:2\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\n\xff\r\n"
                    .as_slice()
            )
        );
    }

    #[test]
    fn a_transaction_is_one_change_and_expired_keys_become_a_del() {
        let mut transaction = Vec::new();
        put_bytes(&mut transaction, &command(0, &[b"INCR", b"n"]));
        put_bytes(&mut transaction, &command(1, &[b"DEL", b"a", b"b"]));
        assert_eq!(
            text(encode(Format::Json, kind::TRANSACTION, &transaction)),
            "{\"lsn\":7,\"time_us\":9,\"kind\":\"transaction\",\"commands\":[\
             {\"db\":0,\"command\":\"incr\",\"args\":[\"n\"]},\
             {\"db\":1,\"command\":\"del\",\"args\":[\"a\",\"b\"]}]}"
        );
        assert_eq!(
            text(encode(Format::Json, kind::EXPIRY, b"\x03\x01k")),
            "{\"lsn\":7,\"time_us\":9,\"kind\":\"expiry\",\
             \"commands\":[{\"db\":3,\"command\":\"del\",\"args\":[\"k\"]}]}"
        );
    }

    #[test]
    fn what_was_executed_once_is_an_ordinary_change() {
        let mut note = Vec::new();
        encode_command(&mut note, 16, 650, &[b"session", b"1", b"12345678", b"\x02:1\r\n"]);
        let mut transaction = Vec::new();
        put_bytes(&mut transaction, &command(0, &[b"INCR", b"n"]));
        put_bytes(&mut transaction, &note);
        assert_eq!(
            encode(Format::Json, kind::TRANSACTION, &transaction),
            encode(Format::Json, kind::COMMAND, &command(0, &[b"INCR", b"n"]))
        );
        assert_eq!(encode(Format::Json, kind::COMMAND, &note), None, "nothing has changed");
        assert_eq!(encode(Format::Json, kind::EXPIRY, b"\x10\x07session"), None, "a session has ended");
    }

    #[test]
    fn points_are_the_commands_that_add_them() {
        // Of a key `k`: 2.5 at 0, and 3 and 4 at 10 and 20; then of `kk`, by the policy `sum`, 4 at 20.
        let payload = b"\x01\x14\x00\x00\x01k\x00\x32\x83\x02\x14\x14\x06\x02\x30\x01\x00\x01k\x05\x00";
        assert_eq!(
            text(encode(Format::Json, kind::POINTS, payload)),
            "{\"lsn\":7,\"time_us\":9,\"kind\":\"transaction\",\"commands\":[\
             {\"db\":1,\"command\":\"ts.add\",\"args\":[\"k\",\"0\",\"2.5\"]},\
             {\"db\":1,\"command\":\"ts.madd\",\"args\":[\"k\",\"10\",\"3\",\"k\",\"20\",\"4\"]},\
             {\"db\":1,\"command\":\"ts.add\",\"args\":[\"kk\",\"20\",\"4\",\"ON_DUPLICATE\",\"sum\"]}]}"
        );
        assert!(text(encode(Format::Json, kind::POINTS, &payload[..8])).contains("\"command\",\"commands\""));
    }

    #[test]
    fn a_record_that_changes_no_data_is_skipped() {
        assert_eq!(encode(Format::Json, kind::WATCH, b""), None);
        assert_eq!(encode(Format::Json, 200, b""), None);
        assert_eq!(encode(Format::Json, kind::TRANSACTION, b""), None);
    }

    #[test]
    fn a_selection_filters_the_commands_of_a_transaction() {
        let mut selection = Selection::default();
        selection.add_database(b"1").expect("a database");
        let mut transaction = Vec::new();
        put_bytes(&mut transaction, &command(0, &[b"INCR", b"n"]));
        put_bytes(&mut transaction, &command(1, &[b"INCR", b"m"]));
        let record = Record { lsn: Lsn(7), time_us: 9, kind: kind::TRANSACTION, payload: &transaction };
        let encoded = text(Format::Json.encode(&record, &selection, usize::MAX).expect("a record"));
        assert!(encoded.contains("\"m\"") && !encoded.contains("\"n\""), "{encoded}");
        selection = Selection::default();
        selection.add_database(b"2").expect("a database");
        assert_eq!(Format::Json.encode(&record, &selection, usize::MAX).expect("a record"), None);
    }

    #[test]
    fn a_record_beyond_the_limit_is_refused() {
        let mut payload = Vec::new();
        encode_command(&mut payload, 0, find(b"SET").expect("a command").id, &[b"k", &[1; 1000]]);
        let record = Record { lsn: Lsn(7), time_us: 1, kind: kind::COMMAND, payload: &payload };
        for (format, least) in [(Format::Json, 6_000), (Format::Binary, 1_000)] {
            let encode = |limit| format.encode(&record, &Selection::default(), limit);
            assert!(matches!(encode(least), Err(EncodeError::TooLong { lsn: Lsn(7), .. })), "{format}");
            assert!(encode(least + 200).is_ok(), "{format}");
        }
    }

    #[test]
    fn formats_have_names() {
        for format in [Format::Json, Format::Binary] {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert_eq!("xml".parse::<Format>(), Err(UnknownFormat));
    }

    /// Returns the arguments of the only command in a binary encoding.
    fn read_binary(encoded: &[u8]) -> Vec<Vec<u8>> {
        let elements = |at| encoded::elements(encoded, at).expect("an array");
        let record = elements(0);
        let command = elements(elements(record[3].0)[0].0);
        command[2..]
            .iter()
            .map(|&(from, to)| {
                let head = encoded[from..to].iter().position(|byte| *byte == b'\n').expect("a head");
                encoded[from + head + 1..to - 2].to_vec()
            })
            .collect()
    }

    /// Like `read_binary`, for JSON.
    fn read_json(encoded: &[u8]) -> Vec<Vec<u8>> {
        let encoded: serde_json::Value = serde_json::from_slice(encoded).expect("JSON");
        let args = encoded["commands"][0]["args"].as_array().expect("arguments").iter();
        args.map(|arg| match arg.as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => base64::engine::general_purpose::STANDARD
                .decode(arg["base64"].as_str().expect("bytes"))
                .expect("base64"),
        })
        .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_arguments_read_back(
            args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..10),
        ) {
            let mut words: Vec<&[u8]> = vec![b"DEL"];
            words.extend(args.iter().map(Vec::as_slice));
            let payload = command(0, &words);
            let encoded = |format| encode(format, kind::COMMAND, &payload).expect("a change");
            prop_assert_eq!(read_binary(&encoded(Format::Binary)), args.clone());
            prop_assert_eq!(read_json(&encoded(Format::Json)), args);
        }
    }
}

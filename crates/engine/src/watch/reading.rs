//! Properties of a read from the command table, and its answers.

use crate::command::{self, Command, KeySpec, Run, parse};
use crate::context::{Context, Keys};
use crate::error::CommandError;
use crate::keyspace::{DATABASES, Keyspace};
use crate::persist::apply_error::ApplyError;
use crate::persist::record::{self, Cursor, LoggedCommand};
use crate::value::{LabelFilter, TimeSeries, TypedValue, Unit};
use crate::watch::answer::bring_into_order;
use crate::watch::filter::Filter;
use crate::watch::following::{Beyond, Changes, Following, NotedPoints, Outcome};
use crate::watch::overlong::{MAX_ANSWER_BYTES, replace_overlong};
use crate::watch::part::Part;
use crate::watch::reach::Reach;
use crate::watch::read::{Borrowed, Read, Words};
use crate::watch::state::{Answered, FOLLOWED};
use crate::watch::watchable::{Watchable, watchable};
use crate::wire::reply::{Protocol, Reply};
use crate::wire::shared_bytes::SharedBytes;
use smallvec::SmallVec;
use tidemark_series::{UnreadableBlock, guarded};

/// Makes an iteration return everything in one call.
const WHOLE: [&[u8]; 2] = [b"count", b"9223372036854775807"];

impl Read {
    /// Creates the read of `args`, the name first, in database `db`, answered in `protocol` through
    /// `filter`.
    pub fn new(db: u8, protocol: Protocol, args: &[&[u8]], filter: Filter) -> Result<Self, CommandError> {
        let command = command::resolve(args)?;
        // A record stores the row's id and the arguments after the name; a subcommand could not be
        // decoded from that.
        let is_command = args.first().is_some_and(|name| parse::is(name, command.name));
        let Some(how) = watchable(command).filter(|_| is_command) else {
            return Err(CommandError::Text(
                format!(
                    "ERR '{}' cannot be watched: only reads can whose answer depends on nothing but the keys",
                    command.full_name()
                )
                .into(),
            ));
        };
        let mut args: Vec<Box<[u8]>> = args.iter().map(|arg| Box::from(*arg)).collect();
        args[0] = command.name.as_bytes().into();
        if let Watchable::Iterated(_) = how {
            make_whole(command, &mut args)?;
        }
        if command.name == "sort_ro" && is_unsorted(&args) {
            return Err(CommandError::text(
                "ERR SORT_RO with BY and no asterisk has no order of its own and cannot be watched",
            ));
        }
        let borrowed: Borrowed<'_> = args.iter().map(|arg| &**arg).collect();
        if command.name == "xread" {
            command::check_repeatable(&borrowed)?;
        }
        let sole_key = match command.keys.positions(&borrowed)[..] {
            [at] if !command.keys.concerns_all(&borrowed) => u8::try_from(at).unwrap_or(0),
            _ => 0,
        };
        let pattern = pattern_position(command, &borrowed).unwrap_or(0);
        let words = Words::pack(borrowed[1..].iter().copied(), filter.words());
        Ok(Self { db, protocol, command: command.id, sole_key, pattern, words })
    }

    /// Returns the arguments, the command's name in lower case first.
    pub fn args(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.borrowed().into_iter()
    }

    /// Returns whether emissions carry what has changed of the answer, instead of the answer. Those of a
    /// read with operators carry the answer, because operators leave some out.
    pub fn emits_changes(&self) -> bool {
        self.changing().is_some()
    }

    /// Returns how the read is watched, if its emissions carry what has changed.
    pub(super) fn changing(&self) -> Option<Watchable> {
        let how = watchable(self.row()).filter(|how| how.emits_changes())?;
        (self.operators().len() == 0).then_some(how)
    }

    /// Returns whether the answer depends on the time as of which it is made.
    pub(super) fn depends_on_time(&self) -> bool {
        command::depends_on_time(&self.borrowed())
    }

    /// Returns the time as of which the read is answered at `now_us`, and the length of its steps, in
    /// microseconds; `None` if it does not depend on it. The caller has locked all shards within its reach.
    pub(super) fn as_of(&self, keys: &mut Keys<'_>, now_us: u64) -> Option<(u64, u64)> {
        if !self.depends_on_time() {
            return None;
        }
        let unit = self.among(keys, |keys, _| {
            let seen = self.sole_key().and_then(|key| keys.see(key).ok().flatten());
            seen.map_or_else(Unit::default, |seen| seen.unit())
        });
        let step_us = command::step_us(&self.borrowed(), unit);
        Some((now_us - now_us % step_us, step_us))
    }

    pub(crate) fn part(&self) -> Part {
        (self.row().part)(&self.borrowed())
    }

    /// Returns the labels of the series that it reads, if it reads nothing else.
    pub(super) fn selection(&self) -> Option<LabelFilter> {
        self.row().selection.and_then(|selection| selection(&self.borrowed()))
    }

    /// Returns the first key that it names, if any.
    pub fn first_key(&self) -> Option<&[u8]> {
        if let Some(key) = self.sole_key() {
            return Some(key);
        }
        let args = self.borrowed();
        let at = *self.row().keys.positions(&args).first()?;
        Some(args[at])
    }

    /// Returns the keys that it names, without duplicates.
    pub(super) fn keys(&self) -> Vec<&[u8]> {
        if let Some(key) = self.sole_key() {
            return vec![key];
        }
        let args = self.borrowed();
        let mut keys: Vec<&[u8]> = self.row().keys.keys(&args).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    pub(super) fn reach(&self, keyspace: &Keyspace) -> Reach {
        if let Some(key) = self.sole_key() {
            return Reach::One(keyspace.shard_of(key));
        }
        let row = self.row();
        if matches!(row.keys, KeySpec::All | KeySpec::Each) || row.keys.concerns_all(&self.borrowed()) {
            return Reach::All;
        }
        let mut shards: Vec<usize> = self.keys().iter().map(|key| keyspace.shard_of(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        match shards[..] {
            [] => Reach::All,
            [one] => Reach::One(one),
            _ => Reach::Several(shards.into()),
        }
    }

    /// Executes the read on the logged state: an expired key exists until a record removes it. If it
    /// depends on a time, this is `as_of_us`. The caller has locked all shards within its reach.
    ///
    /// # Errors
    /// A block of a series cannot be read. That is a state of this machine's files and not of the log, so
    /// it is no answer.
    pub(super) fn answer(
        &self,
        keys: &mut Keys<'_>,
        as_of_us: Option<u64>,
        reply: &mut Reply,
    ) -> Result<(), UnreadableBlock> {
        let row = self.row();
        let (Run::Keys(handler), Some(how)) = (row.run, watchable(row)) else {
            unreachable!("'{}' is watched, which is no read that can be", row.full_name());
        };
        assert!(reply.is_empty(), "a read is answered behind {} bytes", reply.len());
        let (db, now_us) = (keys.db(), keys.now_us());
        keys.select(self.db);
        keys.set_now(as_of_us.unwrap_or(now_us));
        reply.set_protocol(self.protocol);
        reply.set_limit(MAX_ANSWER_BYTES);
        let mut args = self.borrowed();
        if let Watchable::Iterated(_) = how {
            args.extend(WHOLE);
        }
        let handled =
            guarded(|| keys.as_logged(|keys| handler(&mut Context { keys, reply: &mut *reply }, &args)));
        keys.set_now(now_us);
        let handled = match handled {
            Ok(handled) => handled,
            Err(block) => {
                keys.select(db);
                return Err(block);
            }
        };
        if let Err(error) = handled {
            reply.truncate(0);
            reply.error(&row.explain(&args, error));
        }
        keys.select(db);
        if !replace_overlong(reply) {
            bring_into_order(reply.buffer_mut(), how);
        }
        Ok(())
    }

    /// Runs `look` in the read's database, on the logged state. The caller has locked all shards within
    /// its reach.
    fn among<R>(&self, keys: &mut Keys<'_>, look: impl FnOnce(&Keys<'_>, &[&[u8]]) -> R) -> R {
        let db = keys.db();
        keys.select(self.db);
        let result = keys.as_logged(|keys| look(keys, &self.borrowed()));
        keys.select(db);
        result
    }

    /// Begins to follow the rows of the read as of a time; `None` if they cannot be. O(rows). The caller
    /// has locked all shards within its reach.
    ///
    /// # Errors
    /// A block of a series cannot be read.
    pub(super) fn begin_following(
        &self,
        keys: &mut Keys<'_>,
        as_of_us: Option<u64>,
    ) -> Result<Option<Box<dyn Following>>, UnreadableBlock> {
        if self.changing().is_none() {
            return Ok(None);
        }
        let begin = |keys: &Keys<'_>, args: &[&[u8]]| {
            let found = self.selection().map(|filter| command::find_series(&filter, keys));
            let selected: Vec<Box<[u8]>> = found.into_iter().flatten().map(|(key, _)| key.into()).collect();
            let series = |key: &[u8]| series_of(keys, key);
            command::begin_following(&series, args, as_of_us.unwrap_or(0), &selected, self.protocol)
        };
        guarded(|| self.among(keys, begin))
    }

    /// Follows changes of the series that it reads. The caller has locked all shards within its reach.
    ///
    /// # Errors
    /// A block of a series cannot be read: what is followed is wrong then.
    pub(super) fn follow(
        &self,
        keys: &mut Keys<'_>,
        followed: &mut dyn Following,
        points: &NotedPoints,
        beyond: &[Beyond],
    ) -> Result<Outcome, UnreadableBlock> {
        let changes = Changes { db: self.db, points, beyond };
        guarded(|| {
            self.among(keys, |keys, args| {
                followed.follow(&|key: &[u8]| series_of(keys, key), args, &changes, self.protocol)
            })
        })
    }

    /// Whether a point leaves or comes if the followed range moves to another time. The caller has locked
    /// all shards within its reach.
    pub(super) fn passes(&self, keys: &mut Keys<'_>, followed: &dyn Following, as_of_us: u64) -> bool {
        let passes = guarded(|| {
            self.among(keys, |keys, args| followed.passes(&|key: &[u8]| series_of(keys, key), args, as_of_us))
        });
        // What cannot be read is not known to stay.
        passes.unwrap_or(true)
    }

    /// Moves the followed range to another time. The caller has locked all shards within its reach.
    ///
    /// # Errors
    /// A block of a series cannot be read: what is followed is wrong then.
    pub(super) fn slide(
        &self,
        keys: &mut Keys<'_>,
        followed: &mut dyn Following,
        as_of_us: u64,
    ) -> Result<Outcome, UnreadableBlock> {
        guarded(|| {
            self.among(keys, |keys, args| {
                followed.slide(&|key: &[u8]| series_of(keys, key), args, as_of_us, self.protocol)
            })
        })
    }

    /// Decodes the time as of which it is answered, which is encoded if it depends on one.
    pub(super) fn decode_as_of(&self, bytes: &mut Cursor<'_>) -> Result<Option<u64>, ApplyError> {
        if !self.depends_on_time() {
            return Ok(None);
        }
        let as_of_us = bytes.varint();
        as_of_us
            .map(Some)
            .ok_or_else(|| bytes.malformed("the time as of which the read is answered is missing"))
    }

    /// Decodes what a snapshot keeps of its answer as of a time; `None` if it is not valid.
    pub(super) fn decode_answered(&self, as_of_us: Option<u64>, kept: &[u8]) -> Option<Answered> {
        let [FOLLOWED, followed @ ..] = kept else {
            return Some(Answered { answer: SharedBytes::from(kept), followed: None, as_of_us });
        };
        let followed = command::decode_followed(&self.borrowed(), &mut Cursor::new(followed))?;
        Some(Answered { answer: SharedBytes::default(), followed: Some(followed), as_of_us })
    }

    /// Appends the encoding used in the log and in snapshots.
    pub(super) fn encode(&self, into: &mut Vec<u8>) {
        into.push(match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        });
        self.filter().encode(into);
        let args: SmallVec<[&[u8]; 8]> = self.args().skip(1).collect();
        record::encode_command(into, self.db, self.command, &args);
    }

    /// Decodes that form; `None` if the bytes are invalid.
    pub(super) fn decode(bytes: &mut Cursor<'_>) -> Option<Self> {
        let protocol = match bytes.u8()? {
            2 => Protocol::Resp2,
            3 => Protocol::Resp3,
            _ => return None,
        };
        let filter = Filter::decode(bytes)?;
        let LoggedCommand { db, id, mut args } = LoggedCommand::decode(bytes)?;
        let row = command::by_id(id)?;
        args.insert(0, row.name.as_bytes());
        let read = Self::new(db, protocol, &args, filter).ok()?;
        ((db as usize) < DATABASES && read.command == id).then_some(read)
    }

    /// Returns the command's name, in lower case.
    pub(super) fn name(&self) -> &'static str {
        self.row().name
    }

    pub(super) fn row(&self) -> &'static Command {
        let id = self.command;
        command::by_id(id).unwrap_or_else(|| panic!("a read of command {id}, which is not in the table"))
    }

    /// Returns the arguments, the command's name first.
    pub(super) fn borrowed(&self) -> Borrowed<'_> {
        let (count, words) = self.words();
        std::iter::once(self.name().as_bytes()).chain(words.take(count)).collect()
    }

    /// Returns the value of an iteration's option; options are pairs after the cursor.
    pub(super) fn option(&self, name: &str) -> Option<&[u8]> {
        let args = self.borrowed();
        let options = args.get(cursor_position(self.name()) + 1..)?;
        let pair = options.chunks_exact(2).find(|pair| parse::is(pair[0], name))?;
        Some(pair[1])
    }
}

/// Returns the series that a key has; `None` if it has none, or a lens.
fn series_of<'k>(keys: &'k Keys<'_>, key: &[u8]) -> Option<&'k TimeSeries> {
    keys.peek(key)?.object().and_then(TimeSeries::from_object)
}

/// Returns the position of the pattern that key names must match, in a read's canonical form.
fn pattern_position(command: &Command, args: &[&[u8]]) -> Option<u8> {
    match (command.name, args) {
        ("keys", [_, _, ..]) => Some(1),
        ("scan", [_, _, option, _, ..]) if parse::is(option, "MATCH") => Some(3),
        _ => None,
    }
}

fn cursor_position(name: &str) -> usize {
    if name == "scan" { 1 } else { 2 }
}

/// Brings an iteration into canonical form: cursor 0, each option once with its last value, and no
/// count, because the whole is read.
fn make_whole(command: &Command, args: &mut Vec<Box<[u8]>>) -> Result<(), CommandError> {
    let cursor = cursor_position(command.name);
    if args.get(cursor).is_none_or(|arg| &**arg != b"0") {
        return Err(CommandError::Text(
            format!("ERR the whole of '{}' is watched, so its cursor must be 0", command.name).into(),
        ));
    }
    let options = args.split_off(cursor + 1);
    let (mut pattern, mut kind) = (None, None);
    for pair in options.chunks(2) {
        let [name, value] = pair else { return Err(CommandError::Syntax) };
        if parse::is(name, "MATCH") {
            pattern = Some(value);
        } else if parse::is(name, "TYPE") && command.name == "scan" {
            kind = Some(value);
        } else if parse::is(name, "COUNT") {
            parse::integer_in(value, 1..=i64::MAX)?;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    for (name, value) in [(b"match".as_slice(), pattern), (b"type", kind)] {
        if let Some(value) = value {
            args.extend([Box::from(name), value.clone()]);
        }
    }
    Ok(())
}

/// Returns whether a `SORT` keeps its input's order, which for a set is that of a hash table.
fn is_unsorted(args: &[Box<[u8]>]) -> bool {
    args.windows(2).skip(2).any(|pair| parse::is(&pair[0], "BY") && !pair[1].contains(&b'*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Read, String> {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let at = words.iter().position(|word| *word == b"|").unwrap_or(words.len());
        let filter = Filter::parse(&words[at..]).map_err(|error| error.to_string())?;
        Read::new(3, Protocol::Resp3, &words[..at], filter).map_err(|error| error.to_string())
    }

    fn line(read: &Read) -> String {
        read.args().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_are_equal_whatever_the_case_of_their_name() {
        assert_eq!(read("GET a"), read("get a"));
        assert_ne!(read("GET a"), read("GET A"));
        assert_eq!(read("SCAN 0 COUNT 7 MATCH a*"), read("scan 0 MATCH a*"));
        assert_eq!(line(&read("sscan k 0 COUNT 5").expect("watchable")), "sscan k 0");
        assert_eq!(
            line(&read("SCAN 0 TYPE x MATCH a MATCH count COUNT 6 count 7").expect("watchable")),
            "scan 0 match count type x"
        );
    }

    #[test]
    fn what_cannot_be_watched_says_why() {
        for (line, error) in [
            ("SET a b", "ERR 'set' cannot be watched"),
            ("RANDOMKEY", "ERR 'randomkey' cannot be watched"),
            ("OBJECT HELP", "ERR 'object|help' cannot be watched"),
            ("OBJECT ENCODING k", "ERR 'object|encoding' cannot be watched"),
            ("SCAN 7", "ERR the whole of 'scan' is watched"),
            ("HSCAN k 1", "ERR the whole of 'hscan' is watched"),
            ("SSCAN k 0 TYPE set", "ERR syntax error"),
            ("SSCAN k 0 MATCH", "ERR syntax error"),
            ("SCAN 0 COUNT x", "ERR value is"),
            ("SORT_RO k BY nosort", "ERR SORT_RO with BY"),
            ("GET", "ERR wrong number of arguments"),
        ] {
            assert!(read(line).expect_err(line).starts_with(error), "{line}: {:?}", read(line));
        }
    }

    #[test]
    fn a_read_knows_the_key_that_is_all_it_reads() {
        for (line, sole, keys) in [
            ("GET a", Some("a"), vec!["a"]),
            ("MGET a", Some("a"), vec!["a"]),
            ("MGET b a b", None, vec!["a", "b"]),
            ("ZRANGE z 0 9 WITHSCORES", Some("z"), vec!["z"]),
            ("SINTERCARD 1 s", Some("s"), vec!["s"]),
            ("SORT_RO k BY w*", None, vec!["k"]),
            ("GET a | HIGH | RANGE 1 5", Some("a"), vec!["a"]),
            ("DBSIZE", None, vec![]),
        ] {
            let read = read(line).expect("watchable");
            assert_eq!(read.sole_key(), sole.map(str::as_bytes), "{line}");
            assert_eq!(read.keys(), keys.iter().map(|key| key.as_bytes()).collect::<Vec<_>>(), "{line}");
            assert_eq!(read.first_key().is_some(), !keys.is_empty(), "{line}");
        }
    }

    #[test]
    fn a_read_comes_back_from_its_encoded_form() {
        for line in [
            "GET a",
            "GET a | HIGH | RANGE 1 5",
            "MGET a b c",
            "ZRANGE z 0 9 WITHSCORES",
            "DBSIZE",
            "SCAN 0 MATCH a* TYPE list",
        ] {
            let (read, mut bytes) = (read(line).expect("watchable"), Vec::new());
            read.encode(&mut bytes);
            let mut cursor = Cursor::new(&bytes);
            assert_eq!(Read::decode(&mut cursor), Some(read), "{line}");
            assert!(cursor.is_empty());
            for end in 0..bytes.len() {
                assert_eq!(Read::decode(&mut Cursor::new(&bytes[..end])), None, "{line} cut at {end}");
            }
        }
    }

    #[test]
    fn scans_of_a_prefix_are_not_concerned_by_other_keys() {
        for line in ["KEYS a*", "SCAN 0 MATCH a*"] {
            let read = read(line).expect("watchable");
            assert!(read.may_concern(b"ab") && !read.may_concern(b"b"), "{line}");
        }
        assert!(read("DBSIZE").expect("watchable").may_concern(b"b"));
    }
}

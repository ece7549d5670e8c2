//! Random commands, generated from the command table: every row that runs on keys, with arguments
//! by its own syntax line.
//!
//! Keys, members and values come from small pools, so that commands meet each other's data. Some
//! arguments are of the wrong kind, extreme, missing or too many, because refusals are answers too.
#![allow(dead_code, unreachable_pub, reason = "each test uses what it needs")]

use std::collections::VecDeque;
use tidemark_engine::command::syntax::{self, Argument, Kind};
use tidemark_engine::command::{self, Command, Group, KeySpec, Run, flags};

/// A command line: the name (for a subcommand both names), then the arguments.
pub type Line = Vec<Vec<u8>>;

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Random(fastrand::Rng);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// A number below `bound`, which must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.u64(..bound)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How times to live are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// From milliseconds to minutes, so that keys expire while the sequence runs. For a clock that
    /// the test controls.
    Near,
    /// Hours ahead and never twice the same, or long past, so that nothing depends on when exactly
    /// a command arrives. For two servers with clocks of their own.
    FarOrPast,
}

fn remember(last: &mut VecDeque<u64>, number: u64) {
    last.push_back(number);
    if last.len() > 8 {
        last.pop_front();
    }
}

/// A row with its parsed syntax.
struct Shape {
    row: &'static Command,
    name: Line,
    arguments: Vec<Argument>,
}

/// A generator of commands.
pub struct Generator {
    pub random: Random,
    times: Times,
    /// The time around which absolute deadlines lie, in milliseconds since 1970.
    pub now_ms: u64,
    shapes: Vec<Shape>,
    group: Group,
    /// The number of keys that the last `numkeys` argument announces, or of fields that `numfields` does.
    announced: u64,
    announces_fields: bool,
    /// Whether the bounds of ranges are members.
    lexical: bool,
    /// Source and destination of the last rule of series.
    rule: Option<[Vec<u8>; 2]>,
    /// Milliseconds in the ID of the last entry of a stream.
    entry_ms: u64,
    /// Leases from earlier answers, the latest last.
    leases: VecDeque<u64>,
    /// Reservations from earlier answers, the latest last.
    reservations: VecDeque<u64>,
}

impl Generator {
    pub fn new(seed: u64, times: Times, now_ms: u64) -> Self {
        let shapes = command::all().flat_map(shapes_of).collect();
        Self {
            random: Random::new(seed),
            times,
            now_ms,
            shapes,
            group: Group::String,
            announced: 0,
            announces_fields: false,
            lexical: false,
            rule: None,
            entry_ms: 1,
            leases: VecDeque::new(),
            reservations: VecDeque::new(),
        }
    }

    /// The rows from which commands are generated.
    pub fn rows(&self) -> impl Iterator<Item = &'static Command> {
        self.shapes.iter().map(|shape| shape.row)
    }

    /// Generates the next command.
    pub fn line(&mut self) -> Line {
        loop {
            let index = self.random.below(self.shapes.len() as u64) as usize;
            // Commands that empty whole databases are rare: they would leave the others no data.
            let rare = match self.shapes[index].row.name {
                "flushall" | "flushdb" => 40,
                "swapdb" => 10,
                "del" | "unlink" | "rename" | "move" | "getdel" | "xtrim" | "pfdebug" | "dump" => 3,
                "pool.drop" => 2,
                "destroy" => 20,
                // They end streams, and give keys other types.
                "xsetid" | "restore" | "restore-asking" => 6,
                name if name.starts_with("geo") && name != "geoadd" => 3,
                _ => 1,
            };
            if self.random.once_in(rare) {
                return self.line_of(index);
            }
        }
    }

    fn line_of(&mut self, index: usize) -> Line {
        let shape = &self.shapes[index];
        let (mut line, arguments) = (shape.name.clone(), shape.arguments.clone());
        self.group = shape.row.group;
        self.announced = 0;
        self.announces_fields = false;
        self.lexical = shape.row.name.contains("lex");
        let acknowledges = shape.row.name == "xack";
        let adds_entry = shape.row.name == "xadd";
        let pairs_streams = shape.row.keys == KeySpec::Streams;
        let is_addition = shape.row.name == "counter.add";
        let (makes_rule, ends_rule) = (shape.row.name == "ts.createrule", shape.row.name == "ts.deleterule");
        arguments.iter().for_each(|argument| self.argument(argument, &mut line));
        if is_addition && self.random.once_in(2) {
            // Adds units in doubt, as after a crash: without them there is nothing to settle.
            line.truncate(3);
            line.extend([b"DURABLE".to_vec(), b"DOUBT".to_vec(), self.units()]);
        }
        if makes_rule && let [_, source, destination, ..] = &line[..] {
            self.rule = Some([source.clone(), destination.clone()]);
        }
        if ends_rule && let Some(rule) = self.rule.take() {
            // Of two random keys, one is rarely compacted into the other.
            line.splice(1.., rule);
        }
        if pairs_streams {
            self.pair_streams(&mut line);
        }
        if adds_entry {
            self.continue_ids(&mut line);
        }
        if acknowledges && self.random.once_in(2) {
            // Of few IDs, none may be pending.
            let near = self.entry_ms.saturating_sub(8)..=self.entry_ms;
            line.truncate(3);
            line.extend(near.flat_map(|ms| (0..3).map(move |seq| format!("{ms}-{seq}").into_bytes())));
        }
        if self.random.once_in(50) {
            self.spoil(&mut line, shape_name_len(&self.shapes[index]));
        }
        line
    }

    /// Removes, adds or replaces an argument.
    fn spoil(&mut self, line: &mut Line, names: usize) {
        let anywhere =
            |random: &mut Random, len: usize| names + random.below((len - names).max(1) as u64) as usize;
        match self.random.below(3) {
            0 if line.len() > names => drop(line.pop()),
            1 if line.len() > names => {
                let at = anywhere(&mut self.random, line.len());
                line[at] = self.random.pick(&["", "x", "-1", "0", "nan", "9223372036854775807"]).into();
            }
            _ => line.push(b"extra".to_vec()),
        }
    }

    fn argument(&mut self, argument: &Argument, line: &mut Line) {
        if argument.optional && self.random.below(3) != 0 {
            return;
        }
        let times = match (argument.multiple, self.announced) {
            (true, announced) if announced > 0 && (is_key(&argument.name) || self.announces_fields) => {
                // Sometimes the announced number is wrong.
                announced + u64::from(self.random.once_in(60))
            }
            (true, _) if argument.name == "weight" => self.announced.saturating_sub(1),
            (true, _) if self.random.once_in(30) => 20 + self.random.below(150),
            (true, _) => 1 + self.random.below(4),
            // Options may be repeated, or contradict each other.
            (false, _) if argument.optional && is_option(argument) && self.random.once_in(12) => 2,
            (false, _) => 1,
        };
        for _ in 0..times {
            self.once(argument, line);
        }
    }

    fn once(&mut self, argument: &Argument, line: &mut Line) {
        if let Some(token) = &argument.token {
            let token = if self.random.once_in(4) { token.to_lowercase() } else { token.clone() };
            line.push(token.into());
        }
        match &argument.kind {
            Kind::Word => {}
            Kind::Value(_) => {
                let value = self.value(&argument.name);
                line.push(value);
            }
            Kind::Block(parts) => parts.iter().for_each(|part| self.argument(part, line)),
            Kind::OneOf(choices) => {
                let choice = self.random.below(choices.len() as u64) as usize;
                self.argument(&choices[choice], line);
            }
        }
    }

    fn value(&mut self, name: &str) -> Vec<u8> {
        if is_key(name) {
            return self.key();
        }
        match name {
            "numkeys" => {
                self.announced = 1 + self.random.below(3);
                if self.random.once_in(60) { self.integer() } else { self.announced.to_string().into() }
            }
            "id" if self.group == Group::Limit => self.lease(),
            "id" if self.group == Group::Pool => self.random.pick(&["car", "mug", "hat", "pin"]).into(),
            "weight" | "quantity" | "units" | "count" | "max" | "after" | "from" | "step"
                if self.group == Group::Pool =>
            {
                self.amount(name)
            }
            _ if self.group == Group::Stream => self.of_stream(name),
            _ if self.group == Group::Series => self.of_series(name),
            _ if self.group == Group::Lens => self.of_lens(name),
            "epoch" => self.random.below(3).to_string().into(),
            "user" | "request" if self.group == Group::Pool => {
                self.random.pick(&["u1", "u2", "u3", "u4"]).into()
            }
            "numfields" => {
                self.announces_fields = true;
                self.announced = 1 + self.random.below(3);
                if self.random.once_in(60) { self.integer() } else { self.announced.to_string().into() }
            }
            "digest" => self.random.pick(&["b6acb9d84a38ff74", "e36ff4ac3edb0cd5", "x"]).into(),
            "numitems" => b"1".to_vec(),
            "number" => self.reservation(),
            "milliseconds" if self.group == Group::Pool => (1 + self.random.below(3000)).to_string().into(),
            "catalogue" => self.catalogue(),
            "seconds" | "unix-time-seconds" => self.time(name, 1000),
            "milliseconds" | "unix-time-milliseconds" => self.time(name, 1),
            "timeout" => self.random.pick(&["0.001", "0.002", "0.003", "-1", "x", "0.0011"]).into(),
            "limit" | "burst" | "max-burst" | "count-per-period" | "period" | "amount" | "quantity"
                if self.group == Group::Limit =>
            {
                self.units()
            }
            "units" if self.random.once_in(2) => self.random.pick(&["50", "600", "1000", "2000"]).into(),
            "units" | "delta" | "cap" | "block" => self.counted(),
            "longitude" | "latitude" => self
                .random
                .pick(&["0", "1.5", "-2", "2.25", "-0.001", "84", "-85.05112878", "181", "x"])
                .into(),
            "radius" | "width" | "height" => {
                self.random.pick(&["0", "10", "300", "1000", "12345.5", "1e9", "-1", "x"]).into()
            }
            "serialized-value" => self.payload(),
            "ttl" => self.time_to_live(),
            "score" | "weight" => self.score(),
            "min" | "max" => self.bound(),
            "increment" if self.group == Group::SortedSet => self.score(),
            "increment" | "decrement" | "start" | "stop" | "end" | "index" | "count" | "rank"
            | "num-matches" | "len" | "limit" | "min-match-len" | "bit" => self.integer(),
            "offset" => match self.group {
                Group::Bitmap if self.random.once_in(3) => format!("#{}", self.random.below(20)).into(),
                Group::Bitmap | Group::String => self.random.below(3000).to_string().into(),
                _ => self.integer(),
            },
            "encoding" => self.random.pick(&["u8", "i5", "u63", "i64", "u1", "i16", "u64", "x"]).into(),
            "cursor" => self.random.pick(&["0", "0", "0", "0", "17", "x"]).into(),
            "pattern" => self.random.pick(&["*", "k*", "?1", "[a-c]*", "[^a]*", "\\*", "m1?"]).into(),
            // Weights and values in other keys. Some of their elements exist; the other words name
            // no keys.
            "by-pattern" | "get-pattern" => self
                .random
                .pick(&["string:*", "string:*", "hash:*->a", "hash:*->5", "#", "nosort", "*", "*->"])
                .into(),
            "type" => self
                .random
                .pick(&[
                    "string",
                    "list",
                    "hash",
                    "set",
                    "zset",
                    "counter",
                    "limit",
                    "pool",
                    "tsdb-type",
                    "lens",
                    "stream",
                ])
                .into(),
            "db" | "destination-db" | "index1" | "index2" => {
                self.random.pick(&["0", "1", "2", "1", "15", "16", "-1", "x"]).into()
            }
            "field" | "member" | "member1" | "member2" | "element" | "pivot" | "id" => self.member(),
            _ => self.text(),
        }
    }

    /// Milliseconds of `RESTORE`. A number whose sum with the time is out of range means the past to Redis.
    fn time_to_live(&mut self) -> Vec<u8> {
        match self.random.below(16) {
            0 => self.random.pick(&["-1", "x"]).into(),
            1..9 => b"0".to_vec(),
            _ if self.times == Times::Near => (1 + self.random.below(60_000)).to_string().into(),
            _ => (10_000_000 + self.random.below(10_000_000_000)).to_string().into(),
        }
    }

    /// A payload of `RESTORE`: a small value, sometimes a damaged one.
    fn payload(&mut self) -> Vec<u8> {
        let contents: [&[u8]; 8] = [
            b"\0\x05hello",
            b"\0\xc1\x39\x30",
            b"\0\xc3\x06\x14\x01aa\xe0\x09\0",
            b"\x01\x03\x01a\xc0\x05\x01b",
            b"\x02\x02\x011\x012",
            b"\x04\x02\x01a\x01x\x015\xc0\x07",
            b"\x05\x02\x01a\0\0\0\0\0\0\xf8\x3f\x015\0\0\0\0\0\0\0\x40",
            b"\x10\x0c\x0c\0\0\0\x02\0\x81f\x02\x05\x01\xff",
        ];
        let mut payload = self.random.pick(&contents).to_vec();
        tidemark_engine::rdb::seal(&mut payload);
        if self.random.once_in(12) {
            payload.pop();
        }
        payload
    }

    /// A key, mostly of the command's own type, sometimes of any.
    fn key(&mut self) -> Vec<u8> {
        let kinds = [
            "string", "list", "hash", "set", "zset", "limit", "counter", "pool", "series", "lens", "stream",
            "hll",
        ];
        let own = match self.group {
            Group::String | Group::Bitmap => 0,
            Group::List => 1,
            Group::Hash => 2,
            Group::Set => 3,
            Group::SortedSet | Group::Geo => 4,
            Group::Limit => 5,
            Group::Counter => 6,
            Group::Pool => 7,
            Group::Series if self.random.once_in(8) => 9,
            Group::Series | Group::Lens => 8,
            Group::Stream => 10,
            Group::HyperLogLog => 11,
            _ => self.random.below(12) as usize,
        };
        let kind = if self.random.once_in(12) { self.random.below(12) as usize } else { own };
        // Few streams, so that groups have entries to deliver.
        let keys = if kinds[kind] == "stream" && !self.random.once_in(8) { 1 } else { 5 };
        format!("{}:{}", kinds[kind], self.random.below(keys)).into()
    }

    /// An argument of a command on streams. Most IDs are near the last one that was added.
    fn of_stream(&mut self, name: &str) -> Vec<u8> {
        match name {
            "group" if self.random.once_in(12) => b"g2".to_vec(),
            "group" => b"g1".to_vec(),
            "consumer" => self.random.pick(&["c1", "c1", "c1", "c2"]).into(),
            "id" | "start" | "end" | "last-id" | "max-deleted-id" | "lastid" => self.entry_id(),
            "threshold" => self.random.pick(&["0", "3", "20", "200", "1-0", "6-2", "-1"]).into(),
            "count" => self.random.pick(&["1", "2", "5", "0", "100", "-1"]).into(),
            "min-idle-time" | "ms" | "milliseconds" => self.random.pick(&["0", "0", "1", "50", "x"]).into(),
            "entries-added" | "entries-read" => self.random.pick(&["0", "5", "300", "-1"]).into(),
            "unix-time-milliseconds" => self.time(name, 1),
            "field" => self.random.pick(&["a", "b", "c"]).into(),
            _ => self.text(),
        }
    }

    fn entry_id(&mut self) -> Vec<u8> {
        if self.random.once_in(12) {
            return self.random.pick(&["-", "+", "(5-1", "$", ">", "*", "0", "x", "7-*"]).into();
        }
        let ms = self.entry_ms.saturating_sub(self.random.below(6));
        if self.random.once_in(3) { ms.to_string() } else { format!("{ms}-{}", self.random.below(3)) }.into()
    }

    /// Makes most new entries continue the IDs of the others: behind one from the clock, no small one
    /// would be new.
    fn continue_ids(&mut self, line: &mut Line) {
        let Some(id) = line.iter_mut().skip(2).find(|word| word.starts_with(b"*") || word.ends_with(b"-*"))
        else {
            return;
        };
        if !self.random.once_in(40) {
            self.entry_ms += self.random.below(2);
            *id = format!("{}-*", self.entry_ms).into();
        }
    }

    /// Makes as many IDs as keys.
    fn pair_streams(&mut self, line: &mut Line) {
        let Some(at) = line.iter().position(|word| word.eq_ignore_ascii_case(b"STREAMS")) else { return };
        line.truncate(at + 1);
        let count = if self.random.once_in(4) { 1 + self.random.below(3) } else { 1 };
        let keys: Vec<Vec<u8>> = (0..count).map(|_| self.key()).collect();
        line.extend(keys);
        for _ in 0..count {
            let id = if self.random.once_in(4) { self.entry_id() } else { b">".to_vec() };
            line.push(id);
        }
    }

    /// An argument of a command on lenses.
    fn of_lens(&mut self, name: &str) -> Vec<u8> {
        match name {
            "name" | "lens" => format!("lens:{}", self.random.below(5)).into(),
            "source" if self.random.once_in(4) => format!("lens:{}", self.random.below(5)).into(),
            "source" => format!("series:{}", self.random.below(5)).into(),
            "expression" => self.random.pick(&["x*2", "x+y", "abs(x)-1", "x/", "y"]).into(),
            "label" => self.random.pick(&["room", "floor", "unit"]).into(),
            "value" => self.random.pick(&["1", "2", "-3", "2.5", "(1)"]).into(),
            "aggregator" => self.random.pick(&["avg", "max", "sum", "quantile:0.5", "twa"]).into(),
            "weight" => self.random.pick(&["0.5", "1", "0.05", "2"]).into(),
            "factor" | "offset" | "lowest" | "highest" | "constant" => {
                self.random.pick(&["2", "-3", "0.5", "100", "x"]).into()
            }
            _ => self.random.pick(&["5", "50", "1s", "20ms", "0", "-5"]).into(),
        }
    }

    /// An argument of a command on series. Times are small, so that ranges, late points and second
    /// points at a time are common.
    fn of_series(&mut self, name: &str) -> Vec<u8> {
        let time = self.random.below(400).to_string();
        match name {
            "timestamp" if self.random.once_in(40) => {
                self.random.pick(&["-1", "x", "9223372036854775807"]).into()
            }
            "from" if self.random.once_in(3) => b"-".to_vec(),
            "to" if self.random.once_in(3) => b"+".to_vec(),
            "timestamp" | "from" | "to" | "align" => time.into(),
            "value" | "addend" | "subtrahend" | "min" | "max" => {
                self.random.pick(&["1", "2", "-3", "2.5", "0.1", "1e300", "nan", "x"]).into()
            }
            "period" | "max-time-diff" => self.random.pick(&["0", "5", "100", "1000", "-1"]).into(),
            "max-val-diff" => self.random.pick(&["0", "1", "2.5", "x"]).into(),
            "size" => self.random.pick(&["48", "128", "4096", "50"]).into(),
            "policy" => self.random.pick(&["block", "first", "last", "min", "max", "sum", "x"]).into(),
            "label" => self.random.pick(&["room", "floor", "unit"]).into(),
            "filter" => {
                let filters =
                    ["room=1", "room=(1,2,-3)", "floor=2", "unit!=1", "floor=", "room!=(2.5)", "unit=nan"];
                self.random.pick(&filters).into()
            }
            "aggregator" => {
                let aggregators = [
                    "avg",
                    "sum,count",
                    "min,max",
                    "first,last",
                    "range",
                    "std.s",
                    "var.p",
                    "twa",
                    "countall",
                    "rate",
                ];
                self.random.pick(&aggregators).into()
            }
            "reducer" => self.random.pick(&["avg", "sum", "max", "count", "last"]).into(),
            // Two points, mostly at rising times.
            "times" => [self.random.below(200), 100 + self.random.below(300)].map(u64::to_le_bytes).concat(),
            "values" => [2.5, self.random.below(9) as f64].map(f64::to_le_bytes).concat(),
            "bucket-duration" => self.random.pick(&["1", "10", "50", "100", "0"]).into(),
            "bucket-timestamp" => self.random.pick(&["start", "mid", "end", "-", "x"]).into(),
            "count" => (1 + self.random.below(9)).to_string().into(),
            _ => self.text(),
        }
    }

    fn time(&mut self, name: &str, unit_ms: u64) -> Vec<u8> {
        if self.random.once_in(10) {
            let extremes = ["0", "-1", "1", "x", "9223372036854775807", "-9223372036854775808"];
            // A relative second is too near for servers with clocks of their own.
            let chosen = self.random.pick(&extremes);
            return if chosen == "1" && !name.starts_with("unix") { "0".into() } else { chosen.into() };
        }
        let ahead_ms = match self.times {
            Times::Near => 1 + self.random.below(60_000),
            Times::FarOrPast => 10_000_000 + self.random.below(10_000_000_000),
        };
        let ms = if name.starts_with("unix") { self.now_ms + ahead_ms } else { ahead_ms };
        (ms / unit_ms).max(1).to_string().into()
    }

    /// A lease, mostly one of the latest.
    fn lease(&mut self) -> Vec<u8> {
        self.named(|generator| &generator.leases)
    }

    /// A reservation, mostly one of the latest.
    fn reservation(&mut self) -> Vec<u8> {
        self.named(|generator| &generator.reservations)
    }

    /// The latest reservation.
    pub fn last_reservation(&self) -> Option<u64> {
        self.reservations.back().copied()
    }

    fn named(&mut self, names: fn(&Self) -> &VecDeque<u64>) -> Vec<u8> {
        let known = names(self).len() as u64;
        if known == 0 || self.random.once_in(8) {
            return self.integer();
        }
        let at = self.random.below(known) as usize;
        names(self)[at].to_string().into()
    }

    /// Remembers the leases and reservations in an answer, so that later commands name them. A
    /// lease is an integer that is a time near the present.
    pub fn hear(&mut self, answer: &[u8]) {
        const HOUR_US: u64 = 3_600_000_000;
        let text = String::from_utf8_lossy(answer);
        let mut is_reservation = false;
        for line in text.split("\r\n") {
            let integer = line.strip_prefix(':').and_then(|integer| integer.parse::<u64>().ok());
            match integer {
                Some(number) if is_reservation => remember(&mut self.reservations, number),
                Some(number) if number.abs_diff(self.now_ms * 1000) < HOUR_US => {
                    remember(&mut self.leases, number);
                }
                _ => {}
            }
            is_reservation = line == "reservation";
        }
    }

    /// Units for limiters: mostly so few that some calls are refused and some are not.
    fn units(&mut self) -> Vec<u8> {
        if self.random.once_in(12) { self.integer() } else { (1 + self.random.below(5)).to_string().into() }
    }

    /// Units for counters: so few that they cancel, or so many that they cause a commit.
    fn counted(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => self.integer(),
            1..=3 => self.random.pick(&["50", "400", "-300", "2000", "-1500"]).into(),
            _ => (self.random.below(12) as i64 - 3).to_string().into(),
        }
    }

    /// Units for pools: so few that items sometimes sell out.
    fn amount(&mut self, name: &str) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.integer(),
            1 if name == "quantity" => b"UNLIMITED".to_vec(),
            2 if name == "units" => format!("-{}", self.random.below(4)).into(),
            _ => (1 + self.random.below(5)).to_string().into(),
        }
    }

    fn catalogue(&mut self) -> Vec<u8> {
        let catalogues = [
            r#"{"items": [{"id": "car", "weight": 0.5, "quantity": 3}, {"id": "mug", "weight": 9.5, "quantity": "unlimited"}]}"#,
            r#"{"mode": "per-unit", "items": [{"id": "car", "weight": 1, "quantity": 2}, {"id": "pin", "weight": 2, "quantity": 9}]}"#,
            r#"{"sold_out": "no-prize", "items": [{"id": "hat", "weight": 1, "quantity": 1}, {"id": "mug", "weight": 1, "quantity": 9}]}"#,
            "items: [{id: car, weight: 1, quantity: 5}]",
            "[[items]]\nid = \"pin\"\nweight = 1\nquantity = 5\n",
            "no catalogue",
        ];
        self.random.pick(&catalogues).into()
    }

    fn score(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => self.random.pick(&["inf", "-inf", "nan", "x", "1e300", "-0", "+inf"]).into(),
            1..=3 => format!("{}.{}", self.random.below(10), self.random.below(1000)).into(),
            _ => (self.random.below(20) as i64 - 5).to_string().into(),
        }
    }

    /// A bound of a range by score, by text or by index.
    fn bound(&mut self) -> Vec<u8> {
        let kinds = if self.lexical && !self.random.once_in(6) { 3 } else { 8 };
        match self.random.below(kinds) {
            0 if kinds == 3 => self.random.pick(&["-", "+"]).into(),
            0 => self.random.pick(&["-inf", "+inf", "(-inf", "-", "+", "(", "["]).into(),
            1 => [b"[".to_vec(), self.member()].concat(),
            2 => [b"(".to_vec(), self.member()].concat(),
            3 => [b"(".to_vec(), self.score()].concat(),
            _ => self.score(),
        }
    }

    fn integer(&mut self) -> Vec<u8> {
        if self.random.once_in(15) {
            let extremes = [
                "9223372036854775807",
                "-9223372036854775808",
                "x",
                "",
                "1.5",
                "01",
                "9223372036854775808",
                "+1",
            ];
            return self.random.pick(&extremes).into();
        }
        (self.random.below(16) as i64 - 5).to_string().into()
    }

    /// A number or a word. A few are long, so that small encodings of values become large ones.
    pub fn member(&mut self) -> Vec<u8> {
        match self.random.below(20) {
            0 => format!("{}", self.random.below(400)).into(),
            1 => format!("m{}", self.random.below(400)).into(),
            2 if self.random.once_in(4) => vec![b'L'; 60 + self.random.below(10) as usize],
            2 => vec![0xff, 0x00, b'\r', b'\n', self.random.below(4) as u8],
            3..=10 => self.random.below(12).to_string().into(),
            _ => vec![b'a' + self.random.below(10) as u8],
        }
    }

    fn text(&mut self) -> Vec<u8> {
        match self.random.below(10) {
            0..=4 => self.integer(),
            5 => self.score(),
            6 => vec![b'v'; self.random.below(300) as usize],
            _ => self.member(),
        }
    }
}

/// The shape of the row itself, or those of its subcommands.
fn shapes_of(row: &'static Command) -> Vec<Shape> {
    if !row.subcommands.is_empty() {
        let named = |sub: &'static Command| (sub, vec![row.name.into(), sub.name.into()]);
        return row.subcommands.iter().map(named).filter_map(|(sub, name)| shape(sub, name)).collect();
    }
    shape(row, vec![row.name.into()]).into_iter().collect()
}

fn shape(row: &'static Command, name: Line) -> Option<Shape> {
    // A test of some milliseconds, and in Redis of seconds, that has no other outcome than `OK`.
    let is_self_test = row.name == "pfselftest";
    (matches!(row.run, Run::Keys(_)) && !is_self_test).then(|| Shape {
        row,
        name,
        arguments: syntax::parse(row.syntax),
    })
}

fn shape_name_len(shape: &Shape) -> usize {
    shape.name.len()
}

/// Whether an argument begins with a literal word, whatever follows it.
fn is_option(argument: &Argument) -> bool {
    argument.token.is_some()
        || match &argument.kind {
            Kind::Block(parts) => parts.first().is_some_and(is_option),
            Kind::OneOf(choices) => choices.iter().all(is_option),
            Kind::Word | Kind::Value(_) => false,
        }
}

fn is_key(name: &str) -> bool {
    matches!(
        name,
        "key"
            | "key1"
            | "key2"
            | "newkey"
            | "source"
            | "src"
            | "destination"
            | "dst"
            | "destkey"
            | "sourcekey"
    )
}

/// Whether a command may change keys.
pub fn writes(row: &Command) -> bool {
    row.is(flags::WRITE)
}

/// A command as a user types it, for reports.
pub fn shown(line: &[Vec<u8>]) -> String {
    line.iter().map(|word| word.escape_ascii().to_string()).map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: String) -> String {
    if word.is_empty() || word.contains(' ') || word.contains('\\') { format!("\"{word}\"") } else { word }
}

//! Fields that expire: `HEXPIRE` and its kind, `HGETEX`, `HSETEX` and `HGETDEL`.
//!
//! A field is there until a record removes it: `hash.expire`, which the server runs when the time of a field has
//! come, and before each command that names the hash.

use crate::command::parse::{self, is};
use crate::command::strings::check_length;
use crate::command::{Answer, Command, Group, Handler, KeySpec, Misses, Run, flags::*};
use crate::context::Context;
use crate::error::CommandError;
use crate::persist::level;
use crate::value::{Hash, Type};
use crate::watch::part::Part;
use crate::watch::touched::Touched;

/// The id of `hash.expire`.
pub(crate) const FIELDS_EXPIRE: u16 = 278;
/// Its name.
pub(crate) const FIELDS_EXPIRE_NAME: &str = "hash.expire";

/// Latest time of a field: Redis's limit. Milliseconds since 1970.
const LATEST_MS: i64 = (1 << 46) - 1;

/// Most fields that one record removes because their time has come, and about the most bytes of their names.
const DUE_FIELDS: usize = 64;
const DUE_BYTES: usize = 1 << 20;

const fn row(id: u16, name: &'static str, arity: i16, flags: u32, run: Handler) -> Command {
    Command::new(Group::Hash, id, name, arity, flags, KeySpec::ONE, Run::Keys(run))
        .at_level(level::FIELD_TIMES)
}

const EACH_FIELD: &str = "O(N) with N the number of fields";
const EXPIRE_SYNTAX: &str = "key seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]";
const EXPIRE_MS_SYNTAX: &str = "key milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]";
const EXPIRE_AT_SYNTAX: &str = "key unix-time-seconds [NX | XX | GT | LT] FIELDS numfields field [field ...]";
const EXPIRE_AT_MS_SYNTAX: &str =
    "key unix-time-milliseconds [NX | XX | GT | LT] FIELDS numfields field [field ...]";
const FIELDS_SYNTAX: &str = "key FIELDS numfields field [field ...]";

pub(in crate::command) const COMMANDS: &[Command] = &[
    row(266, "hexpire", -6, WRITE | FAST, hexpire).using(&["RW update"]).doc(
        "7.4.0",
        EACH_FIELD,
        EXPIRE_SYNTAX,
        "Sets the time to live of fields in seconds.",
    ),
    row(267, "hpexpire", -6, WRITE | FAST, hpexpire).using(&["RW update"]).doc(
        "7.4.0",
        EACH_FIELD,
        EXPIRE_MS_SYNTAX,
        "Sets the time to live of fields in milliseconds.",
    ),
    row(268, "hexpireat", -6, WRITE | FAST, hexpireat).using(&["RW update"]).doc(
        "7.4.0",
        EACH_FIELD,
        EXPIRE_AT_SYNTAX,
        "Sets the time at which fields expire, in seconds since 1970.",
    ),
    row(269, "hpexpireat", -6, WRITE | FAST, hpexpireat).using(&["RW update"]).doc(
        "7.4.0",
        EACH_FIELD,
        EXPIRE_AT_MS_SYNTAX,
        "Sets the time at which fields expire, in milliseconds since 1970.",
    ),
    row(270, "httl", -5, READONLY | FAST, httl)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc("7.4.0", EACH_FIELD, FIELDS_SYNTAX, "Returns the time to live of fields in seconds."),
    row(271, "hpttl", -5, READONLY | FAST, hpttl)
        .answering(Answer::Unrepeatable)
        .using(&["RO access"])
        .tips(&["nondeterministic_output"])
        .doc("7.4.0", EACH_FIELD, FIELDS_SYNTAX, "Returns the time to live of fields in milliseconds."),
    row(272, "hexpiretime", -5, READONLY | FAST, hexpiretime)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "7.4.0",
            EACH_FIELD,
            FIELDS_SYNTAX,
            "Returns the time at which fields expire, in seconds since 1970.",
        )
        .looking_at(|_| Part::elements(Type::Hash)),
    row(273, "hpexpiretime", -5, READONLY | FAST, hpexpiretime)
        .answering(Answer::Ordered)
        .using(&["RO access"])
        .doc(
            "7.4.0",
            EACH_FIELD,
            FIELDS_SYNTAX,
            "Returns the time at which fields expire, in milliseconds since 1970.",
        )
        .looking_at(|_| Part::elements(Type::Hash)),
    row(274, "hpersist", -5, WRITE | FAST, hpersist).using(&["RW update"]).doc(
        "7.4.0",
        EACH_FIELD,
        FIELDS_SYNTAX,
        "Removes the time to live of fields.",
    ),
    row(275, "hgetex", -5, WRITE | FAST, hgetex)
        .using(&["RW access update"])
        .missing(Misses::OfWrites)
        .doc(
            "8.0.0",
            EACH_FIELD,
            "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]",
            "Returns the values of fields and sets or removes their time to live.",
        ),
    row(276, "hsetex", -6, WRITE | DENYOOM | FAST, hsetex).using(&["RW update"]).doc(
        "8.0.0",
        EACH_FIELD,
        "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]",
        "Sets the values of fields and their time to live.",
    ),
    row(277, "hgetdel", -5, WRITE | FAST, hgetdel)
        .using(&["RW access delete"])
        .missing(Misses::OfWrites)
        .doc("8.0.0", EACH_FIELD, FIELDS_SYNTAX, "Returns the values of fields and deletes the fields."),
];

/// What the server runs and logs itself.
pub(in crate::command) const LOGGED: &[Command] =
    &[row(FIELDS_EXPIRE, FIELDS_EXPIRE_NAME, -2, WRITE | FAST, expire_due).using(&["RW delete"])];

const NO_FIELD: i64 = -2;
const NO_TIME: i64 = -1;
const NOT_MET: i64 = 0;
const DONE: i64 = 1;
const DELETED: i64 = 2;

const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// Parses `FIELDS numfields field [field …]`, which begins at a position and has all the rest. `bad_number` is
/// the error for a number that is none of fields.
fn fields<'a>(
    args: &'a [&'a [u8]],
    at: usize,
    bad_number: &'static str,
) -> Result<&'a [&'a [u8]], CommandError> {
    if !args.get(at).is_some_and(|word| is(word, "FIELDS")) {
        return Err(CommandError::text(
            "ERR Mandatory argument FIELDS is missing or not at the right position",
        ));
    }
    let number = args.get(at + 1).and_then(|number| parse::integer(number).ok());
    let number = number.filter(|&number| number >= 1).ok_or(CommandError::text(bad_number))?;
    let fields = &args[at + 2..];
    if usize::try_from(number) != Ok(fields.len()) {
        return Err(CommandError::text("ERR The `numfields` parameter must match the number of arguments"));
    }
    Ok(fields)
}

/// How a client states a time.
#[derive(Debug, Clone, Copy)]
struct TimeForm {
    seconds: bool,
    absolute: bool,
}

impl TimeForm {
    /// The forms with the keywords of options.
    const OPTIONS: [(&'static str, Self); 4] = [
        ("EX", Self { seconds: true, absolute: false }),
        ("PX", Self { seconds: false, absolute: false }),
        ("EXAT", Self { seconds: true, absolute: true }),
        ("PXAT", Self { seconds: false, absolute: true }),
    ];

    fn of_option(word: &[u8]) -> Option<Self> {
        Self::OPTIONS.iter().find(|(keyword, _)| is(word, keyword)).map(|(_, form)| *form)
    }

    /// Returns the time in milliseconds since 1970.
    fn parse(self, arg: &[u8], now_ms: u64, command: &'static str) -> Result<u64, CommandError> {
        let value = parse::integer(arg)?;
        if value < 0 {
            return Err(CommandError::text("ERR invalid expire time, must be >= 0"));
        }
        let unit = if self.seconds { 1000 } else { 1 };
        let base = if self.absolute { 0 } else { i64::try_from(now_ms).unwrap_or(i64::MAX) };
        let at_ms = value.checked_mul(unit).and_then(|value| value.checked_add(base));
        match at_ms.and_then(|at_ms| u64::try_from(at_ms).ok().filter(|_| at_ms <= LATEST_MS)) {
            Some(at_ms) => Ok(at_ms),
            None => Err(CommandError::InvalidExpire(command)),
        }
    }
}

/// Which fields get a new time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    All,
    WithoutTime,
    WithTime,
    Later,
    Earlier,
}

impl Condition {
    fn parse(word: &[u8]) -> Self {
        let all =
            [("NX", Self::WithoutTime), ("XX", Self::WithTime), ("GT", Self::Later), ("LT", Self::Earlier)];
        all.into_iter().find(|(keyword, _)| is(word, keyword)).map_or(Self::All, |(_, condition)| condition)
    }

    /// A field without a time counts as one that expires last.
    fn allows(self, before_ms: Option<u64>, at_ms: u64) -> bool {
        match self {
            Self::All => true,
            Self::WithoutTime => before_ms.is_none(),
            Self::WithTime => before_ms.is_some(),
            Self::Later => before_ms.is_some_and(|before_ms| at_ms > before_ms),
            Self::Earlier => before_ms.is_none_or(|before_ms| at_ms < before_ms),
        }
    }
}

/// What a command has changed of fields.
#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    /// Fields that have another time, or none any more.
    moved: usize,
    deleted: usize,
}

impl Changes {
    fn any(self) -> bool {
        self.moved + self.deleted > 0
    }

    /// Sets the time of a field, or deletes the field if that is over. Returns Redis's number for the result.
    fn set_time(
        &mut self,
        hash: &mut Hash,
        field: &[u8],
        condition: Condition,
        at_ms: u64,
        now_ms: u64,
    ) -> i64 {
        if !hash.contains(field) {
            NO_FIELD
        } else if !condition.allows(hash.time_of(field), at_ms) {
            NOT_MET
        } else if at_ms <= now_ms {
            hash.remove(field);
            self.deleted += 1;
            DELETED
        } else {
            hash.set_time(field, Some(at_ms));
            self.moved += 1;
            DONE
        }
    }

    /// Removes the time of a field. Returns Redis's number for the result.
    fn clear_time(&mut self, hash: &mut Hash, field: &[u8]) -> i64 {
        if hash.time_of(field).is_some() {
            hash.set_time(field, None);
            self.moved += 1;
            DONE
        } else if hash.contains(field) {
            NO_TIME
        } else {
            NO_FIELD
        }
    }
}

/// Answers one integer for each field: what `change` returns of the hash, or that there is no field.
fn answer_each(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    fields: &[&[u8]],
    mut change: impl FnMut(&mut Hash, &[u8]) -> i64,
) -> Result<(), CommandError> {
    let (keys, reply) = (&mut *ctx.keys, &mut *ctx.reply);
    reply.array(fields.len());
    let found = keys.update(key, |hash: &mut Hash| {
        fields.iter().for_each(|field| reply.integer(change(hash, field)));
    })?;
    if found.is_none() {
        fields.iter().for_each(|_| reply.integer(NO_FIELD));
    }
    Ok(())
}

fn expire_generic(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    form: TimeForm,
    command: &'static str,
) -> Result<(), CommandError> {
    let key = args[1];
    // As in Redis, a key of another type is reported first.
    ctx.keys.read::<Hash>(key)?;
    let now_ms = ctx.keys.now_ms();
    let at_ms = form.parse(args[2], now_ms, command)?;
    let condition = Condition::parse(args[3]);
    let at = if condition == Condition::All { 3 } else { 4 };
    let fields = fields(args, at, "ERR Parameter `numFields` should be greater than 0")?;
    let mut changes = Changes::default();
    answer_each(ctx, key, fields, |hash, field| changes.set_time(hash, field, condition, at_ms, now_ms))?;
    if changes.any() {
        let event = if changes.deleted > 0 { "hdel" } else { "hexpire" };
        ctx.keys.changed_in(key, event, || Touched::fields(fields, changes.deleted == 0));
    }
    Ok(())
}

fn hexpire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, TimeForm { seconds: true, absolute: false }, "hexpire")
}

fn hpexpire(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, TimeForm { seconds: false, absolute: false }, "hpexpire")
}

fn hexpireat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, TimeForm { seconds: true, absolute: true }, "hexpireat")
}

fn hpexpireat(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    expire_generic(ctx, args, TimeForm { seconds: false, absolute: true }, "hpexpireat")
}

/// Answers `show` of the times of fields, which gets the time and that of the command.
fn ttl_generic(
    ctx: &mut Context<'_, '_>,
    args: &[&[u8]],
    show: impl Fn(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let hash = ctx.keys.read::<Hash>(args[1])?;
    let fields = fields(args, 2, NOT_POSITIVE)?;
    let now_ms = ctx.keys.now_ms();
    ctx.reply.array(fields.len());
    for field in fields {
        ctx.reply.integer(match hash.and_then(|hash| hash.time_of(field)) {
            Some(at_ms) => i64::try_from(show(at_ms, now_ms)).unwrap_or(i64::MAX),
            None if hash.is_some_and(|hash| hash.contains(field)) => NO_TIME,
            None => NO_FIELD,
        });
    }
    Ok(())
}

fn httl(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ttl_generic(ctx, args, |at_ms, now_ms| at_ms.saturating_sub(now_ms).div_ceil(1000))
}

fn hpttl(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ttl_generic(ctx, args, u64::saturating_sub)
}

fn hexpiretime(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ttl_generic(ctx, args, |at_ms, _| at_ms.div_ceil(1000))
}

fn hpexpiretime(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    ttl_generic(ctx, args, |at_ms, _| at_ms)
}

fn hpersist(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    ctx.keys.read::<Hash>(key)?;
    let fields = fields(args, 2, NOT_POSITIVE)?;
    let mut changes = Changes::default();
    answer_each(ctx, key, fields, |hash, field| changes.clear_time(hash, field))?;
    if changes.any() {
        ctx.keys.changed_in(key, "hpersist", || Touched::fields(fields, true));
    }
    Ok(())
}

/// Answers the values of fields, and has `change` change each of them that is there.
fn take_each(
    ctx: &mut Context<'_, '_>,
    key: &[u8],
    fields: &[&[u8]],
    mut change: impl FnMut(&mut Hash, &[u8]),
) -> Result<(), CommandError> {
    let (keys, reply) = (&mut *ctx.keys, &mut *ctx.reply);
    reply.array(fields.len());
    let found = keys.update(key, |hash: &mut Hash| {
        for field in fields {
            reply.bulk_or_null(hash.get(field));
            if hash.contains(field) {
                change(hash, field);
            }
        }
    })?;
    if found.is_none() {
        fields.iter().for_each(|_| reply.null());
    }
    Ok(())
}

/// What happens to the times of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NewTime {
    /// It stays.
    Kept,
    /// There is none.
    Cleared,
    /// In milliseconds since 1970.
    At(u64),
}

fn hgetex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    ctx.keys.read::<Hash>(key)?;
    let now_ms = ctx.keys.now_ms();
    let (time, at) = match TimeForm::of_option(args[2]) {
        Some(form) => (NewTime::At(form.parse(args[3], now_ms, "hgetex")?), 4),
        None if is(args[2], "PERSIST") => (NewTime::Cleared, 3),
        None => (NewTime::Kept, 2),
    };
    let fields = fields(args, at, NOT_POSITIVE)?;
    let mut changes = Changes::default();
    take_each(ctx, key, fields, |hash, field| match time {
        NewTime::Kept => {}
        NewTime::Cleared => _ = changes.clear_time(hash, field),
        NewTime::At(at_ms) => _ = changes.set_time(hash, field, Condition::All, at_ms, now_ms),
    })?;
    if changes.any() {
        let event = match time {
            NewTime::Cleared => "hpersist",
            _ if changes.deleted > 0 => "hdel",
            _ => "hexpire",
        };
        ctx.keys.changed_in(key, event, || Touched::fields(fields, changes.deleted == 0));
    }
    Ok(())
}

fn hgetdel(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let key = args[1];
    ctx.keys.read::<Hash>(key)?;
    let fields = fields(args, 2, NOT_POSITIVE)?;
    let mut deleted = 0;
    take_each(ctx, key, fields, |hash, field| deleted += usize::from(hash.remove(field)))?;
    if deleted > 0 {
        ctx.keys.changed_in(key, "hdel", || Touched::fields(fields, false));
    }
    Ok(())
}

/// Which of the fields of HSETEX must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Any,
    None,
    All,
}

/// Arguments of HSETEX.
struct SetOptions<'a> {
    presence: Presence,
    time: NewTime,
    /// Alternating with their values.
    fields: &'a [&'a [u8]],
}

impl<'a> SetOptions<'a> {
    fn parse(args: &'a [&'a [u8]], now_ms: u64) -> Result<Self, CommandError> {
        const NAME: &str = "hsetex";
        let arity = || CommandError::Arity(NAME.into());
        let (mut presence, mut time) = (Presence::Any, None);
        let mut rest = &args[2..];
        while let [word, after @ ..] = rest {
            rest = after;
            let new_presence = match () {
                () if is(word, "FNX") => Some(Presence::None),
                () if is(word, "FXX") => Some(Presence::All),
                () => None,
            };
            let form = TimeForm::of_option(word);
            if is(word, "FIELDS") {
                let [number, fields @ ..] = after else { return Err(arity()) };
                if fields.is_empty() {
                    return Err(arity());
                }
                let number =
                    parse::integer(number).ok().filter(|number| (1..=i64::from(i32::MAX)).contains(number));
                let number = number.ok_or(CommandError::text("ERR invalid number of fields"))?;
                if i64::try_from(fields.len()) != Ok(number * 2) {
                    return Err(arity());
                }
                return Ok(Self { presence, time: time.unwrap_or(NewTime::Cleared), fields });
            } else if new_presence.is_some() {
                if presence != Presence::Any {
                    return Err(CommandError::text("ERR Only one of FXX or FNX arguments can be specified"));
                }
                presence = new_presence.unwrap_or(presence);
            } else if form.is_some() || is(word, "KEEPTTL") {
                if time.is_some() {
                    return Err(CommandError::text(
                        "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
                    ));
                }
                time = Some(NewTime::Kept);
                if let Some(form) = form {
                    let [value, after @ ..] = rest else {
                        return Err(CommandError::text("ERR missing expire time"));
                    };
                    time = Some(NewTime::At(form.parse(value, now_ms, NAME)?));
                    rest = after;
                }
            } else {
                let word = String::from_utf8_lossy(&word[..word.len().min(128)]);
                return Err(CommandError::Text(format!("ERR unknown argument: {word}").into()));
            }
        }
        Err(arity())
    }

    fn is_met(&self, hash: Option<&Hash>) -> bool {
        let mut names = self.fields.iter().step_by(2);
        let is_there = |field: &&[u8]| hash.is_some_and(|hash| hash.contains(field));
        match self.presence {
            Presence::Any => true,
            Presence::None => !names.any(is_there),
            Presence::All => names.all(is_there),
        }
    }
}

fn hsetex(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, now_ms) = (args[1], ctx.keys.now_ms());
    let options = SetOptions::parse(args, now_ms)?;
    options.fields.iter().try_for_each(|arg| check_length(arg.len()))?;
    let before = ctx.keys.read::<Hash>(key)?;
    let was_there = before.is_some();
    if !options.is_met(before) {
        ctx.reply.integer(0);
        return Ok(());
    }
    let (pairs, _) = options.fields.as_chunks::<2>();
    let (mut changes, mut added) = (Changes::default(), 0);
    ctx.keys.upsert(key, |hash: &mut Hash| {
        for [field, value] in pairs {
            added += usize::from(match options.time {
                NewTime::Cleared => hash.set(field, value),
                NewTime::Kept | NewTime::At(_) => hash.set_keeping_time(field, value),
            });
            if let NewTime::At(at_ms) = options.time {
                changes.set_time(hash, field, Condition::All, at_ms, now_ms);
            }
        }
    })?;
    let event = match options.time {
        NewTime::At(_) if changes.deleted > 0 => Some("hdel"),
        NewTime::At(_) => Some("hexpire"),
        NewTime::Kept | NewTime::Cleared => None,
    };
    // The end of the key, if it has no field any more, is the last event.
    if event.is_some() {
        if !was_there && !ctx.keys.holds(key) {
            ctx.keys.came_and_went(key);
        }
        ctx.keys.happened_first(key, "hset");
    }
    let are_same = added == 0 && changes.deleted == 0;
    ctx.keys.changed_in(key, event.unwrap_or("hset"), || Touched::pairs(options.fields, are_same));
    ctx.reply.integer(1);
    Ok(())
}

/// `hash.expire key [field …]`: removes fields whose time has come. The server names the key, and logs the fields.
fn expire_due(ctx: &mut Context<'_, '_>, args: &[&[u8]]) -> Result<(), CommandError> {
    let (key, now_ms) = (args[1], ctx.keys.now_ms());
    let removed = ctx.keys.update(key, |hash: &mut Hash| {
        let due = match &args[2..] {
            [] => hash.due(now_ms, DUE_FIELDS),
            named => named.to_vec(),
        };
        let (mut removed, mut bytes) = (Vec::new(), 0);
        for field in due {
            if hash.time_of(field).is_none_or(|at_ms| at_ms > now_ms) {
                continue;
            }
            bytes += field.len();
            if bytes > DUE_BYTES && !removed.is_empty() && args.len() == 2 {
                break;
            }
            removed.push(field.to_vec());
        }
        removed.iter().for_each(|field| _ = hash.remove(field));
        removed
    })?;
    let removed = removed.unwrap_or_default();
    let names: Vec<&[u8]> = removed.iter().map(Vec::as_slice).collect();
    if !names.is_empty() {
        if args.len() == 2 {
            let logged: Vec<&[u8]> = [key].into_iter().chain(names.iter().copied()).collect();
            ctx.keys.log_instead(FIELDS_EXPIRE_NAME, &logged);
        }
        ctx.keys.changed_in(key, "hexpired", || Touched::fields(&names, false));
    }
    ctx.reply.count(names.len());
    Ok(())
}

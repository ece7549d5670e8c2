//! Structure of a catalogue file, checked while it is parsed: parsers report what opens, closes and
//! occurs, and each piece is checked immediately. So only items are kept, nothing nests deeper than
//! a catalogue does, and the first error ends the parsing.

use super::decimal::NumberError;
use super::error::{Fault, ItemName, Problem, clipped};
use super::key::{Key, Level, Origin, advice};
use super::place::ParserPosition;
use super::rules::{FoundRules, PartOfRule, whole};
use super::schedule::{FoundSchedule, PartOfRelease, moment_ms, unsold};
use super::weights::Weight;
use crate::catalogue::item::{ID_BYTES_MAX, Item, Stock};
use crate::catalogue::nesting::Lead;
use crate::catalogue::rules::{RULE_ITEMS_MAX, Scope};
use crate::catalogue::{Mode, SoldOut};

#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar<'t> {
    Null,
    Boolean,
    /// A number as written.
    Number(&'t str),
    Text(&'t str),
    /// A time, in formats that distinguish it from text.
    Moment(&'t str),
}

/// State of the parsing.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Open maps and lists, outermost first.
    open: Vec<Open>,
    /// Key of the next value.
    key: Option<Key>,
    item: PartOfItem,
    /// The nested table that is being read.
    table: Option<PartOfTable>,
    rule: PartOfRule,
    release: PartOfRelease,
    /// Key at the top that determined the origin.
    origin_key: Option<Key>,
    pub(super) found: Found,
}

/// Items of a table. Weights are stored apart, and are 0 in the items, until all are known.
#[derive(Debug, Default)]
pub(super) struct FoundItems {
    pub(super) items: Vec<Item>,
    pub(super) weights: Vec<Weight>,
    pub(super) places: Vec<ParserPosition>,
}

#[derive(Debug, Default)]
pub(super) struct FoundTable {
    pub(super) name: Box<str>,
    pub(super) list: FoundItems,
}

/// Contents of a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) origin: Option<Origin>,
    pub(super) mode: Mode,
    pub(super) sold_out: SoldOut,
    /// Whether there was a list of items.
    pub(super) list: bool,
    pub(super) first: FoundItems,
    pub(super) tables: Vec<FoundTable>,
    pub(super) leads: Vec<Lead>,
    pub(super) rules: FoundRules,
    pub(super) schedule: FoundSchedule,
    /// Unused settings: section, key, place.
    pub(super) unused: Vec<(Option<Key>, Key, ParserPosition)>,
}

#[derive(Debug)]
struct Open {
    level: Level,
    /// Bit set of the keys seen.
    seen: u64,
    place: ParserPosition,
}

/// The item that is being read.
#[derive(Debug, Default)]
struct PartOfItem {
    id: Option<Box<str>>,
    weight: Option<Weight>,
    stock: Option<Stock>,
    table: Option<Box<str>>,
}

/// The table that is being read.
#[derive(Debug, Default)]
struct PartOfTable {
    name: Option<Box<str>>,
    list: Option<FoundItems>,
}

impl Shape {
    pub(super) fn open_map(&mut self, place: ParserPosition) -> Result<(), Fault> {
        let level = match (self.level(), self.key.take()) {
            (None, _) => Level::Top,
            (Some(Level::Items(origin)), _) => Level::Item(origin),
            (Some(Level::Limits), _) => Level::Limit,
            (Some(Level::Guarantees), _) => Level::Guarantee,
            (Some(Level::Schedule), _) => Level::Release,
            (Some(Level::Tables), _) => Level::Table,
            (Some(_), Some(Key::SoldOut)) => Level::SoldOut,
            (Some(_), Some(Key::Pool)) => Level::Pool,
            (Some(_), Some(Key::Wal)) => Level::Wal,
            (Some(_), Some(Key::Grpc)) => Level::Grpc,
            (Some(level), key) => return Err(self.wrong_kind(level, key, "a map", place)),
        };
        self.open.push(Open { level, seen: 0, place });
        if level == Level::Table {
            self.table = Some(PartOfTable::default());
        }
        self.item = PartOfItem::default();
        self.rule = PartOfRule::default();
        self.release = PartOfRelease::default();
        Ok(())
    }

    pub(super) fn open_list(&mut self, place: ParserPosition) -> Result<(), Fault> {
        let key = self.key.take();
        let beside_items = match key {
            Some(Key::Limits) => Some(Level::Limits),
            Some(Key::Guarantees) => Some(Level::Guarantees),
            Some(Key::Of) => Some(Level::Of),
            Some(Key::Schedule) => Some(Level::Schedule),
            Some(Key::Tables) => Some(Level::Tables),
            _ => None,
        };
        if let Some(level) = beside_items {
            self.open.push(Open { level, seen: 0, place });
            self.rule.of = Some(Vec::new()).filter(|_| level == Level::Of);
            return Ok(());
        }
        let origin = match (self.level(), key) {
            (Some(_), Some(Key::Items)) => Origin::Tidemark,
            (Some(_), Some(Key::Catalog)) => Origin::Original,
            (level, key) => return Err(self.wrong_kind(level.unwrap_or(Level::Top), key, "a list", place)),
        };
        if let Some(table) = &mut self.table {
            table.list = Some(FoundItems::default());
            self.open.push(Open { level: Level::Items(origin), seen: 0, place });
            return Ok(());
        }
        if self.found.list {
            return Err(Fault::at(place, Problem::DuplicateKey { key: Key::Catalog.name() }));
        }
        self.found.list = true;
        self.open.push(Open { level: Level::Items(origin), seen: 0, place });
        Ok(())
    }

    /// Ends the innermost map or list.
    pub(super) fn close(&mut self) -> Result<(), Fault> {
        debug_assert!(self.key.is_none(), "each key has had its value");
        let Some(open) = self.open.pop() else { return Ok(()) };
        match open.level {
            Level::Item(origin) => self.end_item(origin, open.place),
            Level::Table => self.end_table(open.place),
            Level::Limit => {
                let part = std::mem::take(&mut self.rule);
                let ended = self.found.rules.end_limit(part, open.place);
                ended.map_err(|problem| Fault::at(open.place, problem))
            }
            Level::Guarantee => {
                let part = std::mem::take(&mut self.rule);
                let ended = self.found.rules.end_guarantee(part, open.place);
                ended.map_err(|problem| Fault::at(open.place, problem))
            }
            Level::Release => {
                let part = std::mem::take(&mut self.release);
                let ended = self.found.schedule.end_release(part, open.place);
                ended.map_err(|problem| Fault::at(open.place, problem))
            }
            Level::SoldOut if open.seen == 0 => Err(Fault::at(
                open.place,
                Problem::MissingKey { key: Key::Fallback.name(), advice: "name the item to fall back to" },
            )),
            _ => Ok(()),
        }
    }

    /// Returns whether the next scalar is a key, for parsers that do not distinguish keys from
    /// values.
    pub(super) fn expects_key(&self) -> bool {
        self.key.is_none() && !self.level().is_none_or(Level::is_list)
    }

    /// Takes a key of the innermost map.
    pub(super) fn key(&mut self, name: &str, place: ParserPosition) -> Result<(), Fault> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let level = open.level;
        let Some(key) = level.key(name) else {
            let problem = Problem::UnknownKey { key: clipped(name), advice: level.advice(name) };
            return Err(self.of_item(Fault::at(place, problem)));
        };
        debug_assert!((key as u32) < u64::BITS, "each key has a bit");
        let bit = 1_u64 << key as u32;
        if open.seen & bit != 0 {
            return Err(self.of_item(Fault::at(place, Problem::DuplicateKey { key: key.name() })));
        }
        open.seen |= bit;
        self.key = Some(key);
        if level == Level::Top { self.set_origin(key, place) } else { Ok(()) }
    }

    pub(super) fn scalar(&mut self, scalar: Scalar<'_>, place: ParserPosition) -> Result<(), Fault> {
        let level = self.level().unwrap_or(Level::Top);
        let Some(key) = self.key.take() else {
            if let (Level::Of, Scalar::Text(id), Some(of)) = (level, scalar, &mut self.rule.of) {
                return named(of, id).map_err(|problem| Fault::at(place, problem));
            }
            return Err(self.wrong_kind(level, None, &described(scalar), place));
        };
        self.value(level, key, scalar).map_err(|problem| self.of_item(Fault::at(place, problem)))?;
        if matches!(level, Level::Wal | Level::Grpc) || key == Key::WorkingDir {
            let section = match level {
                Level::Wal => Some(Key::Wal),
                Level::Grpc => Some(Key::Grpc),
                _ => None,
            };
            self.found.unused.push((section, key, place));
        }
        Ok(())
    }

    fn level(&self) -> Option<Level> {
        self.open.last().map(|open| open.level)
    }

    /// Determines the origin of the file from a key at the top.
    fn set_origin(&mut self, key: Key, place: ParserPosition) -> Result<(), Fault> {
        let by = *self.origin_key.get_or_insert(key);
        if by.origin() != key.origin() {
            return Err(Fault::at(place, Problem::MixedOrigins { key: key.name(), other: by.name() }));
        }
        self.found.origin = Some(key.origin());
        Ok(())
    }

    fn value(&mut self, level: Level, key: Key, scalar: Scalar<'_>) -> Result<(), Problem> {
        match (key, scalar) {
            (Key::Mode, Scalar::Text(word)) => self.found.mode = mode(word)?,
            (Key::SoldOut, Scalar::Text(word)) => self.found.sold_out = sold_out(word)?,
            (Key::Fallback, Scalar::Text(id)) if id.len() <= ID_BYTES_MAX => {
                self.found.sold_out = SoldOut::Fallback(id.into());
            }
            (Key::Table, Scalar::Text(name)) if name.len() <= ID_BYTES_MAX => {
                self.item.table = Some(name.into());
            }
            (Key::Name, Scalar::Text(name)) if name.len() <= ID_BYTES_MAX => {
                if let Some(table) = &mut self.table {
                    table.name = Some(name.into());
                }
            }
            (Key::Id | Key::ItemId, Scalar::Text(id)) => self.item.id = Some(id.into()),
            (Key::Weight | Key::Probability, Scalar::Number(text) | Scalar::Text(text)) => {
                let weight = Weight::parse(text).map_err(|error| unusable(key, text, error))?;
                self.item.weight = Some(weight);
            }
            (Key::Quantity, Scalar::Text("unlimited")) => self.item.stock = Some(Stock::Unlimited),
            (Key::Quantity, Scalar::Number(text)) => {
                let stock = stock(text, level).map_err(|error| unusable(key, text, error))?;
                self.item.stock = Some(stock);
            }
            (Key::Scope, Scalar::Text(word)) => self.rule.scope = scope(word)?,
            (
                Key::Draws | Key::Wins | Key::Per | Key::After | Key::SoftFrom | Key::SoftStep,
                Scalar::Number(text),
            ) => {
                let number = whole(text).map_err(|error| unusable(key, text, error))?;
                *self.rule.number(key) = Some(number);
            }
            (Key::Item, Scalar::Text(id)) if id.len() <= ID_BYTES_MAX => self.release.item = Some(id.into()),
            (Key::Unsold, Scalar::Text(word)) => {
                const WORDS: [&str; 2] = ["stays", "lapses"];
                let unknown = || unknown_word("what becomes of what is unsold,", word, &WORDS, &WORDS);
                self.release.unsold = unsold(word).ok_or_else(unknown)?;
            }
            (Key::From, Scalar::Text(text) | Scalar::Moment(text)) => {
                let moment = moment_ms(text).ok_or_else(|| wrong_value(key, &described(scalar)))?;
                self.release.from_ms = Some(moment);
            }
            (Key::Units | Key::From | Key::Every | Key::Times, Scalar::Number(text)) => {
                let number = whole(text).map_err(|error| unusable(key, text, error))?;
                *self.release.number(key) = Some(number);
            }
            // An empty section.
            (Key::Wal | Key::Grpc, Scalar::Null) | (Key::WorkingDir, _) => {}
            _ if matches!(level, Level::Wal | Level::Grpc) => {}
            _ => return Err(wrong_value(key, &described(scalar))),
        }
        Ok(())
    }

    fn end_item(&mut self, origin: Origin, place: ParserPosition) -> Result<(), Fault> {
        match std::mem::take(&mut self.item) {
            PartOfItem { id: Some(id), weight: Some(weight), stock: Some(stock), table: None } => {
                self.list().push(Item { id, weight: 0, stock }, weight, place);
                Ok(())
            }
            PartOfItem { id: Some(id), weight: Some(weight), stock: None, table: Some(table) } => {
                self.found.leads.push(Lead { item: id.clone(), table });
                self.list().push(Item { id, weight: 0, stock: Stock::Unlimited }, weight, place);
                Ok(())
            }
            part @ PartOfItem { stock: Some(_), table: Some(_), .. } => {
                Err(Fault::at(place, Problem::StockOfTable).of_item(self.item_name(&part)))
            }
            part => Err(Fault::at(place, part.missing(origin)).of_item(self.item_name(&part))),
        }
    }

    fn end_table(&mut self, place: ParserPosition) -> Result<(), Fault> {
        let missing = |key: Key, advice| Fault::at(place, Problem::MissingKey { key: key.name(), advice });
        let PartOfTable { name, list } = self.table.take().unwrap_or_default();
        let name = name.ok_or_else(|| missing(Key::Name, "give the table one of its own"))?;
        let list = list.ok_or_else(|| missing(Key::Items, "list the items of the table under it"))?;
        self.found.tables.push(FoundTable { name, list });
        Ok(())
    }

    /// Returns the items of the current table.
    fn list(&mut self) -> &mut FoundItems {
        self.table.as_mut().and_then(|table| table.list.as_mut()).unwrap_or(&mut self.found.first)
    }

    /// Adds the current item, if any, to a fault.
    fn of_item(&self, fault: Fault) -> Fault {
        match self.level() {
            Some(Level::Item(_) | Level::Items(_)) => fault.of_item(self.item_name(&self.item)),
            _ => fault,
        }
    }

    fn item_name(&self, part: &PartOfItem) -> ItemName {
        let list = self.table.as_ref().and_then(|table| table.list.as_ref()).unwrap_or(&self.found.first);
        ItemName { number: list.items.len() + 1, id: part.id.as_deref().map(clipped) }
    }

    /// Returns the fault of a value of the wrong type.
    fn wrong_kind(&self, level: Level, key: Option<Key>, found: &str, place: ParserPosition) -> Fault {
        let problem = match (key, level) {
            (Some(key), _) => wrong_value(key, found),
            (None, Level::Of) => wrong_value(Key::Of, found),
            (None, Level::Limits) => wrong_value(Key::Limits, found),
            (None, Level::Guarantees) => wrong_value(Key::Guarantees, found),
            (None, Level::Schedule) => wrong_value(Key::Schedule, found),
            (None, Level::Tables) => wrong_value(Key::Tables, found),
            (None, Level::Items(_)) => Problem::WrongKind {
                what: "an item",
                expected: "a map with an id, a weight and a quantity",
                found: found.into(),
            },
            (None, _) => Problem::WrongKind {
                what: "a catalogue",
                expected: "a map with \"items\"",
                found: found.into(),
            },
        };
        self.of_item(Fault::at(place, problem))
    }
}

impl FoundItems {
    fn push(&mut self, item: Item, weight: Weight, place: ParserPosition) {
        self.items.push(item);
        self.weights.push(weight);
        self.places.push(place);
    }
}

impl PartOfItem {
    /// Returns the problem of an incomplete item.
    fn missing(&self, origin: Origin) -> Problem {
        let (id, weight) = match origin {
            Origin::Tidemark => (Key::Id, Key::Weight),
            Origin::Original => (Key::ItemId, Key::Probability),
        };
        let (key, advice) = if self.id.is_none() {
            (id, "give the item one of its own")
        } else if self.weight.is_none() {
            (weight, "say how likely the item is, 0 if only a rule is to give it")
        } else {
            debug_assert!(self.stock.is_none(), "something is missing");
            (Key::Quantity, "say how many there are, or \"unlimited\"")
        };
        Problem::MissingKey { key: key.name(), advice }
    }
}

fn mode(word: &str) -> Result<Mode, Problem> {
    const WORDS: [&str; 2] = ["fixed-odds", "per-unit"];
    match word {
        "fixed-odds" => Ok(Mode::FixedOdds),
        "per-unit" => Ok(Mode::PerUnit),
        _ => Err(unknown_word("the mode", word, &WORDS, &WORDS)),
    }
}

fn sold_out(word: &str) -> Result<SoldOut, Problem> {
    const WORDS: [&str; 2] = ["renormalise", "no-prize"];
    const POSSIBLE: [&str; 3] = ["renormalise", "no-prize", "fallback: ID"];
    match word {
        "renormalise" => Ok(SoldOut::Renormalise),
        "no-prize" => Ok(SoldOut::NoPrize),
        _ => Err(unknown_word("the rule for what is sold out", word, &WORDS, &POSSIBLE)),
    }
}

fn unknown_word(what: &'static str, word: &str, words: &[&'static str], possible: &[&str]) -> Problem {
    Problem::UnknownWord { what, word: clipped(word), advice: advice(word, words.iter().copied(), possible) }
}

fn scope(word: &str) -> Result<Scope, Problem> {
    const WORDS: [&str; 2] = ["user", "pool"];
    match word {
        "user" => Ok(Scope::User),
        "pool" => Ok(Scope::Pool),
        _ => Err(unknown_word("the scope", word, &WORDS, &WORDS)),
    }
}

fn named(of: &mut Vec<Box<str>>, id: &str) -> Result<(), Problem> {
    if of.len() == RULE_ITEMS_MAX {
        return Err(Problem::TooManyNamed);
    }
    of.push(id.into());
    Ok(())
}

/// Parses a quantity. The original writes −1 for unlimited; elsewhere −1 is an error.
fn stock(text: &str, level: Level) -> Result<Stock, NumberError> {
    if text == "-1" && level == Level::Item(Origin::Original) {
        return Ok(Stock::Unlimited);
    }
    whole(text).map(Stock::Limited)
}

fn unusable(key: Key, text: &str, error: NumberError) -> Problem {
    Problem::Number { key: key.name(), spelled: clipped(text), error }
}

/// Returns the problem of a value that its key does not allow.
fn wrong_value(key: Key, found: &str) -> Problem {
    let (what, expected) = match key {
        Key::Mode => ("the mode", "the text \"fixed-odds\" or \"per-unit\""),
        Key::SoldOut => (
            "the rule for what is sold out",
            "the text \"renormalise\" or \"no-prize\", or a map with \"fallback\"",
        ),
        Key::Items => ("\"items\"", "a list of items"),
        Key::Limits => ("\"limits\"", "a list of maps with \"draws\", or with \"wins\" and \"of\""),
        Key::Guarantees => ("\"guarantees\"", "a list of maps with \"after\" and \"of\""),
        Key::Of => ("\"of\"", "a list of ids: texts, in quotes if they look like something else"),
        Key::Scope => ("a scope", "the text \"user\" or \"pool\""),
        Key::Draws | Key::Wins | Key::After | Key::SoftFrom | Key::SoftStep => {
            ("a number of a rule", "a whole number")
        }
        Key::Per | Key::Every => ("a window", "a whole number of milliseconds"),
        Key::Schedule => ("\"schedule\"", "a list of maps with \"item\", \"units\" and \"from\""),
        Key::Tables => ("\"tables\"", "a list of maps with \"name\" and \"items\""),
        Key::Table | Key::Name => {
            ("the name of a table", "text of at most 255 bytes, in quotes if it looks like something else")
        }
        Key::Item => (
            "the item of a release",
            "an id: text of at most 255 bytes, in quotes if it looks like something else",
        ),
        Key::Units | Key::Times => ("a number of a release", "a whole number"),
        Key::From => (
            "the beginning of a release",
            "a moment such as \"2026-12-24T18:00:00+01:00\", or milliseconds since 1970",
        ),
        Key::Unsold => ("what becomes of what is unsold", "the text \"stays\" or \"lapses\""),
        Key::Catalog => ("\"catalog\"", "a list of items"),
        Key::Fallback => (
            "the item to fall back to",
            "an id: text of at most 255 bytes, in quotes if it looks like something else",
        ),
        Key::Id | Key::ItemId => ("an id", "text, in quotes if it looks like something else"),
        Key::Weight => ("a weight", "a number such as 10 or 0.5, or a text such as \"12.5%\""),
        Key::Probability => ("a probability", "a number such as 10 or 0.5"),
        Key::Quantity => ("a quantity", "a whole number, or the text \"unlimited\""),
        Key::Pool => ("\"pool\"", "a map with \"catalog\""),
        Key::Wal => ("\"wal\"", "a map of settings"),
        Key::Grpc => ("\"grpc\"", "a map of settings"),
        Key::WorkingDir
        | Key::MaxFileSize
        | Key::MaxRequestBufferSize
        | Key::Formatter
        | Key::FlushAfterDraws
        | Key::Enabled
        | Key::ListenAddress => ("a setting", "a single value"),
    };
    Problem::WrongKind { what, expected, found: found.into() }
}

/// Describes a value for messages.
fn described(scalar: Scalar<'_>) -> Box<str> {
    match scalar {
        Scalar::Null => "nothing".into(),
        Scalar::Boolean => "true or false".into(),
        Scalar::Number(text) => format!("the number {}", clipped(text)).into(),
        Scalar::Text(text) => format!("the text {:?}", clipped(text)).into(),
        Scalar::Moment(text) => format!("the moment {}", clipped(text)).into(),
    }
}

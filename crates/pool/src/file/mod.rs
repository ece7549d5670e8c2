//! Catalogues in JSON, YAML and TOML files. Requires the feature `files`.
//!
//! The same catalogue in YAML, in TOML and in JSON:
//!
//! ```
//! use tidemark_pool::file::{CatalogueFile, FileFormat};
//!
//! let yaml = r#"
//! mode: fixed-odds          # or per-unit; this is the default
//! sold_out:                 # or renormalise, the default, or no-prize
//!   fallback: sticker
//! items:
//!   - id: car
//!     weight: 0.5           # or 50 against 9950 below, or "0.5%" against "99.5%"
//!     quantity: 3
//!   - id: sticker
//!     weight: 99.5
//!     quantity: unlimited
//! "#;
//!
//! let toml = r#"
//! mode = "fixed-odds"
//! sold_out = { fallback = "sticker" }
//!
//! [[items]]
//! id = "car"
//! weight = 0.5
//! quantity = 3
//!
//! [[items]]
//! id = "sticker"
//! weight = 99.5
//! quantity = "unlimited"
//! "#;
//!
//! let json = r#"{
//!   "mode": "fixed-odds",
//!   "sold_out": {"fallback": "sticker"},
//!   "items": [
//!     {"id": "car", "weight": 0.5, "quantity": 3},
//!     {"id": "sticker", "weight": 99.5, "quantity": "unlimited"}
//!   ]
//! }"#;
//!
//! let catalogue = CatalogueFile::parse(yaml, FileFormat::Yaml)?.catalogue;
//! assert_eq!(CatalogueFile::parse(toml, FileFormat::Toml)?.catalogue, catalogue);
//! assert_eq!(CatalogueFile::parse(json, FileFormat::Json)?.catalogue, catalogue);
//!
//! let weights: Vec<u64> = catalogue.items().iter().map(|item| item.weight).collect();
//! assert_eq!(weights, [5, 995]);
//! # Ok::<(), tidemark_pool::file::FileError>(())
//! ```
//!
//! # Contents of a file
//!
//! | key | value | default |
//! |---|---|---|
//! | `mode` | [`Mode`]: `fixed-odds` or `per-unit` | `fixed-odds` |
//! | `sold_out` | [`SoldOut`](crate::SoldOut): `renormalise`, `no-prize` or a map | `renormalise` |
//! | `limits` | list of limits, see [`Limit`](crate::Limit) | none |
//! | `guarantees` | list of guarantees, see [`Guarantee`](crate::Guarantee) | none |
//! | `schedule` | list of releases, see [`Release`](crate::Release) | none |
//! | `items` | list of items | required |
//! | `tables` | list of nested tables, each with `name` and `items` | none |
//!
//! The map of `sold_out` has the key `fallback` with the id of an item. Ids are unique over all
//! tables.
//!
//! An item has no defaults, so that a forgotten line does not make an expensive prize unlimited:
//!
//! | key | value |
//! |---|---|
//! | `id` | text, which may need quotes in YAML: `id: 100` is a number, `id: "100"` an id |
//! | `weight` | number from 0, or the same as text, or text with a per cent sign |
//! | `quantity` | integer from 0, or `unlimited` |
//! | `table` | instead of `quantity`: name of a nested table, which gives one of its items |
//!
//! A limit has `draws`, or `wins` and `of`; a guarantee has `after` and `of`:
//!
//! | key | value |
//! |---|---|
//! | `draws` | number of draws of a user |
//! | `wins` | number of wins of a user, of the items in `of` |
//! | `per` | window in milliseconds; without it, the limit never resets |
//! | `after` | number of draws without an item in `of`, before one of these is guaranteed |
//! | `of` | list of ids |
//! | `scope` | whose draws count: `user`, the default, or `pool` |
//! | `soft_from`, `soft_step` | growing odds before the guarantee; see [`Soft`](crate::Soft) |
//!
//! A release has `item`, `units` and `from`; with windows also `every`:
//!
//! | key | value |
//! |---|---|
//! | `item` | id of a limited item |
//! | `units` | number of units in all windows together, spread evenly |
//! | `from` | start: a time such as `2026-12-24T18:00:00+01:00`, or milliseconds since 1970 |
//! | `every` | length of a window in milliseconds; without it, all units come at `from` |
//! | `times` | number of windows; 1 by default |
//! | `unsold` | what happens to units left when a window ends: `stays`, the default, or `lapses` |
//!
//! # Weights
//!
//! A weight is exactly the decimal number that is written: 0.1 is one tenth. All weights of a table
//! are multiplied by the smallest power of ten that makes them integers, and by nothing else: 0.5
//! and 12.25 become 50 and 1225, and integers stay as they are. The odds do not change, and each
//! integer is the number in the file with its point moved.
//!
//! Weights in per cent are odds. Either all weights are in per cent (except 0) or none. They must
//! add up to 100 %, and require `fixed-odds`. 12.5 % and 87.5 % become 125 and 875.
//!
//! # Files of the original
//!
//! Configurations of the system that these pools are modelled on are recognised: the YAML form with
//! `pool.catalog`, `working_dir`, `wal` and `grpc`, and the older JSON form with `catalog`, whose
//! items have `item_id`, `quantity` (−1 if unlimited) and `probability`. Their catalogue is read,
//! [`CatalogueFile::origin`] is set, and [`CatalogueFile::unused`] lists the settings that are not
//! used.
//!
//! # Limits
//!
//! A text has at most [`TEXT_BYTES_MAX`] bytes, or a limit set by the caller. JSON and YAML are
//! parsed as streams: only the items are kept, and the first error ends the parsing. TOML's parser
//! builds a tree of the whole text first. This takes about 40 bytes of memory for each byte of
//! ordinary items, and up to 230 for malicious texts: for texts from untrusted sources, give
//! [`CatalogueFile::parse_up_to`] a suitable limit. YAML aliases are refused, and the depth of
//! nesting is that of a catalogue.
//!
//! Use JSON for catalogues of a million items: it is parsed about four times as fast as the others.

mod decimal;
mod error;
mod format;
mod json;
mod key;
mod place;
mod rules;
mod schedule;
mod shape;
mod suggestion;
mod toml;
mod weights;
mod writer;
mod yaml;

pub use decimal::NumberError;
pub use error::{FileError, Problem};
pub use format::{FileFormat, UnknownFormat};
pub use key::Origin;
pub use place::Position;

use crate::catalogue::item::Item;
use crate::catalogue::nesting::{NestingError, Table};
use crate::catalogue::{Catalogue, CatalogueError, Mode};
use error::{Fault, ItemName, clipped};
use key::Key;
use place::ParserPosition;
use shape::{Found, FoundItems, FoundTable, Shape};
use std::fmt;

/// Maximum length of a text for [`CatalogueFile::parse`], in bytes.
pub const TEXT_BYTES_MAX: usize = 256 << 20;

/// A parsed catalogue file.
///
/// ```
/// use tidemark_pool::file::{CatalogueFile, FileFormat};
///
/// let text = "items:\n- {id: car, weight: 1, quantity: 3}\n- {id: mug, wieght: 9, quantity: 100}\n";
/// assert_eq!(
///     CatalogueFile::parse(text, FileFormat::Yaml).unwrap_err().to_string(),
///     "line 3, column 13: item 2 (\"mug\"): the key \"wieght\" is not known: did you mean \"weight\"?",
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogueFile {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// Origin of the file.
    pub origin: Origin,
    /// Settings of the original that are not used here, in the order of the text; empty for
    /// Tidemark's files.
    pub unused: Vec<UnusedSetting>,
}

impl CatalogueFile {
    /// Parses a text of at most [`TEXT_BYTES_MAX`]. O(n).
    ///
    /// # Errors
    /// The first error in the text.
    pub fn parse(text: &str, format: FileFormat) -> Result<Self, FileError> {
        Self::parse_up_to(text, format, TEXT_BYTES_MAX)
    }

    /// As [`parse`](Self::parse), with a limit in bytes.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_up_to(text: &str, format: FileFormat, bytes_max: usize) -> Result<Self, FileError> {
        // Some editors write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let fault = |fault: Fault| fault.in_text(text);
        if text.len() > bytes_max {
            return Err(fault(Fault::nowhere(Problem::TooLong { bytes: text.len(), bytes_max })));
        }
        let mut shape = Shape::default();
        match format {
            FileFormat::Json => json::read(text, &mut shape),
            FileFormat::Yaml => yaml::read(text, &mut shape),
            FileFormat::Toml => toml::read(text, &mut shape),
        }
        .map_err(fault)?;
        let mut found = shape.found;
        let origin = found.origin.unwrap_or(Origin::Tidemark);
        let unused = std::mem::take(&mut found.unused);
        let catalogue = catalogue(found, origin).map_err(fault)?;
        let unused = unused.into_iter().map(|(section, key, place)| UnusedSetting {
            section: section.map(Key::name),
            key: key.name(),
            position: place.position(text),
        });
        Ok(Self { catalogue, origin, unused: unused.collect() })
    }

    /// As [`parse`](Self::parse), for bytes that may not be UTF-8.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_bytes(bytes: &[u8], format: FileFormat) -> Result<Self, FileError> {
        let text = str::from_utf8(bytes).map_err(|error| {
            let problem = Problem::NotUtf8 { valid_up_to: error.valid_up_to() };
            Fault::nowhere(problem).in_text("")
        })?;
        Self::parse(text, format)
    }

    /// As [`parse_bytes`](Self::parse_bytes), with the [limit of a
    /// server](FileFormat::served_bytes_max).
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_served(bytes: &[u8], format: FileFormat) -> Result<Self, FileError> {
        if bytes.len() > format.served_bytes_max() {
            return Err(Fault::nowhere(Problem::NotServed { format }).in_text(""));
        }
        Self::parse_bytes(bytes, format)
    }

    /// Writes a catalogue as text. Parsing it gives an equal catalogue.
    ///
    /// ```
    /// use tidemark_pool::file::{CatalogueFile, FileFormat};
    /// use tidemark_pool::{Catalogue, Item};
    ///
    /// let catalogue = Catalogue::new(vec![Item::limited("car", 1, 3), Item::unlimited("mug", 99)]).unwrap();
    /// assert_eq!(
    ///     CatalogueFile::to_text(&catalogue, FileFormat::Yaml),
    ///     r#"mode: fixed-odds
    /// sold_out: renormalise
    /// items:
    ///   - id: "car"
    ///     weight: 1
    ///     quantity: 3
    ///   - id: "mug"
    ///     weight: 99
    ///     quantity: "unlimited"
    /// "#,
    /// );
    /// ```
    pub fn to_text(catalogue: &Catalogue, format: FileFormat) -> String {
        writer::text(catalogue, format)
    }
}

/// A setting that is not used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedSetting {
    /// Name of its map, if it is in one.
    pub section: Option<&'static str>,
    /// Its name.
    pub key: &'static str,
    /// Position of its value.
    pub position: Position,
}

impl fmt::Display for UnusedSetting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.position)?;
        if let Some(section) = self.section {
            write!(formatter, "{section}.")?;
        }
        write!(formatter, "{} is not used here", self.key)
    }
}

/// Builds the catalogue from the parsed parts.
fn catalogue(found: Found, origin: Origin) -> Result<Catalogue, Fault> {
    let Found { mode, sold_out, list, mut first, mut tables, leads, rules, schedule, .. } = found;
    if !list {
        let key = if origin == Origin::Original { Key::Catalog } else { Key::Items };
        return Err(Fault::nowhere(Problem::MissingKey {
            key: key.name(),
            advice: "list the items under it",
        }));
    }
    if mode == Mode::PerUnit && !tables.is_empty() {
        return Err(Fault::nowhere(CatalogueError::from(NestingError::PerUnit).into()));
    }
    let finest = weigh(&mut first, mode)?;
    let mut places = std::mem::take(&mut first.places);
    let place = |places: &[ParserPosition], position: usize| places.get(position).copied();
    // The message contains the item itself.
    let fault = |places: &[ParserPosition], error: CatalogueError| Fault {
        place: item_of(&error).and_then(|position| place(places, position)),
        ..Fault::nowhere(error.into())
    };
    let catalogue = Catalogue::with(first.items, mode, sold_out).map_err(|error| match (error, finest) {
        (CatalogueError::WeightOverflow { number, .. }, Some((position, item))) => {
            let problem = weights::too_many_digits(first.weights[position], number - 1);
            Fault { place: place(&places, position), ..Fault::nowhere(problem).of_item(item) }
        }
        (error, _) => fault(&places, error),
    })?;
    for table in &mut tables {
        weigh(&mut table.list, mode)?;
        places.append(&mut table.list.places);
    }
    let tables = tables.into_iter().map(|FoundTable { name, list }| Table { name, items: list.items });
    let catalogue = catalogue.nested(tables.collect(), &leads).map_err(|error| fault(&places, error))?;
    let (rules, rule_places) = rules.rules()?;
    let catalogue = catalogue.ruled(rules).map_err(|error| match error {
        CatalogueError::Rule(error) => rule_places.fault(error),
        error => Fault::nowhere(error.into()),
    })?;
    let (schedule, release_places) = schedule.schedule()?;
    catalogue.scheduled(schedule).map_err(|error| match error {
        CatalogueError::Schedule(error) => release_places.fault(error),
        error => fault(&places, error),
    })
}

/// Converts the weights of a table to integers. Returns the item whose weight has the most digits
/// after the point, if any weight has some.
fn weigh(list: &mut FoundItems, mode: Mode) -> Result<Option<(usize, ItemName)>, Fault> {
    let name = |items: &[Item], position: usize| ItemName {
        number: position + 1,
        id: items.get(position).map(|item| clipped(&item.id)),
    };
    let whole = weights::whole(&list.weights, mode).map_err(|(position, problem)| Fault {
        place: position.and_then(|position| list.places.get(position).copied()),
        item: position.map(|position| name(&list.items, position)),
        ..Fault::nowhere(problem)
    })?;
    for (item, weight) in list.items.iter_mut().zip(whole.weights) {
        item.weight = weight;
    }
    Ok(whole.finest.map(|position| (position, name(&list.items, position))))
}

/// Returns the index of the item that an error concerns.
fn item_of(error: &CatalogueError) -> Option<usize> {
    match error {
        CatalogueError::EmptyId { number }
        | CatalogueError::IdTooLong { number, .. }
        | CatalogueError::ControlCharacter { number, .. }
        | CatalogueError::DuplicateId { number, .. }
        | CatalogueError::QuantityTooLarge { number, .. }
        | CatalogueError::WeightOverflow { number, .. }
        | CatalogueError::UnlimitedTickets { number, .. } => number.checked_sub(1),
        _ => None,
    }
}

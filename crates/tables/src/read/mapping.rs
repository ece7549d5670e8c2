//! Which columns of a table are the key, the time, the value and the labels.

use super::template::{Piece, Template};
use super::{ReadError, TimeFormat};
use crate::columns;
use crate::unit::Unit;

/// What a point without a value becomes: an empty field, `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Nulls {
    /// `NaN`, as other programs write it.
    #[default]
    Nan,
    /// No point.
    Skip,
}

/// How the columns of a table are understood.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// Key of the series.
    pub key: Template,
    /// Column of times; without one, that of the table's own columns of times that is there.
    pub time: Option<String>,
    /// What the column of times has; without one, what its type or its name says.
    pub time_format: Option<TimeFormat>,
    /// Column of values.
    pub value: String,
    /// Labels with their values; without any, the columns whose names begin with `label_`.
    pub labels: Vec<(Vec<u8>, Template)>,
    /// Unit of the times that are returned; without one, that of the table, and milliseconds for texts.
    pub unit: Option<Unit>,
    /// What a point without a value becomes.
    pub nulls: Nulls,
}

impl Default for Mapping {
    fn default() -> Self {
        Self {
            key: Template::column(columns::KEY),
            time: None,
            time_format: None,
            value: columns::VALUE.to_owned(),
            labels: Vec::new(),
            unit: None,
            nulls: Nulls::Nan,
        }
    }
}

/// Most columns that are read.
const COLUMNS_MAX: usize = 1024;

/// A mapping for a table whose columns are known. Columns are counted in the order in which they are wanted.
#[derive(Debug)]
pub(super) struct Plan {
    /// Names of the wanted columns.
    pub(super) wanted: Vec<Vec<u8>>,
    /// Key of the series.
    pub(super) key: Vec<Piece<usize>>,
    /// Column of times.
    pub(super) time: usize,
    /// What it has, if that is known.
    pub(super) time_format: Option<TimeFormat>,
    /// Column of values.
    pub(super) value: usize,
    /// Labels with their values, in the order of their names.
    pub(super) labels: Vec<(Vec<u8>, Vec<Piece<usize>>)>,
    /// Whether the columns of labels are those that the table has.
    pub(super) finds_labels: bool,
    /// Unit of the times that are returned, if it was asked for.
    pub(super) unit: Option<Unit>,
    /// What a point without a value becomes.
    pub(super) nulls: Nulls,
}

impl Plan {
    /// Finds the columns in the header of a table.
    pub(super) fn new(mapping: &Mapping, header: &[&[u8]]) -> Result<Self, ReadError> {
        let mut wanted: Vec<Vec<u8>> = Vec::new();
        let mut place = |name: &[u8]| -> Result<usize, ReadError> {
            match header.iter().filter(|known| **known == name).count() {
                0 => return Err(ReadError::Table(missing(name, header))),
                1 => {}
                _ => return Err(ReadError::Table(format!("there are several columns {}", shown(name)))),
            }
            if let Some(at) = wanted.iter().position(|known| known == name) {
                return Ok(at);
            }
            if wanted.len() == COLUMNS_MAX {
                return Err(ReadError::Table(format!("there are more than {COLUMNS_MAX} columns of labels")));
            }
            wanted.push(name.to_vec());
            Ok(wanted.len() - 1)
        };
        let (time, named) = match &mapping.time {
            Some(name) => (name.clone(), time_format_of(name)),
            None => own_time(header)?,
        };
        let key = mapping.key.resolve(|name| place(name.as_bytes()))?;
        let (time, value) = (place(time.as_bytes())?, place(mapping.value.as_bytes())?);
        let mut labels = Vec::new();
        for (name, template) in &mapping.labels {
            labels.push((name.clone(), template.resolve(|name| place(name.as_bytes()))?));
        }
        if mapping.labels.is_empty() {
            for name in header {
                if let Some(label) =
                    name.strip_prefix(columns::LABEL.as_bytes()).filter(|label| !label.is_empty())
                {
                    labels.push((label.to_vec(), vec![Piece::Column(place(name)?)]));
                }
            }
        }
        labels.sort_by(|(one, _), (other, _)| one.cmp(other));
        if let Some(pair) = labels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(ReadError::Table(format!("the label {} is given twice", shown(&pair[0].0))));
        }
        Ok(Self {
            wanted,
            key,
            time,
            time_format: mapping.time_format.or(named),
            value,
            labels,
            finds_labels: mapping.labels.is_empty(),
            unit: mapping.unit,
            nulls: mapping.nulls,
        })
    }

    /// Adds the column of a label that the first row did not have; `false` if there are too many columns.
    pub(super) fn add_label(&mut self, column: &str) -> bool {
        let Some(label) = column.strip_prefix(columns::LABEL).filter(|label| !label.is_empty()) else {
            return true;
        };
        if self.wanted.len() == COLUMNS_MAX {
            return false;
        }
        let label = (label.as_bytes().to_vec(), vec![Piece::Column(self.wanted.len())]);
        let at = self.labels.partition_point(|(name, _)| *name < label.0);
        self.labels.insert(at, label);
        self.wanted.push(column.as_bytes().to_vec());
        true
    }

    /// Returns the unit of the times that are returned, for a column of times with this unit of its own.
    pub(super) fn unit(&self, own: Option<Unit>) -> Unit {
        self.unit.or(own).unwrap_or(Unit::Milliseconds)
    }
}

/// Finds the one column of times that this crate writes.
fn own_time(header: &[&[u8]]) -> Result<(String, Option<TimeFormat>), ReadError> {
    let names = std::iter::once(columns::TIME.to_owned()).chain(Unit::ALL.map(columns::time_in));
    let mut found = names.filter(|name| header.contains(&name.as_bytes()));
    match (found.next(), found.next()) {
        (Some(name), None) => {
            let format = time_format_of(&name);
            Ok((name, format))
        }
        (None, _) => Err(ReadError::Table(format!(
            "there is no column time, time_s, time_ms, time_us or time_ns{}; name the column of times",
            known(header)
        ))),
        (Some(one), Some(other)) => Err(ReadError::Table(format!(
            "there are the columns {one} and {other}; name the column of times"
        ))),
    }
}

/// What the name of a column of times says about it.
fn time_format_of(name: &str) -> Option<TimeFormat> {
    Unit::ALL.into_iter().find(|unit| columns::time_in(*unit) == name).map(TimeFormat::Unix)
}

/// Returns a name in quotes, on one line.
fn shown(name: &[u8]) -> String {
    format!("\"{}\"", name.escape_ascii())
}

fn missing(name: &[u8], header: &[&[u8]]) -> String {
    format!("there is no column {}{}", shown(name), known(header))
}

/// Lists the first columns.
fn known(header: &[&[u8]]) -> String {
    const SHOWN: usize = 20;
    if header.is_empty() {
        return String::new();
    }
    let names: Vec<_> = header.iter().take(SHOWN).map(|name| shown(name)).collect();
    format!("; there are {}{}", names.join(", "), if header.len() > SHOWN { ", …" } else { "" })
}

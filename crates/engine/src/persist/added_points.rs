//! Points that a record has added to one series, as a change of its own.

use crate::command::{self, Command};
use crate::persist::points::PointsRun;
use crate::value::{Definition, POLICIES, Unit};
use crate::wire::reply::format_double;
use tidemark_series::{DuplicatePolicy, Ignore};

/// Points that were added to one series.
#[derive(Debug, Clone)]
pub struct AddedPoints {
    db: u8,
    key: Vec<u8>,
    definition: Option<Definition>,
    policy: Option<DuplicatePolicy>,
    times: Vec<i64>,
    values: Vec<f64>,
}

/// A command with the same effect: its row and its arguments, without the name.
pub type EqualCommand = (&'static Command, Vec<Vec<u8>>);

impl AddedPoints {
    pub(crate) fn of(db: u8, run: PointsRun<'_>) -> Self {
        let PointsRun { key, definition, policy, times, values } = run;
        Self { db, key: key.to_vec(), definition, policy, times: times.to_vec(), values: values.to_vec() }
    }

    /// Returns the database.
    pub fn db(&self) -> u8 {
        self.db
    }

    /// Returns the key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the times and values of the points, in the order in which they were added.
    pub fn points(&self) -> impl Iterator<Item = (i64, f64)> {
        self.times.iter().copied().zip(self.values.iter().copied())
    }

    pub(crate) fn run(&self) -> PointsRun<'_> {
        PointsRun {
            key: &self.key,
            definition: self.definition.clone(),
            policy: self.policy,
            times: &self.times,
            values: &self.values,
        }
    }

    /// Returns the row of the command that adds one point, for what all such commands share.
    pub fn command() -> &'static Command {
        command::find_logged("ts.add").expect("the table has it")
    }

    /// Returns commands with the same effect: `TS.ADD` for a point with options or a single one,
    /// `TS.MADD` for several.
    pub fn commands(&self) -> Vec<EqualCommand> {
        let madd = command::find_logged("ts.madd").expect("the table has it");
        let mut points: Vec<[Vec<u8>; 3]> = self
            .points()
            .map(|(time, value)| {
                [self.key.clone(), time.to_string().into_bytes(), format_double(value).into()]
            })
            .collect();
        let mut commands = Vec::new();
        if let Some(definition) = &self.definition {
            // The point that creates the series needs no policy.
            let first = points.remove(0);
            commands.push((Self::command(), first.into_iter().chain(words(definition)).collect()));
        }
        match self.policy.and_then(|policy| POLICIES.iter().find(|(_, known)| *known == policy)) {
            Some((name, _)) => {
                let option = [b"ON_DUPLICATE".to_vec(), name.as_bytes().to_vec()];
                let with = |point: [Vec<u8>; 3]| point.into_iter().chain(option.clone()).collect();
                commands.extend(points.into_iter().map(|point| (Self::command(), with(point))));
            }
            None if points.len() > 1 => commands.push((madd, points.into_iter().flatten().collect())),
            None => commands.extend(points.into_iter().map(|point| (Self::command(), point.to_vec()))),
        }
        commands
    }
}

/// Returns the options that give a new series its definition.
fn words(definition: &Definition) -> Vec<Vec<u8>> {
    let (default, mut words) = (Definition::default(), Vec::new());
    let mut add = |option: &[&str]| words.extend(option.iter().map(|word| word.as_bytes().to_vec()));
    if definition.retention != default.retention {
        add(&["RETENTION", &definition.retention.to_string()]);
    }
    if !definition.is_compressed {
        add(&["ENCODING", "UNCOMPRESSED"]);
    }
    if definition.chunk_bytes != default.chunk_bytes {
        add(&["CHUNK_SIZE", &definition.chunk_bytes.to_string()]);
    }
    if let Some((name, _)) = POLICIES.iter().find(|(_, policy)| Some(*policy) == definition.policy) {
        add(&["DUPLICATE_POLICY", name]);
    }
    if definition.ignore != Ignore::default() {
        add(&["IGNORE", &definition.ignore.time.to_string(), &format_double(definition.ignore.value)]);
    }
    if definition.unit != Unit::default() {
        add(&["UNIT", definition.unit.name()]);
    }
    if definition.labels.iter().next().is_some() {
        add(&["LABELS"]);
        for (name, value) in definition.labels.iter() {
            words.extend([name.to_vec(), value.to_vec()]);
        }
    }
    words
}

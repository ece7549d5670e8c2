//! Series seen through lenses.

use super::Keys;
use crate::command::parse::shown;
use crate::error::CommandError;
use crate::keyspace::Entry;
use crate::value::{Lens, Object, TimeSeries, Unit, series};
use tidemark_series::{Transform, View};

/// Most lenses over each other.
const DEPTH_MAX: usize = 16;

/// Most series and lenses that one key leads to.
const KEYS_MAX: usize = 64;

/// What a key shows: its series, or that of a lens through its transforms.
#[derive(Debug)]
pub(crate) struct Seen<'k> {
    /// The series that is seen, or the one below all lenses.
    pub(crate) series: &'k TimeSeries,
    pub(crate) view: View<&'k series::Points>,
}

impl Seen<'_> {
    /// Returns the unit of its times.
    pub(crate) fn unit(&self) -> Unit {
        self.series.definition().unit
    }
}

/// A way from a key to what it shows.
struct Sight<'s> {
    /// A key that does not have its lens yet.
    coming: Option<&'s [u8]>,
    /// Keys that may still be looked at.
    left: usize,
}

impl Keys<'_> {
    /// Returns what a key shows; `None` if it does not exist. The caller has locked all keys that its
    /// value links to. O(lenses and their transforms).
    ///
    /// # Errors
    /// The key, or one that a lens sees, is of another type; a lens sees a key that does not exist, or
    /// itself.
    pub(crate) fn see(&self, key: &[u8]) -> Result<Option<Seen<'_>>, CommandError> {
        if self.peek(key).is_none() {
            return Ok(None);
        }
        Sight { coming: None, left: KEYS_MAX }.along(self, key, 0).map(Some)
    }

    /// Returns the lens that is about to be at `name`, made by `make` for the unit of its source, after
    /// a look at all keys that it sees.
    ///
    /// # Errors
    /// As for [`Keys::see`]; those of `make`.
    pub(crate) fn see_for(
        &self,
        name: &[u8],
        source: &[u8],
        make: impl FnOnce(Unit) -> Result<Lens, CommandError>,
    ) -> Result<Lens, CommandError> {
        let mut sight = Sight { coming: Some(name), left: KEYS_MAX };
        let unit = sight.along(self, source, 1)?.unit();
        let lens = make(unit)?;
        lens.keys().skip(1).try_for_each(|key| sight.beside(self, key, unit, 1).map(|_| ()))?;
        Ok(lens)
    }
}

impl Sight<'_> {
    fn along<'k>(&mut self, keys: &'k Keys<'_>, key: &[u8], depth: usize) -> Result<Seen<'k>, CommandError> {
        if self.coming == Some(key) {
            return Err(refused(format!("the lens would see itself, by {}", shown(key))));
        }
        if depth > DEPTH_MAX {
            return Err(refused(format!(
                "more than {DEPTH_MAX} lenses over each other, up to {}, or one that sees itself",
                shown(key)
            )));
        }
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            refused(format!("the lens leads to more than {KEYS_MAX} keys, or sees itself by {}", shown(key)))
        })?;
        let entry = keys.entry(key);
        match entry.and_then(Entry::object) {
            Some(Object::Series(series)) => Ok(Seen { series, view: View::new(series.points(), Vec::new()) }),
            Some(Object::Lens(lens)) => self.through(keys, lens, depth),
            None if entry.is_none() => {
                Err(refused(format!("there is no {} for the lens to see", shown(key))))
            }
            _ if depth == 0 => Err(CommandError::WrongType),
            _ => Err(refused(format!("{} is neither a series nor a lens", shown(key)))),
        }
    }

    /// Looks along a key that a lens reads beside a series with this unit.
    fn beside<'k>(
        &mut self,
        keys: &'k Keys<'_>,
        key: &[u8],
        unit: Unit,
        depth: usize,
    ) -> Result<Seen<'k>, CommandError> {
        let seen = self.along(keys, key, depth)?;
        if seen.unit() != unit {
            let other = seen.unit().name();
            return Err(refused(format!(
                "the times of {} are in {other}, those of the source in {}",
                shown(key),
                unit.name()
            )));
        }
        Ok(seen)
    }

    fn through<'k>(
        &mut self,
        keys: &'k Keys<'_>,
        lens: &Lens,
        depth: usize,
    ) -> Result<Seen<'k>, CommandError> {
        let Seen { series, view } = self.along(keys, lens.source(), depth + 1)?;
        let transforms =
            lens.transforms(series.definition().unit).map_err(|error| refused(error.to_string()))?;
        let mut seen = Vec::with_capacity(transforms.len());
        for transform in transforms {
            seen.push(match transform {
                Transform::Join { expression, other, age } => {
                    let beside = self.beside(keys, &other, series.definition().unit, depth + 1)?;
                    Transform::Join { expression, other: beside.view, age }
                }
                alone => alone.alone().expect("all others read no series of their own"),
            });
        }
        Ok(Seen { series, view: view.through(seen) })
    }
}

fn refused(problem: String) -> CommandError {
    CommandError::Text(format!("ERR LENS: {problem}").into())
}

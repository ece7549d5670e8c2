//! Schedule in a catalogue file.

use super::error::{Fault, Problem};
use super::key::Key;
use super::place::ParserPosition;
use crate::catalogue::schedule::{Release, Schedule, ScheduleError, Unsold};
use time::{Date, Month, OffsetDateTime};
use toml::value::{Datetime, Offset};

/// Releases read so far, each with its place.
#[derive(Debug, Default)]
pub(super) struct FoundSchedule {
    releases: Vec<Release>,
    places: Vec<ParserPosition>,
}

/// The release that is being read.
#[derive(Debug, Default)]
pub(super) struct PartOfRelease {
    pub(super) item: Option<Box<str>>,
    pub(super) units: Option<u64>,
    pub(super) from_ms: Option<u64>,
    pub(super) every_ms: Option<u64>,
    pub(super) times: Option<u64>,
    pub(super) unsold: Unsold,
}

impl PartOfRelease {
    /// Returns the field of a key with a number.
    pub(super) fn number(&mut self, key: Key) -> &mut Option<u64> {
        match key {
            Key::Units => &mut self.units,
            Key::From => &mut self.from_ms,
            Key::Every => &mut self.every_ms,
            other => {
                debug_assert_eq!(other, Key::Times, "the others are no numbers of releases");
                &mut self.times
            }
        }
    }

    fn whole(self) -> Result<Release, Problem> {
        let Self { item, units, from_ms, every_ms, times, unsold } = self;
        let missing = |key: Key, advice| Problem::MissingKey { key: key.name(), advice };
        let every_ms = match every_ms {
            Some(every_ms) => every_ms,
            // Without windows, all units come at the start.
            None if unsold == Unsold::Stays && times.is_none() => 1,
            None => return Err(missing(Key::Every, "say how many milliseconds a window has")),
        };
        Ok(Release {
            item: item.ok_or_else(|| missing(Key::Item, "say whose units come"))?,
            units: units.ok_or_else(|| missing(Key::Units, "say how many come in all windows together"))?,
            from_ms: from_ms.ok_or_else(|| missing(Key::From, "say when the first of them come"))?,
            every_ms,
            times: times.unwrap_or(1),
            unsold,
        })
    }
}

impl FoundSchedule {
    pub(super) fn end_release(&mut self, part: PartOfRelease, place: ParserPosition) -> Result<(), Problem> {
        self.releases.push(part.whole()?);
        self.places.push(place);
        Ok(())
    }

    /// Returns the schedule, and the places of its releases.
    pub(super) fn schedule(self) -> Result<(Schedule, ReleasePlaces), Fault> {
        let places = ReleasePlaces(self.places);
        match Schedule::new(self.releases) {
            Ok(schedule) => Ok((schedule, places)),
            Err(error) => Err(places.fault(error)),
        }
    }
}

pub(super) struct ReleasePlaces(Vec<ParserPosition>);

impl ReleasePlaces {
    /// Adds the place of a release to its error.
    pub(super) fn fault(&self, error: ScheduleError) -> Fault {
        let place = match &error {
            ScheduleError::TooMany { .. } => None,
            ScheduleError::OutOfRange { number, .. }
            | ScheduleError::TooLate { number }
            | ScheduleError::UnknownItem { number, .. }
            | ScheduleError::Unlimited { number, .. }
            | ScheduleError::TooManyUnits { number, .. } => self.0.get(number - 1).copied(),
        };
        Fault { place, ..Fault::nowhere(Problem::Catalogue(error.into())) }
    }
}

pub(super) fn unsold(word: &str) -> Option<Unsold> {
    [("stays", Unsold::Stays), ("lapses", Unsold::Lapses)]
        .into_iter()
        .find_map(|(name, unsold)| (name == word).then_some(unsold))
}

/// Parses an RFC 3339 time with an offset. Returns milliseconds since 1970, rounded down; `None` if
/// it is invalid or before 1970.
pub(super) fn moment_ms(text: &str) -> Option<u64> {
    let Datetime { date: Some(date), time: Some(time), offset: Some(offset) } = text.parse().ok()? else {
        return None;
    };
    let minutes_ahead = match offset {
        Offset::Z => 0,
        Offset::Custom { minutes } => i64::from(minutes),
    };
    let date =
        Date::from_calendar_date(date.year.into(), Month::try_from(date.month).ok()?, date.day).ok()?;
    let days = i64::from(date.to_julian_day() - OffsetDateTime::UNIX_EPOCH.to_julian_day());
    let minutes = (days * 24 + i64::from(time.hour)) * 60 + i64::from(time.minute) - minutes_ahead;
    let seconds = minutes * 60 + i64::from(time.second.unwrap_or(0));
    u64::try_from(seconds * 1000 + i64::from(time.nanosecond.unwrap_or(0) / 1_000_000)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        assert_eq!(moment_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(moment_ms("2000-02-29T00:00:00Z"), Some(951_782_400_000));
        assert_eq!(
            moment_ms("2100-03-01 00:00:00Z"),
            Some(4_107_542_400_000),
            "1900 and 2100 are no leap years"
        );
        assert_eq!(moment_ms("2026-12-24T18:00:00.125+01:00"), moment_ms("2026-12-24T17:00:00.125Z"));
        assert_eq!(moment_ms("2026-12-24T17:00:00.125Z"), Some(1_798_131_600_125));
        assert_eq!(moment_ms("1970-01-01T00:00:00-00:30"), Some(1_800_000));
        assert_eq!(moment_ms("9999-12-31T23:59:59.999Z"), Some(crate::MOMENT_MS_MAX));
        for text in
            ["", "2026-12-24", "2026-12-24T17:00:00", "1969-12-31T23:59:59Z", "2026-02-29T00:00:00Z", "soon"]
        {
            assert_eq!(moment_ms(text), None, "{text}");
        }
    }
}

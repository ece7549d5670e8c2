//! Serialisation of a pool for snapshots: a head, and its items in parts.

use super::Pool;
use super::draw::Draw;
use super::epoch::{EPOCHS_KEPT, Epoch};
use super::requests::Requests;
use super::reservation::{ENDED_KEPT, RESERVATIONS_MAX, Reservation};
use super::reservations::Reservations;
use super::ruled::Ruled;
use super::steps::Steps;
use crate::by::NAME_BYTES_MAX;
use crate::catalogue::item::AMOUNT_MAX;
use crate::draw::numbers::Numbers;
use crate::draw::secret::{CLIENT_SEED_BYTES_MAX, Commitment, Secret};
use crate::draw::selector::Selector;
use crate::draw::urn::{Rule, Unread};
use crate::ending::Ending;
use crate::record::bytes::{Reader, put_bytes, put_number};
use crate::record::event::Recorder;
use std::collections::VecDeque;
use std::ops::Range;

/// Format version; the first number of an image.
const VERSION: u64 = 3;
/// Older version, without schedules and nested tables.
const PLAIN: u64 = 2;

/// The bytes are not a valid image of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {part} of a pool's image is damaged, or was written by another version")]
pub struct Unreadable {
    part: &'static str,
}

impl<S: Selector> Pool<S> {
    /// Appends everything except the items. [`PoolImage`] reads a pool back from this and from all
    /// its [items](Self::write_items), in order. The head contains the secrets. It also contains
    /// the steps that were [handed over](Self::hand_over): use it only once they are written.
    ///
    /// # Panics
    /// If anything is [staged](Self::staged).
    pub fn write_head(&self, into: &mut Vec<u8>) {
        self.write_head_with(into, Secret::clone);
    }

    /// As [`write_head`](Self::write_head), for a reader that must not predict draws. The secrets
    /// of the current and the next epoch are replaced by their commitments; secrets of past epochs
    /// are included.
    ///
    /// # Panics
    /// If anything is [staged](Self::staged).
    pub fn write_sealed_head(&self, into: &mut Vec<u8>) {
        self.write_head_with(into, |secret| Secret::sealed(secret.commitment()));
    }

    fn write_head_with(&self, into: &mut Vec<u8>, known: impl Fn(&Secret) -> Secret) {
        let bytes = self.recorder.bytes().len();
        assert!(bytes == 0, "{bytes} bytes of events are in no log yet: what they have done is in no image");
        put_number(into, VERSION);
        self.urn.write_head(into);
        put_number(into, self.next_draw);
        put_number(into, self.epoch.index);
        put_number(into, self.past.len() as u64);
        self.past.iter().for_each(|epoch| write_epoch(epoch, into));
        write_epoch(&Epoch { secret: known(&self.epoch.secret), ..self.epoch.clone() }, into);
        into.extend_from_slice(known(&self.next_secret).reveal());
        put_number(into, self.reservations.len() as u64);
        for reservation in self.reservations.iter() {
            put_number(into, reservation.until_us);
            put_bytes(into, reservation.user.as_deref().unwrap_or_default());
            put_number(into, reservation.drawn_ms);
            put_number(into, reservation.draws.len() as u64);
            for draw in &reservation.draws {
                put_number(into, draw.number);
                put_number(into, draw.item.map_or(0, |item| u64::from(item) + 1));
            }
        }
        let ended = self.reservations.all_ended();
        put_number(into, ended.len() as u64);
        for (number, how) in ended {
            put_number(into, number);
            put_number(into, ending_code(how));
        }
        self.requests.write(into);
        self.write_rules_and_users(into);
        self.urn.write_timetable(into);
        self.urn.write_tables(into);
    }

    /// Appends a range of the items: about 20 bytes each, plus their ids.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn write_items(&self, items: Range<u32>, into: &mut Vec<u8>) {
        self.urn.write_items(items, into);
    }
}

/// A pool that is being read from an image.
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Catalogue, Item, Pool, PoolImage, Secret};
///
/// let catalogue = Catalogue::new(vec![Item::limited("car", 1, 3), Item::limited("mug", 9, 9)]).unwrap();
/// let mut pool = Pool::<WideTree>::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]));
/// pool.draw().unwrap();
/// let (mut head, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
/// pool.write_head(&mut head);
/// pool.write_items(0..1, &mut first);
/// pool.write_items(1..2, &mut second);
///
/// let mut image = PoolImage::read(&head).unwrap();
/// image.read_items(&first).unwrap();
/// image.read_items(&second).unwrap();
/// let mut again = image.finish::<WideTree>().unwrap();
/// assert_eq!(again.draw(), pool.draw());
/// ```
#[derive(Debug)]
pub struct PoolImage {
    urn: Unread,
    next_draw: u64,
    epoch: Epoch,
    next_secret: Secret,
    past: VecDeque<Epoch>,
    reservations: Reservations,
    requests: Requests,
    ruled: Option<Box<Ruled>>,
}

impl PoolImage {
    /// Reads the output of [`Pool::write_head`].
    ///
    /// # Errors
    /// [`Unreadable`].
    pub fn read(head: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = Reader::new(head);
        let image = Self::head(&mut reader).filter(|_| reader.is_at_end());
        image.ok_or(Unreadable { part: "head" })
    }

    /// Inserts the secrets known by now into a head from [`Pool::write_sealed_head`]. The others
    /// stay sealed.
    pub fn unseal(&mut self, known: impl Fn(Commitment) -> Option<Secret>) {
        for secret in [&mut self.epoch.secret, &mut self.next_secret] {
            let commitment = Commitment(*secret.reveal());
            *secret = known(commitment).unwrap_or_else(|| Secret::sealed(commitment));
        }
    }

    /// Reads the next output of [`Pool::write_items`].
    ///
    /// # Errors
    /// [`Unreadable`]; do not use the image after that.
    pub fn read_items(&mut self, items: &[u8]) -> Result<(), Unreadable> {
        self.urn.items(&mut Reader::new(items)).ok_or(Unreadable { part: "item" })
    }

    /// Returns whether all items have been read.
    pub fn is_complete(&self) -> bool {
        self.urn.is_complete()
    }

    /// Builds the pool once all items have been read.
    ///
    /// # Errors
    /// [`Unreadable`], also if items are missing.
    pub fn finish<S: Selector>(self) -> Result<Pool<S>, Unreadable> {
        self.finish_with(S::new)
    }

    /// As [`finish`](Self::finish), with the selector that `make` builds from the weights.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub fn finish_with<S: Selector>(self, make: impl Fn(&[u64]) -> S) -> Result<Pool<S>, Unreadable> {
        let unreadable = Unreadable { part: "end" };
        let urn = self.urn.finish(make).ok_or(unreadable)?;
        let renormalises = urn.rule() == Rule::Renormalise;
        let ruled =
            self.ruled.map(|ruled| ruled.over(urn.layout(), renormalises).ok_or(unreadable)).transpose()?;
        let pool = Pool {
            numbers: Numbers::new(self.epoch.key()),
            urn,
            next_draw: self.next_draw,
            epoch: self.epoch,
            next_secret: self.next_secret,
            past: self.past,
            reservations: self.reservations,
            requests: self.requests,
            ruled,
            steps: Steps::default(),
            handed_over: 0,
            recorder: Recorder::default(),
            staging: false,
        };
        // Reserved units count as drawn.
        let drawn = |item| (item as usize) < pool.urn.len() && pool.held(item) <= pool.urn.drawn(item);
        let is_sound = pool.reservations.held_items().all(drawn);
        if is_sound { Ok(pool) } else { Err(unreadable) }
    }

    fn head(reader: &mut Reader<'_>) -> Option<Self> {
        let version = reader.number().filter(|version| [PLAIN, VERSION].contains(version))?;
        let mut urn = Unread::head(reader)?;
        let next_draw = reader.number()?;
        let index = reader.number()?;
        // Leaves room to count further without overflow.
        if next_draw.max(index) > AMOUNT_MAX {
            return None;
        }
        let count: usize = reader.small().filter(|&count| count <= EPOCHS_KEPT && count as u64 <= index)?;
        let mut past = VecDeque::new();
        for index in index - count as u64..index {
            past.push_back(read_epoch(reader, index)?);
        }
        let epoch = read_epoch(reader, index)?;
        let starts = past.iter().chain([&epoch]).map(|epoch| epoch.first_draw);
        if !starts.is_sorted() || epoch.first_draw > next_draw {
            return None;
        }
        let next_secret = Secret::new(reader.array()?);
        let mut reservations = Reservations::default();
        for _ in 0..reader.small::<usize>().filter(|&count| count <= RESERVATIONS_MAX)? {
            let reservation = read_reservation(reader, next_draw)?;
            if reservations.get(reservation.number()).is_some() {
                return None;
            }
            reservations.open(reservation);
        }
        for _ in 0..reader.small::<usize>().filter(|&count| count <= ENDED_KEPT)? {
            let (number, how) = (reader.number()?, ending_of(reader.number()?)?);
            if reservations.get(number).is_some() || reservations.ending(number).is_some() {
                return None;
            }
            reservations.keep(number, how);
        }
        let requests = Requests::read(reader, next_draw, urn.len())?;
        let ruled = Ruled::read(reader, urn.len())?.map(Box::new);
        if version > PLAIN {
            urn.timetable(reader)?;
            urn.tables(reader)?;
        }
        Some(Self { urn, next_draw, epoch, next_secret, past, reservations, requests, ruled })
    }
}

fn write_epoch(epoch: &Epoch, into: &mut Vec<u8>) {
    put_number(into, epoch.first_draw);
    put_bytes(into, &epoch.client_seed);
    into.extend_from_slice(epoch.secret.reveal());
}

fn read_epoch(reader: &mut Reader<'_>, index: u64) -> Option<Epoch> {
    let first_draw = reader.number()?;
    let client_seed = reader.bytes().filter(|seed| seed.len() <= CLIENT_SEED_BYTES_MAX)?.into();
    Some(Epoch { index, first_draw, secret: Secret::new(reader.array()?), client_seed })
}

fn read_reservation(reader: &mut Reader<'_>, next_draw: u64) -> Option<Reservation> {
    let until_us = reader.number()?;
    let user = reader.bytes().filter(|user| user.len() <= NAME_BYTES_MAX)?;
    let user = Some(user).filter(|user| !user.is_empty()).map(Box::from);
    let drawn_ms = reader.number()?;
    let count: usize = reader.small()?;
    let draws = (0..count).map(|_| {
        let number = reader.number().filter(|&number| number < next_draw)?;
        let item = match reader.number()? {
            0 => None,
            item => Some(u32::try_from(item - 1).ok()?),
        };
        Some(Draw { number, item })
    });
    let draws: Box<[Draw]> = draws.collect::<Option<_>>()?;
    (!draws.is_empty()).then_some(Reservation { draws, until_us, user, drawn_ms })
}

fn ending_code(how: Ending) -> u64 {
    match how {
        Ending::Confirmed => 0,
        Ending::Cancelled => 1,
        Ending::Expired => 2,
    }
}

fn ending_of(code: u64) -> Option<Ending> {
    [Ending::Confirmed, Ending::Cancelled, Ending::Expired].into_iter().find(|&how| ending_code(how) == code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::catalogue::item::{Item, Stock};
    use crate::draw::selector::WideTree;

    fn pool() -> Pool<WideTree> {
        let items = vec![Item::unlimited("mug", 1), Item::limited("car", 0, 1)];
        let catalogue = Catalogue::new(items).expect("a catalogue");
        Pool::new(&catalogue, Secret::new([1; 32]), Secret::new([2; 32]))
    }

    fn again(pool: &Pool<WideTree>) -> Result<Pool<WideTree>, Unreadable> {
        let (mut head, mut items) = (Vec::new(), Vec::new());
        pool.write_head(&mut head);
        pool.write_items(0..2, &mut items);
        let mut image = PoolImage::read(&head)?;
        image.read_items(&items)?;
        image.finish()
    }

    #[test]
    fn numbers_that_leave_no_room_to_go_on_are_refused() {
        let mut pool = pool();
        assert!(again(&pool).is_ok());
        pool.next_draw = u64::MAX;
        assert!(again(&pool).is_err());
        pool.next_draw = AMOUNT_MAX;
        assert_eq!(again(&pool).expect("there is room").draw().map(|draw| draw.number), Ok(AMOUNT_MAX));
        pool.epoch.index = u64::MAX;
        assert!(again(&pool).is_err());
    }

    #[test]
    fn an_image_of_the_version_before_has_no_schedule() {
        let mut head = Vec::new();
        pool().write_head(&mut head);
        assert_eq!(
            (head[0], head.split_off(head.len() - 2)),
            (3, vec![0, 0]),
            "the version; no releases, no tables"
        );
        assert!(PoolImage::read(&head).is_err());
        head[0] = 2;
        assert!(PoolImage::read(&head).is_ok());
    }

    #[test]
    fn what_is_missing_or_too_much_is_refused() {
        let pool = pool();
        let (mut head, mut items) = (Vec::new(), Vec::new());
        pool.write_head(&mut head);
        pool.write_items(0..1, &mut items);
        let image = |pieces: &[&[u8]]| {
            let mut image = PoolImage::read(&head).expect("a head");
            pieces.iter().try_for_each(|piece| image.read_items(piece))?;
            image.finish::<WideTree>().map(|_| ())
        };
        assert!(image(&[]).is_err() && image(&[&items]).is_err());
        assert!(image(&[&items, &items]).is_err(), "two items have one id");
        let mut other = Vec::new();
        pool.write_items(1..2, &mut other);
        assert!(image(&[&items, &other]).is_ok() && image(&[&items, &other, &items]).is_err());
        assert_eq!(pool.urn.entry(1).map(|entry| entry.stock), Some(Stock::Limited(1)));
    }
}

//! Writes the events of a pool as lines: from a server's log, and again when an exported audit is
//! checked.

use super::hexadecimal;
use super::line::{AUDIT, EventLine, FrameLine, ItemLine, Left, Line, PoolLine, ReleaseLine};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::io;
use tidemark_engine::value::pool::{Inner, Sight};
use tidemark_lab::wall_time::rfc3339_us;
use tidemark_pool::{
    By, Chain, Ending, Event, Frame, Mode, Odds, OddsInTurn, Repeats, Stock, Unsold, sealed,
};

/// Items, and bytes of other data, in one line.
const ITEMS_AT_ONCE: u32 = 512;
const BYTES_AT_ONCE: usize = 48 << 10;

/// Destination of lines.
pub(super) trait Lines {
    fn write(&mut self, line: &Line<'_>) -> io::Result<()>;
}

/// Writes lines for the pools of one key, and keeps state between a pool's events.
pub(super) struct Scribe {
    key: String,
    db: u8,
    /// LSN and time of the current frame.
    lsn: u64,
    time: String,
    /// Odds of the next draw, while they are known.
    odds: Option<Odds>,
    /// Results of an event's draws, with their odds. In a pool with rules about users, odds depend
    /// on what its users have done, and are not exported.
    drawn: Vec<Given>,
    /// Items of an event, which are known only before it is applied.
    items: Vec<Option<u32>>,
}

/// Result of a draw, with its odds where they are known.
struct Given {
    item: Option<u32>,
    /// Its weight and the sum of all weights, if they are of one table.
    weight: Option<(u64, u64)>,
    odds: Option<f64>,
}

impl Scribe {
    pub(super) fn new(key: String, db: u8) -> Self {
        Self { key, db, lsn: 0, time: String::new(), odds: None, drawn: Vec::new(), items: Vec::new() }
    }

    /// Writes the state of a pool, which everything after it builds on.
    pub(super) fn pool(
        &mut self,
        lsn: u64,
        pool: &Inner,
        chain: Chain,
        made: bool,
        into: &mut impl Lines,
    ) -> io::Result<()> {
        self.odds = None;
        let (urn, epoch) = (pool.urn(), pool.epoch());
        into.write(&Line::Pool(PoolLine {
            event: "pool",
            audit: AUDIT,
            key: self.key.clone(),
            db: self.db,
            lsn,
            made,
            mode: match urn.mode() {
                Mode::FixedOdds => "fixed-odds",
                Mode::PerUnit => "per-unit",
            },
            sold_out: match urn.fallback() {
                Some(_) => "fallback",
                None if urn.keeps_odds() => "no-prize",
                None => "renormalise",
            },
            fallback: urn.fallback().map(|item| urn.id(item)),
            selector: urn.selector().kind().name(),
            version: urn.version(),
            items: urn.len(),
            draws: pool.next_draw(),
            reservations: pool.reservations().len(),
            epoch: epoch.index,
            epoch_first_draw: epoch.first_draw,
            client_seed: hexadecimal::encode(&epoch.client_seed),
            commitment: pool.commitment().to_string(),
            next_commitment: pool.next_commitment().to_string(),
            chain: chain.to_string(),
        }))?;
        let mut head = Vec::new();
        pool.write_sealed_head(&mut head);
        head.chunks(BYTES_AT_ONCE).try_for_each(|part| state("head", part, into))?;
        let items = urn.len() as u32;
        for first in (0..items).step_by(ITEMS_AT_ONCE as usize) {
            let mut bytes = Vec::new();
            pool.write_items(first..items.min(first + ITEMS_AT_ONCE), &mut bytes);
            state("items", &bytes, into)?;
        }
        urn.entries().try_for_each(|entry| {
            into.write(&Line::Item(ItemLine {
                event: "item",
                version: urn.version(),
                item: entry.item,
                id: entry.id,
                weight: entry.weight,
                left: left(entry.stock),
                drawn: entry.drawn,
                table: entry.table,
                leads_to: entry.leads_to,
            }))
        })?;
        urn.releases().iter().try_for_each(|release| {
            into.write(&Line::Release(ReleaseLine {
                event: "schedule",
                item: release.item,
                id: urn.id(release.item),
                units: release.units,
                from: rfc3339_us(release.from_ms * 1000),
                every_ms: release.every_ms,
                times: release.times,
                unsold: if release.unsold == Unsold::Lapses { "lapses" } else { "stays" },
                released: release.come(urn.released_until_ms()),
            }))
        })
    }

    /// Begins a frame of events that were logged together.
    pub(super) fn frame(
        &mut self,
        lsn: u64,
        frame: &Frame<'_>,
        chain: Chain,
        into: &mut impl Lines,
    ) -> io::Result<()> {
        let events = sealed(frame.events).map_err(io::Error::other)?;
        self.sealed_frame(lsn, &Frame { events: &events, ..*frame }, chain, into)
    }

    /// As [`frame`](Self::frame), for events without secrets.
    pub(super) fn sealed_frame(
        &mut self,
        lsn: u64,
        frame: &Frame<'_>,
        chain: Chain,
        into: &mut impl Lines,
    ) -> io::Result<()> {
        (self.lsn, self.time) = (lsn, rfc3339_us(frame.time_us));
        into.write(&Line::Frame(FrameLine {
            event: "frame",
            lsn,
            time_us: frame.time_us,
            first_draw: frame.first_draw,
            chain: &chain.to_string(),
            bytes: &BASE64_STANDARD.encode(frame.events),
        }))
    }

    /// Notes what is known only before an event, and writes the event after it is applied.
    pub(super) fn see(&mut self, sight: Sight<'_>, into: &mut impl Lines) -> io::Result<()> {
        match sight {
            Sight::Before(pool, event) => {
                self.before(pool, event);
                Ok(())
            }
            Sight::Behind(pool, event) => self.behind(pool, event, into),
        }
    }

    /// Writes that the pool is gone.
    #[expect(clippy::unused_self, reason = "uniform with the other lines")]
    pub(super) fn gone(&mut self, lsn: u64, time_us: u64, into: &mut impl Lines) -> io::Result<()> {
        into.write(&Line::Event(Box::new(EventLine {
            event: "gone",
            lsn,
            time: rfc3339_us(time_us),
            ..EventLine::default()
        })))
    }

    fn before(&mut self, pool: &Inner, event: &Event<'_>) {
        let urn = pool.urn();
        self.drawn.clear();
        self.items.clear();
        let (items, repeats) = match event {
            Event::Drew(item) => (std::slice::from_ref(item), Repeats::Allowed),
            Event::DrewDifferent { items } => (&items[..], Repeats::Excluded),
            Event::Reserved { items, repeats, .. } => (&items[..], *repeats),
            Event::Asked(asked) => (&asked.items[..], asked.repeats),
            Event::Advanced { now_ms } => {
                self.items.extend(urn.due_items(*now_ms).map(Some));
                return;
            }
            Event::Ended { number, .. } => {
                let reservation = pool.reservation(*number);
                self.items
                    .extend(reservation.into_iter().flat_map(|held| held.draws.iter().map(|draw| draw.item)));
                return;
            }
            _ => return,
        };
        if pool.rules().is_some() {
            self.drawn.extend(items.iter().map(|&item| Given { item, weight: None, odds: None }));
            return;
        }
        let odds = self.odds.get_or_insert_with(|| Odds::of(urn));
        if urn.tables() > 0 {
            // Odds of later draws in one call depend on the draws before them.
            let share = |item: Option<u32>| match item.and_then(|item| urn.entry(item)) {
                Some(entry) => odds.share_of(urn, &entry),
                None => odds.share_of_nothing(),
            };
            let is_alone = items.len() == 1;
            let given =
                |&item: &Option<u32>| Given { item, weight: None, odds: is_alone.then(|| share(item)) };
            self.drawn.extend(items.iter().map(given));
            return;
        }
        let mut in_turn = OddsInTurn::new(urn, odds.clone(), repeats);
        self.drawn.extend(items.iter().map(|&item| {
            let (weight, total) = in_turn.given(item);
            let odds = if total == 0 { 0.0 } else { weight as f64 / total as f64 };
            Given { item, weight: Some((weight, total)), odds: Some(odds) }
        }));
    }

    fn behind(&mut self, pool: &Inner, event: &Event<'_>, into: &mut impl Lines) -> io::Result<()> {
        if let (Event::Drew(Some(item)), Some(odds)) = (event, &mut self.odds) {
            odds.drawn(pool.urn(), *item);
        } else if !matches!(event, Event::Drew(None)) {
            self.odds = None;
        }
        let (urn, nobody) = (pool.urn(), By::default());
        let mut line = self.line("");
        match event {
            Event::Drew(_) | Event::DrewDifferent { .. } => return self.draws(pool, None, &nobody, into),
            Event::Asked(asked) if asked.until_us.is_none() => {
                return self.draws(pool, None, &asked.by, into);
            }
            Event::Reserved { .. } | Event::Asked(_) => {
                let (until_us, by) = match event {
                    Event::Reserved { until_us, .. } => (*until_us, &nobody),
                    Event::Asked(asked) => {
                        (asked.until_us.expect("draws without an end are written above"), &asked.by)
                    }
                    other => unreachable!("{other:?} reserves nothing"),
                };
                let number = pool.next_draw() - self.drawn.len() as u64;
                line.event = "reserve";
                line.reservation = Some(number);
                line.count = Some(self.drawn.len() as u64);
                line.until = Some(rfc3339_us(until_us));
                (line.user, line.request) = names(by);
                into.write(&Line::Event(Box::new(line)))?;
                return self.draws(pool, Some(number), by, into);
            }
            Event::Ended { number, how } => {
                line.event = match how {
                    Ending::Confirmed => "confirm",
                    Ending::Cancelled => "cancel",
                    Ending::Expired => "expire",
                };
                line.reservation = Some(*number);
                line.count = Some(self.items.len() as u64);
            }
            Event::Changed { item, weight, stock } => {
                line.event = "update";
                (line.item, line.id) = (Some(*item), Some(urn.id(*item)));
                (line.weight, line.left) = (Some(*weight), Some(left(*stock)));
            }
            Event::Added { id, weight, stock } => {
                line.event = "add";
                (line.item, line.id) = (urn.find(id), Some(*id));
                (line.weight, line.left) = (Some(*weight), Some(left(*stock)));
            }
            Event::Removed { item } => {
                line.event = "remove";
                (line.item, line.id) = (Some(*item), Some(urn.id(*item)));
            }
            Event::GivenBack { item, count } | Event::GivenBackBy { item, count, .. } => {
                line.event = "return";
                if let Event::GivenBackBy { user, .. } = event {
                    line.user = Some(text(user));
                }
                (line.item, line.id) = (Some(*item), Some(urn.id(*item)));
                line.count = Some(*count);
                line.left = urn.entry(*item).map(|entry| left(entry.stock));
            }
            Event::Advanced { now_ms } => return self.releases(pool, *now_ms, into),
            Event::Epoch { client_seed, .. } => {
                line.event = "epoch";
                line.draw = Some(pool.next_draw());
                line.client_seed = Some(hexadecimal::encode(client_seed));
                let over = pool.epoch().index.checked_sub(1).and_then(|index| pool.revealed(index));
                let secret = over.map(|over| over.epoch.secret).filter(|secret| !secret.is_sealed());
                line.secret = secret.map(|secret| hexadecimal::encode(secret.reveal()));
                line.commitment = Some(pool.commitment().to_string());
                line.next_commitment = Some(pool.next_commitment().to_string());
            }
        }
        (line.epoch, line.version) = (Some(pool.epoch().index), Some(urn.version()));
        into.write(&Line::Event(Box::new(line)))
    }

    /// Writes what the schedule has changed.
    fn releases(&self, pool: &Inner, now_ms: u64, into: &mut impl Lines) -> io::Result<()> {
        let urn = pool.urn();
        self.items.iter().flatten().filter_map(|&item| urn.entry(item)).try_for_each(|entry| {
            into.write(&Line::Event(Box::new(EventLine {
                until: Some(rfc3339_us(now_ms.saturating_mul(1000))),
                epoch: Some(pool.epoch().index),
                version: Some(urn.version()),
                item: Some(entry.item),
                id: Some(entry.id),
                left: Some(left(entry.stock)),
                ..self.line("release")
            })))
        })
    }

    /// Writes the draws of an event.
    fn draws(
        &self,
        pool: &Inner,
        reservation: Option<u64>,
        by: &By<'_>,
        into: &mut impl Lines,
    ) -> io::Result<()> {
        let urn = pool.urn();
        let first = pool.next_draw() - self.drawn.len() as u64;
        for (draw, &Given { item, weight, odds }) in (first..).zip(&self.drawn) {
            let entry = item.and_then(|item| urn.entry(item));
            let (user, request) = names(by);
            into.write(&Line::Event(Box::new(EventLine {
                draw: Some(draw),
                user,
                request,
                epoch: Some(pool.epoch().index),
                version: Some(urn.version()),
                item,
                id: item.map(|item| urn.id(item)),
                weight: weight.map(|(weight, _)| weight),
                total_weight: weight.map(|(_, total)| total),
                odds,
                left: entry.map(|entry| left(entry.stock)),
                reservation,
                ..self.line("draw")
            })))?;
        }
        Ok(())
    }

    fn line<'a>(&self, event: &'static str) -> EventLine<'a> {
        EventLine { event, lsn: self.lsn, time: self.time.clone(), ..EventLine::default() }
    }
}

/// Returns the user and the request id of a call. Bytes that are not UTF-8 are replaced.
fn names(by: &By<'_>) -> (Option<String>, Option<String>) {
    (by.user.map(text), by.request.map(text))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn left(stock: Stock) -> Left {
    match stock {
        Stock::Limited(left) => Left::Units(left),
        Stock::Unlimited => Left::Unlimited("unlimited"),
    }
}

/// Writes some of the bytes from which a pool is read back.
fn state(event: &'static str, bytes: &[u8], into: &mut impl Lines) -> io::Result<()> {
    into.write(&Line::State { event, bytes: BASE64_STANDARD.encode(bytes) })
}

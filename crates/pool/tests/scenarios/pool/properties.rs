//! A pool behaves as its specification under any steps, and a reverted step has no effect.

use super::model::{Model, Request, Row, Stop};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use tidemark_pool::selector::{Alias, Fenwick, PrefixSum, WideTree};
use tidemark_pool::{
    AMOUNT_MAX, By, Catalogue, Commitment, Draw, Empty, Ending, Epoch, Events, Guarantee, Item, Lead, Limit,
    Mode, Numbers, Pool, PoolImage, Refusal, Release, Repeats, Reservation, Revealed, Rules, Schedule, Scope,
    Secret, Selector, Soft, SoldOut, Stock, Table, Unreadable, Unsold,
};

#[derive(Debug, Clone)]
pub(super) enum Step {
    Draw,
    DrawMany(usize, Repeats),
    Reweight(u8, u64),
    SetStock(u8, Stock),
    Restock(u8, i64),
    GiveBack(u8, u64),
    Add(u8, u64, Stock),
    Remove(u8),
    BeginEpoch(Vec<u8>),
    Reserve(usize, Repeats, u64),
    Ask(Requester, usize, Repeats, Option<u64>),
    GiveBackBy(u8, u8, u64),
    Wait(u64),
    Advance,
    /// Advances with at most this many draws at a time.
    CatchUp(usize),
    End(u64, Ending),
    ExpireOne(u64),
}

/// The user and the id of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Requester {
    pub(super) user: Option<u8>,
    pub(super) request: Option<u8>,
}

fn requester() -> impl Strategy<Value = Requester> {
    let some = |max: u8| prop::option::of(0..max);
    (some(3), some(12)).prop_map(|(user, request)| Requester { user, request })
}

fn stock() -> impl Strategy<Value = Stock> {
    prop_oneof![
        8 => (0_u64..4).prop_map(Stock::Limited),
        1 => (0..=AMOUNT_MAX).prop_map(Stock::Limited),
        2 => Just(Stock::Unlimited),
    ]
}

fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![10 => 0_u64..6, 1 => 0..=AMOUNT_MAX, 1 => any::<u64>()]
}

/// Generates deadlines soon, and around whole milliseconds, where windows end.
fn until_us() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..10,
        (0_u64..40, 0_u64..3).prop_map(|(ms, around)| (ms * 1000 + around).saturating_sub(1))
    ]
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let id = || 0_u8..12;
    let repeats = || prop_oneof![Just(Repeats::Allowed), Just(Repeats::Excluded)];
    let ending = prop_oneof![Just(Ending::Confirmed), Just(Ending::Cancelled)];
    prop_oneof![
        12 => Just(Step::Draw),
        6 => (0_usize..6, repeats()).prop_map(|(count, repeats)| Step::DrawMany(count, repeats)),
        4 => (0_usize..4, repeats(), until_us()).prop_map(|(count, repeats, until)| Step::Reserve(count, repeats, until)),
        9 => (requester(), 0_usize..4, repeats(), prop::option::weighted(0.3, until_us()))
            .prop_map(|(requester, count, repeats, until)| Step::Ask(requester, count, repeats, until)),
        2 => (0_u8..3, id(), 0_u64..3).prop_map(|(user, id, count)| Step::GiveBackBy(user, id, count)),
        2 => (0_u64..9).prop_map(Step::Wait),
        3 => Just(Step::Advance),
        2 => (1_usize..4).prop_map(Step::CatchUp),
        4 => (0_u64..20, ending).prop_map(|(number, ending)| Step::End(number, ending)),
        1 => (0_u64..10).prop_map(Step::ExpireOne),
        2 => (id(), weight()).prop_map(|(id, weight)| Step::Reweight(id, weight)),
        2 => (id(), stock()).prop_map(|(id, stock)| Step::SetStock(id, stock)),
        2 => (id(), prop_oneof![-4_i64..5, any::<i64>()]).prop_map(|(id, units)| Step::Restock(id, units)),
        3 => (id(), 0_u64..4).prop_map(|(id, count)| Step::GiveBack(id, count)),
        2 => (id(), weight(), stock()).prop_map(|(id, weight, stock)| Step::Add(id, weight, stock)),
        1 => id().prop_map(Step::Remove),
        1 => vec(any::<u8>(), 0..4).prop_map(Step::BeginEpoch),
    ]
}

pub(super) fn id(number: u8) -> String {
    format!("item {number}")
}

/// Limits and guarantees, with bit sets of items.
type RuleNumbers = (Vec<(u64, Option<u64>, Option<u8>)>, Vec<(u64, u8, bool, Option<(u64, u64)>)>);

/// Generates rules that name some of the first items.
fn rules() -> impl Strategy<Value = RuleNumbers> {
    let per_ms = prop::option::of(prop_oneof![Just(10_u64), Just(25)]);
    let limits = vec((1_u64..4, per_ms, prop::option::weighted(0.7, 1_u8..)), 0..3);
    let soft = prop::option::of((1_u64..4, prop_oneof![9 => 1_u64..5, 1 => Just(1_000_000_000)]));
    let guarantees = vec((1_u64..6, 1_u8.., any::<bool>(), soft), 0..3);
    prop_oneof![1 => Just((Vec::new(), Vec::new())), 1 => (Just(Vec::new()), guarantees.clone()), 2 => (limits, guarantees)]
}

/// Returns the ids of the items whose bits are set, of the first `count` items; at least one.
fn named(bits: u8, count: u8) -> Vec<Box<str>> {
    let items =
        (0..count).filter(|item| bits >> item & 1 == 1 || (bits.is_multiple_of(1 << count) && *item == 0));
    items.map(|item| id(item).into()).collect()
}

fn ruled(catalogue: Catalogue, (limits, guarantees): RuleNumbers) -> Catalogue {
    let count = catalogue.items().len().min(7) as u8;
    let limits = limits.into_iter().map(|(max, per_ms, bits)| Limit {
        max,
        per_ms,
        wins_of: bits.map(|bits| named(bits, count)),
    });
    let guarantees = guarantees.into_iter().map(|(after, bits, is_pools, soft)| Guarantee {
        after,
        of: named(bits, count),
        scope: if is_pools { Scope::Pool } else { Scope::User },
        soft: soft.map(|(from, step)| Soft { from: from.min(after), step }),
    });
    let rules = Rules::new(limits.collect(), guarantees.collect()).expect("they are sound");
    // Rules cannot name every item of a table.
    catalogue.clone().ruled(rules).unwrap_or(catalogue)
}

/// Releases of some of the first items, as numbers.
type ReleaseNumbers = Vec<(u8, u64, u64, u64, u64, bool)>;

fn releases() -> impl Strategy<Value = ReleaseNumbers> {
    vec((0_u8..6, 1_u64..9, 1_u64..30, 1_u64..9, 1_u64..6, any::<bool>()), 0..4)
}

/// Returns the catalogue with releases of its items, if they fit.
fn scheduled(catalogue: Catalogue, releases: ReleaseNumbers) -> Catalogue {
    let count = catalogue.items().len() as u8;
    let releases = releases.into_iter().map(|(item, units, from_ms, every_ms, times, lapses)| Release {
        item: id(item % count).into(),
        units,
        from_ms,
        every_ms,
        times,
        unsold: if lapses { Unsold::Lapses } else { Unsold::Stays },
    });
    let schedule = Schedule::new(releases.collect()).expect("they are sound");
    catalogue.clone().scheduled(schedule).unwrap_or(catalogue)
}

/// The further tables, each with its items and with the earlier table and the weight of the item
/// that leads to it; and additional leads.
type TableNumbers = (Vec<(Vec<(u64, Stock)>, Index, u64)>, Vec<(Index, Index, u64)>);

fn tables() -> impl Strategy<Value = TableNumbers> {
    let table = (vec((0_u64..6, stock()), 1..3), any::<Index>(), 0_u64..6);
    prop_oneof![
        1 => Just((Vec::new(), Vec::new())),
        1 => (vec(table, 1..4), vec((any::<Index>(), any::<Index>(), 0_u64..6), 0..2)),
    ]
}

/// Returns the items of all tables, numbered by their places, and the leads. An item leads only to
/// a later table.
fn lists(first: Vec<(u64, Stock)>, (tables, others): TableNumbers) -> (Vec<Vec<Item>>, Vec<Lead>) {
    let count = tables.len() + 1;
    let mut lists: Vec<Vec<(u64, Stock, Option<usize>)>> = vec![Vec::new(); count];
    lists[0].extend(first.into_iter().map(|(weight, stock)| (weight, stock, None)));
    for (number, (items, from, weight)) in (1..).zip(tables) {
        lists[number].extend(items.into_iter().map(|(weight, stock)| (weight, stock, None)));
        lists[from.index(number)].push((weight, Stock::Unlimited, Some(number)));
    }
    for (from, to, weight) in others {
        let from = from.index(count);
        let to = from + 1 + to.index(count);
        if to < count {
            lists[from].push((weight, Stock::Unlimited, Some(to)));
        }
    }
    let (mut number, mut leads) = (0_u8, Vec::new());
    let lists = lists.into_iter().map(|list| {
        let items = list.into_iter().map(|(weight, stock, to)| {
            let item = Item { id: id(number).into(), weight, stock };
            number += 1;
            leads.extend(to.map(|to| Lead { item: item.id.clone(), table: to.to_string().into() }));
            item
        });
        items.collect()
    });
    (lists.collect(), leads)
}

/// Generates catalogues of the first items; the remaining ids are for items that steps add.
pub(super) fn catalogue() -> impl Strategy<Value = Catalogue> {
    let items = vec((0_u64..6, stock()), 1..6);
    let sold_out = prop_oneof![
        3 => Just(None), 2 => Just(Some(None)), 3 => (0_u8..6).prop_map(|item| Some(Some(item)))
    ];
    (items, tables(), (prop::bool::weighted(0.3), any::<bool>()), sold_out, rules(), releases())
        .prop_filter_map(
            "a catalogue",
            |(mut items, tables, (per_unit, is_even), sold_out, rules, releases)| {
                if per_unit && is_even {
                    items.iter_mut().for_each(|(weight, _)| *weight = 3 * (*weight).min(1));
                }
                let count = items.len() as u8;
                let tables = if per_unit { (Vec::new(), Vec::new()) } else { tables };
                let (mut lists, leads) = lists(items, tables);
                let sold_out = match sold_out {
                    None => SoldOut::Renormalise,
                    Some(None) => SoldOut::NoPrize,
                    Some(Some(item)) => SoldOut::Fallback(id(item % count).into()),
                };
                let mode = if per_unit { Mode::PerUnit } else { Mode::FixedOdds };
                let catalogue = Catalogue::with(lists.remove(0), mode, sold_out).ok()?;
                let tables = (1..)
                    .zip(lists)
                    .map(|(name, items): (u8, _)| Table { name: name.to_string().into(), items });
                let catalogue = catalogue.nested(tables.collect(), &leads).ok()?;
                Some(scheduled(ruled(catalogue, rules), releases))
            },
        )
}

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

/// Returns the visible state of a pool.
fn seen<S: Selector>(pool: &Pool<S>) -> (Vec<(Option<Row>, u64)>, u64, u64) {
    let rows = (0..pool.urn().len() as u32).map(|item| {
        let row = pool.urn().entry(item).map(|entry| {
            assert_eq!(pool.urn().find(entry.id), Some(item));
            let item = Item { id: entry.id.into(), weight: entry.weight, stock: entry.stock };
            Row { item, drawn: entry.drawn, removed: false }
        });
        let in_force = pool.urn().entry(item).map_or(0, |entry| entry.weight_in_force);
        (row, in_force)
    });
    (rows.collect(), pool.next_draw(), pool.urn().version())
}

/// Returns the visible state that the model expects.
fn expected(model: &Model) -> (Vec<(Option<Row>, u64)>, u64, u64) {
    let rows = model.rows.iter().zip(model.weights_in_force());
    let rows = rows.map(|(row, in_force)| ((!row.removed).then(|| row.clone()), in_force));
    (rows.collect(), model.next_draw, model.version)
}

struct Both<S> {
    pool: Pool<S>,
    model: Model,
    numbers: Numbers,
    epochs: u8,
}

impl<S: Selector> Both<S> {
    fn new(catalogue: &Catalogue) -> Self {
        Self {
            pool: Pool::new(catalogue, secret(0), secret(1)),
            model: Model::new::<S>(catalogue),
            numbers: Numbers::new(secret(0).key(b"")),
            epochs: 0,
        }
    }

    /// Changes a row of the model if the result is valid, and asserts that the pool accepted or
    /// refused the same change.
    fn change(&mut self, id: &str, said: bool, change: impl FnOnce(&mut Row) -> bool, version: u64) {
        let mut rows = self.model.rows.clone();
        let possible = self.model.find(id).is_some_and(|item| change(&mut rows[item]));
        let fits = possible && self.model.fits(&rows);
        assert_eq!(said, fits, "the change of {id}");
        if fits {
            self.model.rows = rows;
            self.model.version += version;
        }
    }

    fn draw_many(&mut self, count: usize, repeats: Repeats) {
        let mut drawn = vec![Draw { number: u64::MAX, item: None }];
        let said = self.pool.draw_many(count, repeats, &mut drawn);
        assert_eq!(drawn.remove(0).number, u64::MAX, "what was there before stays");
        self.expect_drawn(None, count, repeats, said, drawn);
    }

    /// Makes the draws on the model, compares them with the pool's, and returns them.
    fn expect_drawn(
        &mut self,
        user: Option<u8>,
        count: usize,
        repeats: Repeats,
        said: Result<(), Refusal>,
        drawn: Vec<Draw>,
    ) -> Vec<Draw> {
        let limits = self.model.rules.limits().iter().filter(|limit| limit.wins_of.is_none());
        if let Some(max) = limits.map(|limit| limit.max).min().filter(|&max| count as u64 > max) {
            assert_eq!((said, &drawn), (Err(Refusal::MoreThanLimit { count, max }), &Vec::new()));
            return drawn;
        }
        if self.model.rules.need_users() && user.is_none() {
            assert_eq!((said, &drawn), (Err(Refusal::NoUser), &Vec::new()));
            return drawn;
        }
        let refused = |refusal| assert_eq!((&said, &drawn), (&Err(refusal), &Vec::new()));
        if count == 0 {
            assert!(matches!(said, Err(Refusal::Count { count: 0, .. })), "{said:?}");
            return drawn;
        }
        if let Some((max, again_ms)) = self.model.reached_within(user, count) {
            refused(Refusal::Limited { max, again_ms });
            return drawn;
        }
        let next_ms = self.pool.urn().next_release_ms();
        let too_few = |refusal| next_ms.map_or(refusal, |at_ms| Refusal::EmptyUntil { at_ms });
        let stopped = |stop| match stop {
            Stop::Empty => too_few(Refusal::Empty),
            Stop::Limited(max, again_ms) => Refusal::Limited { max, again_ms },
            Stop::TooHeavy => Refusal::TooHeavy,
        };
        if count > 1 {
            let left = match self.model.possible(user, count, repeats) {
                Ok(0) => None,
                Ok(left) if left < count && repeats == Repeats::Allowed => {
                    Some(too_few(Refusal::NotSoMany { wanted: count, left }))
                }
                Ok(left) if left < count => Some(Refusal::NotSoManyItems { wanted: count, left }),
                Ok(_) if self.model.may_be_too_heavy(user, count) => Some(Refusal::TooHeavy),
                Ok(_) => None,
                Err(stop) => Some(stopped(stop)),
            };
            if let Some(left) = left {
                refused(left);
                return drawn;
            }
        }
        let (mut expected, mut hidden) = (Vec::new(), Vec::new());
        let mut is_over = false;
        while expected.len() < count {
            let number = self.model.next_draw;
            // An item without tickets is drawn only if the call has drawn no other item.
            is_over |= !expected.is_empty()
                && repeats == Repeats::Excluded
                && self.model.sum_of_table(None, &hidden, &[]) == 0;
            let item = if is_over {
                None
            } else {
                match self.model.draw(&mut self.numbers, user, &hidden) {
                    Ok(item) => item,
                    Err(stop) if expected.is_empty() => {
                        refused(stopped(stop));
                        return drawn;
                    }
                    Err(stop) => {
                        assert_ne!(stop, Stop::TooHeavy, "that is known beforehand");
                        is_over = true;
                        None
                    }
                }
            };
            if is_over {
                self.model.draw_nothing(user);
            }
            expected.push(Draw { number, item: item.map(|item| item as u32) });
            hidden.extend(item.filter(|_| repeats == Repeats::Excluded));
        }
        assert_eq!((said, &drawn), (Ok(()), &expected));
        drawn
    }

    fn reserve(&mut self, count: usize, repeats: Repeats, until_us: u64) {
        let said = self.pool.reserve(count, repeats, until_us);
        let drawn = said.as_ref().map_or(Vec::new(), |reservation| reservation.draws.to_vec());
        let drawn = self.expect_drawn(None, count, repeats, said.clone().map(|_| ()), drawn);
        if let Ok(said) = said {
            assert_eq!((said.number(), said.until_us), (drawn[0].number, until_us));
            let items = drawn.iter().map(|draw| draw.item.map(|item| item as usize)).collect();
            self.model.reservations.push((said.number(), items, until_us));
        }
    }

    fn ask(&mut self, requester: Requester, count: usize, repeats: Repeats, until: Option<u64>) {
        let (user, request) =
            (requester.user.map(|user| [user]), requester.request.map(|request| [0, request]));
        let (user, request) = (user.as_ref().map(|user| &user[..]), request.as_ref().map(|id| &id[..]));
        let by = By { user, request, now_ms: self.model.now_ms };
        let mut drawn = Vec::new();
        let said = match until {
            None => self.pool.draw_by(&by, count, repeats, &mut drawn).map(|()| None),
            Some(until) => self.pool.reserve_by(&by, count, repeats, until).map(|reservation| {
                drawn = reservation.draws.to_vec();
                Some(reservation.until_us)
            }),
        };
        let before = self.model.requests.iter().find(|before| Some(before.id) == requester.request);
        if let Some(before) = before {
            let is_same = (before.user, before.repeats, before.draws.len())
                == (requester.user, repeats, count)
                && before.until.is_some() == until.is_some();
            if is_same {
                assert_eq!((said, drawn), (Ok(before.until), before.draws.clone()));
            } else {
                assert!(matches!(said, Err(Refusal::OtherRequest { .. })), "{said:?}");
            }
            return;
        }
        let draws = self.expect_drawn(requester.user, count, repeats, said.clone().map(|_| ()), drawn);
        let Ok(until) = said else { return };
        if let Some(until) = until {
            let items = draws.iter().map(|draw| draw.item.map(|item| item as usize)).collect();
            self.model.reservations.push((draws[0].number, items, until));
            if let Some(user) = requester.user {
                self.model.holders.insert(draws[0].number, (user, self.model.now_ms));
            }
        }
        if let Some(id) = requester.request {
            self.model.requests.push(Request { id, user: requester.user, repeats, draws, until });
        }
    }

    fn end(&mut self, number: u64, ending: Ending) {
        let said = match ending {
            Ending::Confirmed => self.pool.confirm(number),
            Ending::Cancelled => self.pool.cancel(number),
            Ending::Expired => unreachable!("only time does that"),
        };
        if self.model.end(number, ending) {
            assert_eq!(said, Ok(()));
            return;
        }
        let expected = match self.model.ended.iter().find(|&&(other, _)| other == number) {
            Some(&(number, how)) => Refusal::Ended { number, how },
            None => Refusal::NoReservation { number },
        };
        assert_eq!(said, Err(expected));
    }

    fn compare_reservations(&self) {
        let open = self.pool.reservations().map(|open| (open.number(), open.until_us));
        let expected = self.model.reservations.iter().map(|&(number, _, until)| (number, until));
        assert_eq!(open.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        for item in 0..self.model.rows.len() {
            assert_eq!(self.pool.held(item as u32), self.model.held(item));
        }
        for &(number, ending) in &self.model.ended {
            assert_eq!((self.pool.ending(number), self.pool.reservation(number)), (Some(ending), None));
        }
    }

    fn compare_counted(&self) {
        if self.pool.rules().is_none() {
            return;
        }
        for user in 0..3 {
            let counted = self.pool.counted(&[user]).expect("there are rules");
            let tallies = self.model.tallies(Some(user));
            let current = |&(count, until): &(u64, Option<u64>)| match until {
                Some(until) if until <= self.model.now_ms => 0,
                _ => count,
            };
            let limits: Vec<u64> = counted.limits.iter().map(current).collect();
            let expected: Vec<u64> = tallies.limits.iter().map(|&(_, count)| count).collect();
            assert_eq!((limits, counted.misses), (expected, tallies.misses), "user {user}");
        }
        assert!(self.pool.users() <= 3);
    }

    fn give_back(&mut self, number: u8, count: u64, said: bool) {
        let held = self.model.find(&id(number)).map_or(0, |item| self.model.held(item));
        let change = |row: &mut Row| {
            let Some(drawn) = row.drawn.checked_sub(count).filter(|&drawn| drawn >= held) else {
                return false;
            };
            row.drawn = drawn;
            if let Stock::Limited(left) = &mut row.item.stock {
                *left += count;
            }
            true
        };
        self.change(&id(number), said, change, 0);
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Draw => {
                let number = self.model.next_draw;
                let expected = if self.model.rules.need_users() {
                    Err(Empty)
                } else {
                    self.model.draw(&mut self.numbers, None, &[]).map_err(|_| Empty)
                };
                let expected = expected.map(|item| Draw { number, item: item.map(|item| item as u32) });
                assert_eq!(self.pool.draw(), expected);
            }
            Step::DrawMany(count, repeats) => self.draw_many(*count, *repeats),
            Step::Reserve(count, repeats, until) => self.reserve(*count, *repeats, *until),
            Step::Wait(ms) => self.model.now_ms += ms,
            Step::Advance => {
                let is_due = self.model.advance(self.model.now_ms);
                assert_eq!(self.pool.advance(self.model.now_ms * 1000 + 999), is_due);
            }
            Step::CatchUp(draws_max) => {
                let now_ms = self.model.now_ms;
                while !self.pool.catch_up_some(now_ms * 1000, *draws_max) {}
                // Each millisecond, reservations that have expired by its end return their items;
                // then windows end.
                for ms in 0..=now_ms {
                    while let Some((until, number)) =
                        self.model.reservations.iter().map(|&(number, _, until)| (until, number)).min()
                        && until <= ms * 1000
                    {
                        self.model.end(number, Ending::Expired);
                    }
                    self.model.advance(ms);
                }
                assert!(self.pool.next_due().is_none_or(|due_us| due_us > now_ms * 1000));
            }
            Step::GiveBackBy(user, number, count) => {
                let by = By { user: Some(&[*user]), now_ms: self.model.now_ms, request: None };
                let said = self.pool.give_back_by(&by, &id(*number), *count).is_ok();
                self.give_back(*number, *count, said);
                if let Some(item) = self.model.find(&id(*number)).filter(|_| said) {
                    self.model.take_back(*user, item, *count, self.model.now_ms);
                }
            }
            Step::Ask(requester, count, repeats, until) => self.ask(*requester, *count, *repeats, *until),
            Step::End(number, ending) => self.end(*number, *ending),
            Step::ExpireOne(now) => {
                let over = self.model.reservations.iter().map(|&(number, _, until)| (until, number)).min();
                let over = over.filter(|(until, _)| until <= now).map(|(_, number)| number);
                assert_eq!(self.pool.expire_one(*now), over);
                if let Some(number) = over {
                    self.model.end(number, Ending::Expired);
                }
            }
            Step::Reweight(number, weight) => {
                let said = self.pool.reweight(&id(*number), *weight).is_ok();
                let change = |row: &mut Row| {
                    row.item.weight = *weight;
                    true
                };
                self.change(&id(*number), said, change, 1);
            }
            Step::SetStock(number, stock) => {
                let said = self.pool.set_stock(&id(*number), *stock).is_ok();
                let leads =
                    self.model.find(&id(*number)).is_some_and(|item| self.model.leads.contains_key(&item));
                let change = |row: &mut Row| {
                    row.item.stock = *stock;
                    !leads || *stock == Stock::Unlimited
                };
                self.change(&id(*number), said, change, 1);
            }
            Step::Restock(number, units) => {
                let said = self.pool.restock(&id(*number), *units).is_ok();
                let change = |row: &mut Row| {
                    if let Stock::Limited(left) = &mut row.item.stock {
                        let then = (i128::from(*left) + i128::from(*units)).max(0);
                        *left = u64::try_from(then).unwrap_or(u64::MAX);
                    }
                    true
                };
                self.change(&id(*number), said, change, 1);
            }
            Step::GiveBack(number, count) => {
                let said = self.pool.give_back(&id(*number), *count).is_ok();
                self.give_back(*number, *count, said);
            }
            Step::Add(number, weight, stock) => {
                let item = Item { id: id(*number).into(), weight: *weight, stock: *stock };
                let said = self.pool.add(&item).is_ok();
                let mut rows = self.model.rows.clone();
                rows.push(Row { item, drawn: 0, removed: false });
                let fits = self.model.find(&id(*number)).is_none() && self.model.fits(&rows);
                assert_eq!(said, fits, "adding {}", id(*number));
                if fits {
                    self.model.rows = rows;
                    self.model.version += 1;
                }
            }
            Step::Remove(number) => {
                let said = self.pool.remove(&id(*number)).is_ok();
                let fallback = self.model.sold_out == SoldOut::Fallback(id(*number).into());
                let change = |row: &mut Row| {
                    row.item.weight = 0;
                    row.item.stock = Stock::Limited(0);
                    row.removed = true;
                    !fallback
                };
                self.change(&id(*number), said, change, 1);
            }
            Step::BeginEpoch(seed) => {
                self.epochs += 1;
                let (first, secret_before) = (self.pool.epoch().first_draw, self.pool.epoch().secret.clone());
                let commitment = self.pool.next_commitment();
                let revealed =
                    self.pool.begin_epoch(seed, secret(self.epochs + 1)).expect("nothing is staged");
                assert_eq!((revealed.epoch.first_draw, revealed.end), (first, self.model.next_draw));
                assert_eq!(revealed.epoch.secret, secret_before);
                assert_eq!(self.pool.commitment(), commitment);
                self.numbers = Numbers::new(secret(self.epochs).key(seed));
            }
        }
        assert_eq!(seen(&self.pool), expected(&self.model), "after {step:?}");
        self.compare_reservations();
        self.compare_counted();
    }
}

fn does_what_the_model_does<S: Selector>(catalogue: &Catalogue, steps: &[Step]) {
    let mut both = Both::<S>::new(catalogue);
    assert_eq!(seen(&both.pool), expected(&both.model));
    for step in steps {
        both.take(step);
    }
}

/// Returns a pool's image, with its items in parts of two.
fn image<S: Selector>(pool: &Pool<S>) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    pool.write_head(&mut parts[0]);
    let items = pool.urn().len() as u32;
    parts.extend((0..items).step_by(2).map(|first| {
        let mut part = Vec::new();
        pool.write_items(first..items.min(first + 2), &mut part);
        part
    }));
    parts
}

fn read<S: Selector>(parts: &[Vec<u8>]) -> Result<Pool<S>, Unreadable> {
    let (head, items) = parts.split_first().expect("a head");
    let mut image = PoolImage::read(head)?;
    items.iter().try_for_each(|part| image.read_items(part))?;
    image.finish()
}

/// Returns all epochs that a pool knows, and the commitment of the next.
fn epochs<S: Selector>(pool: &Pool<S>) -> (Vec<Option<Revealed>>, Epoch, Commitment) {
    let past = (0..=pool.epoch().index).map(|index| pool.revealed(index)).collect();
    (past, pool.epoch().clone(), pool.next_commitment())
}

/// Writes a pool's image and reads it back.
fn read_back<S: Selector>(pool: &Pool<S>) -> Pool<S> {
    let parts = image(pool);
    let again = read(&parts).expect("it is what was written");
    assert_eq!(image(&again), parts);
    assert_eq!(epochs(&again), epochs(pool));
    again
}

/// Executes groups of steps; reverts and repeats some of them; then replays all from the staged
/// events.
fn taken_back_is_not_done<S: Selector>(catalogue: &Catalogue, groups: &[(Vec<Step>, bool)]) {
    let mut both = Both::<S>::new(catalogue);
    let mut log = Vec::new();
    for (steps, keep) in groups {
        both.pool.stage();
        let take_all = |both: &mut Both<S>| steps.iter().for_each(|step| both.take(step));
        let (before, known) = (seen(&both.pool), epochs(&both.pool));
        let (model, epochs_before) = (both.model.clone(), both.epochs);
        take_all(&mut both);
        if !keep {
            both.pool.revert();
            (both.model, both.epochs) = (model, epochs_before);
            both.numbers = Numbers::new(known.1.key());
            assert_eq!((seen(&both.pool), epochs(&both.pool)), (before, known), "taken back: {steps:?}");
            both.compare_reservations();
            both.pool.stage();
            take_all(&mut both);
        }
        log.extend_from_slice(both.pool.staged());
        both.pool.commit();
        assert_eq!((both.pool.staged(), both.pool.staged_draws()), (&[][..], 0));
    }
    for do_again in [Pool::<S>::apply, Pool::<S>::verify] {
        let mut again = Pool::<S>::new(catalogue, secret(0), secret(1));
        for event in Events::new(&log) {
            let event = event.expect("what was staged is events");
            do_again(&mut again, &event).unwrap_or_else(|divergence| panic!("{event:?}: {divergence}"));
        }
        // Changes count in the version regardless of how they were made.
        assert_eq!(seen(&again), seen(&both.pool));
        assert_eq!(epochs(&again), epochs(&both.pool));
        assert!(again.reservations().eq(both.pool.reservations()));
        both.pool = again;
        both.compare_reservations();
    }
    both.pool = read_back(&both.pool);
    assert_eq!(seen(&both.pool), expected(&both.model));
    both.compare_reservations();
    // The pool that was read back continues like the one that was written.
    groups.iter().flat_map(|(steps, _)| steps).for_each(|step| both.take(step));
}

/// Replays what a pool has staged since it was created, both by its events and by the secret.
fn does_again<S: Selector>(catalogue: &Catalogue, pool: &Pool<S>) {
    for do_again in [Pool::<S>::apply, Pool::<S>::verify] {
        let mut again = Pool::<S>::new(catalogue, secret(1), secret(2));
        for event in Events::new(pool.staged()) {
            let event = event.expect("what was staged is events");
            do_again(&mut again, &event).unwrap_or_else(|divergence| panic!("{event:?}: {divergence}"));
        }
        assert_eq!(seen(&again), seen(pool));
    }
}

/// Draws from one pool with calls of several draws, from the other with one call per draw. If a
/// call wants more draws than are possible, it makes none; or, where the odds of sold-out items are
/// kept, it makes the remaining draws without a prize.
fn one_call_gives_what_many_give<S: Selector>(catalogue: &Catalogue, counts: &[usize]) {
    let new = || {
        let mut pool = Pool::<S>::new(catalogue, secret(1), secret(2));
        pool.stage();
        pool
    };
    let (mut together, mut singly) = (new(), new());
    for &count in counts {
        let (before, mut draws) = (singly.savepoint(), Vec::new());
        let drawn = together.draw_many(count, Repeats::Allowed, &mut draws);
        let one_by_one: Vec<Draw> = (0..count).map_while(|_| singly.draw().ok()).collect();
        let left = one_by_one.len();
        if left == count {
            assert_eq!((drawn, draws), (Ok(()), one_by_one));
        } else if left > 0 && together.urn().keeps_odds() {
            assert_eq!((drawn, &draws[..left]), (Ok(()), &one_by_one[..]));
            let behind = draws[left..].iter().map(|draw| (draw.number, draw.item));
            assert!(behind.eq((singly.next_draw()..).map(|number| (number, None)).take(count - left)));
            assert_eq!(together.next_draw(), singly.next_draw() + (count - left) as u64);
            break;
        } else {
            let too_few = if left == 0 { Refusal::Empty } else { Refusal::NotSoMany { wanted: count, left } };
            assert_eq!((drawn, draws), (Err(too_few), Vec::new()));
            singly.back_to(before);
        }
        assert_eq!(together.staged(), singly.staged());
        assert_eq!(seen(&together), seen(&singly));
    }
    does_again(catalogue, &together);
    let fresh = image(&Pool::<S>::new(catalogue, secret(1), secret(2)));
    together.revert();
    assert_eq!(image(&together), fresh, "all of it can be taken back");
}

proptest! {
    #[test]
    fn draws_of_a_call_are_those_of_as_many_calls(
        items in vec((0_u64..6, prop_oneof![
            2 => (0_u64..3).prop_map(Stock::Limited),
            3 => (0_u64..200).prop_map(Stock::Limited),
            1 => Just(Stock::Unlimited),
        ]), 1..40),
        mode in prop_oneof![3 => Just(Mode::FixedOdds), 1 => Just(Mode::PerUnit)],
        sold_out in prop_oneof![
            2 => Just(None), 1 => Just(Some(None)), 2 => any::<Index>().prop_map(|item| Some(Some(item))),
        ],
        counts in vec(1_usize..300, 1..6),
    ) {
        let items: Vec<Item> = (0..)
            .zip(items)
            .map(|(number, (weight, stock)): (u8, _)| Item { id: number.to_string().into(), weight, stock })
            .collect();
        let sold_out = match sold_out {
            None => SoldOut::Renormalise,
            Some(None) => SoldOut::NoPrize,
            Some(Some(item)) => SoldOut::Fallback(item.get(&items).id.clone()),
        };
        if let Ok(catalogue) = Catalogue::with(items, mode, sold_out) {
            one_call_gives_what_many_give::<WideTree>(&catalogue, &counts);
            one_call_gives_what_many_give::<Alias>(&catalogue, &counts);
        }
    }

    #[test]
    fn a_pool_does_what_the_model_does(catalogue in catalogue(), steps in vec(step(), 0..60)) {
        does_what_the_model_does::<WideTree>(&catalogue, &steps);
        does_what_the_model_does::<Alias>(&catalogue, &steps);
        does_what_the_model_does::<Fenwick>(&catalogue, &steps);
        does_what_the_model_does::<PrefixSum>(&catalogue, &steps);
    }

    #[test]
    fn an_image_that_is_damaged_is_refused_or_that_of_a_sound_pool(
        catalogue in catalogue(), steps in vec(step(), 0..30), part: Index, flipped: (Index, u8), cut: bool,
    ) {
        let mut both = Both::<WideTree>::new(&catalogue);
        steps.iter().for_each(|step| both.take(step));
        let mut parts = image(&both.pool);
        let part = part.get_mut(&mut parts);
        let at = flipped.0.index(part.len());
        if cut {
            part.truncate(at);
        } else {
            part[at] ^= flipped.1;
        }
        if let Ok(mut pool) = read::<WideTree>(&parts) {
            // Whatever state it has, the pool gives its items, and then nothing.
            for _ in 0..100 {
                _ = pool.draw();
            }
            let open: Vec<u64> = pool.reservations().map(Reservation::number).collect();
            for number in open {
                pool.cancel(number).expect("it is open");
            }
            read_back(&pool);
        }
    }

    #[test]
    fn what_is_taken_back_has_not_been_done(
        catalogue in catalogue(), groups in vec((vec(step(), 0..8), any::<bool>()), 0..8),
    ) {
        taken_back_is_not_done::<WideTree>(&catalogue, &groups);
        taken_back_is_not_done::<Alias>(&catalogue, &groups);
        taken_back_is_not_done::<Fenwick>(&catalogue, &groups);
        taken_back_is_not_done::<PrefixSum>(&catalogue, &groups);
    }
}

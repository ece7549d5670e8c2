//! The specification of a pool: a list of items, and for each draw a selector built from the
//! weights in force.

use std::collections::BTreeMap;
use tidemark_pool::{
    AMOUNT_MAX, Catalogue, Draw, Ending, Item, Mode, Numbers, Release, Repeats, Rules, Schedule, Scope,
    Selector, SoldOut, Stock, Unsold,
};

/// An item of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) item: Item,
    pub(crate) drawn: u64,
    pub(crate) removed: bool,
}

/// An answered request, by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u8,
    pub(crate) user: Option<u8>,
    pub(crate) repeats: Repeats,
    pub(crate) draws: Vec<Draw>,
    pub(crate) until: Option<u64>,
}

/// The counts of the rules: for each limit its window and its count, and for each guarantee the
/// number of draws in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tallies {
    pub(crate) limits: Vec<(u64, u64)>,
    pub(crate) misses: Vec<u64>,
}

/// The reason why nothing is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    Empty,
    Limited(u64, Option<u64>),
    TooHeavy,
}

/// The terms that the rules set for a draw.
#[derive(Debug, Default)]
struct Terms {
    barred: Vec<usize>,
    alone: Option<Vec<usize>>,
    boosts: Vec<(Vec<usize>, u64)>,
    relief: Option<(u64, Option<u64>)>,
}

/// A pool without any optimization.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) rows: Vec<Row>,
    pub(crate) mode: Mode,
    pub(crate) sold_out: SoldOut,
    pub(crate) next_draw: u64,
    pub(crate) version: u64,
    /// The reservations: number, items of the draws, and deadline.
    pub(crate) reservations: Vec<(u64, Vec<Option<usize>>, u64)>,
    /// The user of each reservation, and the time at which it was made.
    pub(crate) holders: BTreeMap<u64, (u8, u64)>,
    pub(crate) rules: Rules,
    pub(crate) users: BTreeMap<u8, Tallies>,
    /// The counts for the whole pool.
    pub(crate) misses: Vec<u64>,
    pub(crate) now_ms: u64,
    /// The tables of the items that are not in the first table, and the tables that items lead to.
    pub(crate) tables: BTreeMap<usize, Box<str>>,
    pub(crate) leads: BTreeMap<usize, Box<str>>,
    pub(crate) schedule: Schedule,
    /// The time up to which the schedule has been applied.
    pub(crate) kept_ms: u64,
    pub(crate) ended: Vec<(u64, Ending)>,
    pub(crate) requests: Vec<Request>,
    select: fn(&[u64], u64) -> usize,
}

impl Model {
    pub(crate) fn new<S: Selector>(catalogue: &Catalogue) -> Self {
        let row = |item: &Item| Row { item: item.clone(), drawn: 0, removed: false };
        let mut tables = BTreeMap::new();
        let mut place = catalogue.first_items().len();
        for (name, items) in catalogue.tables() {
            tables.extend((place..place + items.len()).map(|item| (item, name.into())));
            place += items.len();
        }
        let leads = (0..catalogue.items().len())
            .filter_map(|item| Some((item, catalogue.leads_to(item as u32)?.into())));
        Self {
            rows: catalogue.items().iter().map(row).collect(),
            mode: catalogue.mode(),
            sold_out: catalogue.sold_out().clone(),
            next_draw: 0,
            version: 1,
            reservations: Vec::new(),
            ended: Vec::new(),
            requests: Vec::new(),
            holders: BTreeMap::new(),
            users: BTreeMap::new(),
            misses: vec![0; catalogue.rules().guarantees().len()],
            rules: catalogue.rules().clone(),
            now_ms: 0,
            tables,
            leads: leads.collect(),
            schedule: catalogue.schedule().clone(),
            kept_ms: 0,
            select: |weights, point| S::new(weights).select(point),
        }
    }

    /// Returns the window of a release that begins at this time, counted from 1; one more than the
    /// release has windows if the last one ends then.
    fn window_at(release: &Release, at_ms: u64) -> Option<u64> {
        let since = at_ms.checked_sub(release.from_ms).filter(|since| since % release.every_ms == 0)?;
        Some(since / release.every_ms + 1).filter(|&window| window <= release.times + 1)
    }

    /// Returns the units that arrive in a window: each unit arrives in the window that contains its
    /// midpoint.
    fn units_in(release: &Release, window: u64) -> u64 {
        let window_of = |unit: u64| ((2 * unit - 1) * release.times).div_ceil(2 * release.units);
        (1..=release.units).filter(|&unit| window_of(unit) == window).count() as u64
    }

    /// Returns the row of a release's item, whose number is its place in the catalogue.
    fn row_of(release: &Release) -> usize {
        release.item.trim_start_matches("item ").parse().expect("a number")
    }

    /// Returns the units of an item that the schedule has not released yet.
    fn promised(&self, item: usize) -> u64 {
        let of_item = self.schedule.releases().iter().filter(|release| Self::row_of(release) == item);
        let windows = of_item.flat_map(|release| (1..=release.times).map(move |window| (release, window)));
        let later = windows
            .filter(|(release, window)| release.from_ms + release.every_ms * (window - 1) > self.kept_ms);
        later.map(|(release, window)| Self::units_in(release, window)).sum()
    }

    /// Applies the schedule, moment by moment; returns whether anything was due.
    pub(crate) fn advance(&mut self, now_ms: u64) -> bool {
        let mut is_due = false;
        while self.kept_ms < now_ms {
            self.kept_ms += 1;
            let releases = self.schedule.releases().iter();
            let now: Vec<(usize, bool, u64)> = releases
                .filter_map(|release| {
                    let window = Self::window_at(release, self.kept_ms)?;
                    let lapses = release.unsold == Unsold::Lapses;
                    let units = if window > release.times { 0 } else { Self::units_in(release, window) };
                    is_due |= lapses || units > 0;
                    Some((Self::row_of(release), lapses && window > 1, units))
                })
                .collect();
            let mut stocks = |item: usize, change: &dyn Fn(&mut u64)| {
                if let Row { item: Item { stock: Stock::Limited(left), .. }, removed: false, .. } =
                    &mut self.rows[item]
                {
                    change(left);
                }
            };
            now.iter()
                .filter(|(_, lapses, _)| *lapses)
                .for_each(|(item, ..)| stocks(*item, &|left| *left = 0));
            now.iter().for_each(|(item, _, units)| stocks(*item, &|left| *left += units));
        }
        is_due
    }

    fn has(row: &Row) -> bool {
        row.item.stock != Stock::Limited(0)
    }

    fn in_force(&self, row: &Row) -> u64 {
        match (self.mode, row.item.stock) {
            (Mode::PerUnit, Stock::Limited(left)) => row.item.weight * left,
            (Mode::PerUnit, Stock::Unlimited) => 0,
            (Mode::FixedOdds, Stock::Limited(0)) if self.sold_out == SoldOut::Renormalise => 0,
            (Mode::FixedOdds, _) => row.item.weight,
        }
    }

    /// Returns the places of the items of a table, or of the first table.
    fn items_of(&self, table: Option<&str>) -> Vec<usize> {
        (0..self.rows.len()).filter(|&item| self.tables.get(&item).map(|name| &**name) == table).collect()
    }

    /// Returns an item's share of its table if some items are hidden and others are barred.
    fn share(&self, item: usize, hidden: &[usize], barred: &[usize]) -> u64 {
        let row = &self.rows[item];
        let kept = self.mode == Mode::FixedOdds && self.sold_out != SoldOut::Renormalise;
        match self.leads.get(&item) {
            Some(table) if self.sum_of_table(Some(table), hidden, barred) == 0 => 0,
            Some(_) => row.item.weight,
            None if hidden.contains(&item) || (!kept && barred.contains(&item)) => 0,
            None => self.in_force(row),
        }
    }

    /// Returns the sum of the shares of a table.
    pub(crate) fn sum_of_table(&self, table: Option<&str>, hidden: &[usize], barred: &[usize]) -> u64 {
        self.items_of(table).into_iter().map(|item| self.share(item, hidden, barred)).sum()
    }

    /// Returns whether a table has an item in stock that has a weight and is not barred.
    fn is_on_sale(&self, table: Option<&str>, barred: &[usize]) -> bool {
        self.items_of(table).into_iter().any(|item| {
            let is_there = || Self::has(&self.rows[item]) && !barred.contains(&item);
            let has_any = match self.leads.get(&item) {
                Some(table) => self.is_on_sale(Some(table), barred),
                None => is_there(),
            };
            self.rows[item].item.weight > 0 && has_any
        })
    }

    /// Returns whether an item is one of these, or one of these leads to it.
    fn is_among(&self, item: usize, items: &[usize]) -> bool {
        let is_behind = |other: &usize| {
            self.leads.get(other).is_some_and(|table| self.is_among(item, &self.items_of(Some(table))))
        };
        items.contains(&item) || items.iter().any(is_behind)
    }

    pub(crate) fn weights_in_force(&self) -> Vec<u64> {
        (0..self.rows.len()).map(|item| self.share(item, &[], &[])).collect()
    }

    fn fallback(&self) -> Option<usize> {
        let SoldOut::Fallback(id) = &self.sold_out else { return None };
        self.rows.iter().position(|row| !row.removed && row.item.id == *id && Self::has(row))
    }

    fn take(&mut self, item: usize) -> Option<usize> {
        let row = &mut self.rows[item];
        if let Stock::Limited(left) = &mut row.item.stock {
            *left -= 1;
        }
        row.drawn += 1;
        Some(item)
    }

    /// Returns the items of a rule. A removed item never gives anything, and a new item may have
    /// its id.
    fn items(&self, ids: &[Box<str>]) -> Vec<usize> {
        ids.iter().filter_map(|id| self.rows.iter().position(|row| row.item.id == *id)).collect()
    }

    fn window_end(window: u64, per_ms: Option<u64>) -> Option<u64> {
        per_ms.map(|per_ms| (window + 1) * per_ms)
    }

    /// Returns a user's current counts.
    pub(crate) fn tallies(&self, user: Option<u8>) -> Tallies {
        let new = Tallies {
            limits: vec![(0, 0); self.rules.limits().len()],
            misses: vec![0; self.rules.guarantees().len()],
        };
        let mut tallies = user.and_then(|user| self.users.get(&user).cloned()).unwrap_or(new);
        for ((window, count), limit) in tallies.limits.iter_mut().zip(self.rules.limits()) {
            let now = limit.per_ms.map_or(0, |per_ms| self.now_ms / per_ms);
            if now > *window {
                (*window, *count) = (now, 0);
            }
        }
        for ((own, pools), guarantee) in
            tallies.misses.iter_mut().zip(&self.misses).zip(self.rules.guarantees())
        {
            if guarantee.scope == Scope::Pool {
                *own = *pools;
            }
        }
        tallies
    }

    fn terms(&self, user: Option<u8>) -> Result<Terms, Stop> {
        let (tallies, mut terms) = (self.tallies(user), Terms::default());
        for (&(window, count), limit) in tallies.limits.iter().zip(self.rules.limits()) {
            if count < limit.max {
                continue;
            }
            let reached = (limit.max, Self::window_end(window, limit.per_ms));
            let Some(ids) = &limit.wins_of else { return Err(Stop::Limited(reached.0, reached.1)) };
            terms.barred.extend(self.items(ids));
            let sooner =
                |other: &(u64, Option<u64>)| other.1.unwrap_or(u64::MAX) <= reached.1.unwrap_or(u64::MAX);
            terms.relief = terms.relief.filter(sooner).or(Some(reached));
        }
        for (&misses, guarantee) in tallies.misses.iter().zip(self.rules.guarantees()) {
            let mut items = self.items(&guarantee.of);
            items.sort_unstable();
            if let Some(soft) = guarantee.soft
                && misses + 1 >= soft.from
            {
                terms.boosts.push((items.clone(), (misses + 2 - soft.from) * soft.step));
            }
            if misses == guarantee.after && terms.alone.is_none() {
                terms.alone = Some(items);
            }
        }
        Ok(terms)
    }

    /// Returns the item at a point among these items.
    fn at(items: &[usize], weight: impl Fn(usize) -> u64, mut point: u64) -> usize {
        for &item in items {
            if point < weight(item) {
                return item;
            }
            point -= weight(item);
        }
        panic!("the point is theirs")
    }

    /// Draws for a user, with some items hidden.
    pub(crate) fn draw(
        &mut self,
        numbers: &mut Numbers,
        user: Option<u8>,
        hidden: &[usize],
    ) -> Result<Option<usize>, Stop> {
        let terms = self.terms(user)?;
        let drawn =
            self.draw_by_terms(numbers, &terms, hidden).map_err(|stop| match (stop, terms.relief) {
                (Stop::Empty, Some((max, again))) => Stop::Limited(max, again),
                (stop, _) => stop,
            })?;
        self.next_draw += 1;
        let drawn = drawn.and_then(|item| self.take(item));
        self.count(user, drawn);
        Ok(drawn)
    }

    /// Returns how many of `count` draws of one call the remaining stock allows, found by drawing
    /// with other numbers. If a user has reached a limit of wins, the items of that limit count as
    /// sold out.
    pub(crate) fn possible(&self, user: Option<u8>, count: usize, repeats: Repeats) -> Result<usize, Stop> {
        let keeps = self.mode == Mode::FixedOdds && self.sold_out != SoldOut::Renormalise;
        let has_wins = self.rules.limits().iter().any(|limit| limit.wins_of.is_some());
        if keeps && (repeats == Repeats::Allowed || has_wins || self.meets_sold_out(None)) {
            return Ok(count);
        }
        let (mut other, terms) = (self.clone(), self.terms(user)?);
        other.rules = Rules::default();
        terms.barred.iter().for_each(|&item| other.rows[item].item.stock = Stock::Limited(0));
        let (mut numbers, mut hidden) = (Numbers::new([255; 32]), Vec::new());
        let possible = (0..count).find(|&drawn| {
            let is_over =
                drawn > 0 && repeats == Repeats::Excluded && other.sum_of_table(None, &hidden, &[]) == 0;
            let drawn = if is_over { Err(Stop::Empty) } else { other.draw(&mut numbers, None, &hidden) };
            hidden.extend(drawn.iter().flatten().filter(|_| repeats == Repeats::Excluded));
            drawn.is_err()
        });
        let possible = possible.unwrap_or(count);
        match terms.relief {
            Some((max, again_ms)) if possible < count => Err(Stop::Limited(max, again_ms)),
            _ => Ok(possible),
        }
    }

    /// Returns whether a draw from a table, or from the first table, can meet a sold-out item.
    fn meets_sold_out(&self, table: Option<&str>) -> bool {
        self.items_of(table).into_iter().filter(|&item| self.share(item, &[], &[]) > 0).any(|item| match self
            .leads
            .get(&item)
        {
            Some(table) => self.meets_sold_out(Some(table)),
            None => !Self::has(&self.rows[item]),
        })
    }

    /// Returns the limit of draws that a user reaches within `count` draws.
    pub(crate) fn reached_within(&self, user: Option<u8>, count: usize) -> Option<(u64, Option<u64>)> {
        let tallies = self.tallies(user);
        let reached = (0..count as u64).find_map(|draws| {
            let limits = tallies.limits.iter().zip(self.rules.limits());
            let mut of_draws = limits.filter(|(_, limit)| limit.wins_of.is_none());
            of_draws.find(|((_, used), limit)| used + draws >= limit.max)
        });
        reached.map(|(&(window, _), limit)| (limit.max, Self::window_end(window, limit.per_ms)))
    }

    /// Returns whether the weights would be too large for the last of `count` draws if all draws
    /// before it were in vain.
    pub(crate) fn may_be_too_heavy(&self, user: Option<u8>, count: usize) -> bool {
        let tallies = self.tallies(user);
        let boosted =
            tallies.misses.iter().zip(self.rules.guarantees()).filter_map(|(&misses, guarantee)| {
                let (misses, soft) = (guarantee.after.min(misses + count as u64 - 1), guarantee.soft?);
                let items = self.items(&guarantee.of).into_iter().filter(|&item| Self::has(&self.rows[item]));
                let weight: u128 = items.map(|item| u128::from(self.share(item, &[], &[]))).sum();
                let times = u128::from((misses + 2).saturating_sub(soft.from)) * u128::from(soft.step);
                Some(weight * times)
            });
        boosted.sum::<u128>() + u128::from(self.sum_of_table(None, &[], &[])) > u128::from(AMOUNT_MAX)
    }

    /// Makes a draw that gives nothing, because no item is left to give.
    pub(crate) fn draw_nothing(&mut self, user: Option<u8>) {
        self.next_draw += 1;
        self.count(user, None);
    }

    /// Counts the result of a draw.
    fn count(&mut self, user: Option<u8>, drawn: Option<usize>) {
        let mut tallies = self.tallies(user);
        let gives = |ids: &[Box<str>]| drawn.is_some_and(|item| self.is_among(item, &self.items(ids)));
        for ((_, count), limit) in tallies.limits.iter_mut().zip(self.rules.limits()) {
            *count += u64::from(limit.wins_of.as_deref().is_none_or(gives));
        }
        for (misses, guarantee) in tallies.misses.iter_mut().zip(self.rules.guarantees()) {
            *misses = if gives(&guarantee.of) { 0 } else { guarantee.after.min(*misses + 1) };
        }
        for (place, guarantee) in self.rules.guarantees().iter().enumerate() {
            if guarantee.scope == Scope::Pool {
                self.misses[place] = tallies.misses[place];
            }
        }
        if let Some(user) = user {
            self.users.insert(user, tallies);
        }
    }

    /// Reverts the counts of wins that were drawn at that time.
    pub(crate) fn take_back(&mut self, user: u8, item: usize, times: u64, drawn_ms: u64) {
        let limits = self.rules.limits().iter();
        let of: Vec<bool> = limits
            .map(|limit| limit.wins_of.as_ref().is_some_and(|ids| self.items(ids).contains(&item)))
            .collect();
        let Some(tallies) = self.users.get_mut(&user) else { return };
        for (((window, count), limit), of) in tallies.limits.iter_mut().zip(self.rules.limits()).zip(of) {
            if of && *window == limit.per_ms.map_or(0, |per_ms| drawn_ms / per_ms) {
                *count = count.saturating_sub(times);
            }
        }
    }

    fn draw_by_terms(
        &self,
        numbers: &mut Numbers,
        terms: &Terms,
        hidden: &[usize],
    ) -> Result<Option<usize>, Stop> {
        let barred = &terms.barred;
        let share = |item: usize| self.share(item, hidden, barred);
        let is_there = |item: usize| Self::has(&self.rows[item]) && !barred.contains(&item);
        let worth = |item: usize| if is_there(item) { share(item) } else { 0 };
        let sum_of = |items: &[usize]| items.iter().map(|&item| worth(item)).sum::<u64>();
        if let Some(items) = &terms.alone
            && sum_of(items) > 0
        {
            let point = numbers.below(self.next_draw, sum_of(items));
            return Ok(Some(self.descend(Self::at(items, worth, point), numbers, hidden, barred)));
        }
        let total = self.sum_of_table(None, hidden, barred);
        let spans: Vec<u128> = terms
            .boosts
            .iter()
            .map(|(items, times)| u128::from(sum_of(items)) * u128::from(*times))
            .collect();
        let sum = u128::from(total) + spans.iter().sum::<u128>();
        let Some(sum) = u64::try_from(sum).ok().filter(|&sum| sum <= AMOUNT_MAX) else {
            return Err(Stop::TooHeavy);
        };
        let fallback = self.fallback().filter(|item| !hidden.contains(item) && is_there(*item));
        if sum == 0 {
            return fallback
                .filter(|_| self.mode == Mode::PerUnit && hidden.is_empty())
                .map(Some)
                .ok_or(Stop::Empty);
        }
        let point = numbers.below(self.next_draw, sum);
        let met = if point < total {
            self.select_in(None, point, hidden, barred)
        } else {
            let mut point = u128::from(point - total);
            let boost = spans.iter().position(|&span| {
                let is_here = point < span;
                point -= if is_here { 0 } else { span };
                is_here
            });
            let (items, times) = &terms.boosts[boost.expect("the point is theirs")];
            Self::at(items, worth, (point / u128::from(*times)) as u64)
        };
        let met = self.descend(met, numbers, hidden, barred);
        if is_there(met) {
            return Ok(Some(met));
        }
        if fallback.is_none() && !self.is_on_sale(None, barred) { Err(Stop::Empty) } else { Ok(fallback) }
    }

    /// Returns the item of a table at a point.
    fn select_in(&self, table: Option<&str>, point: u64, hidden: &[usize], barred: &[usize]) -> usize {
        let items = self.items_of(table);
        let shares: Vec<u64> = items.iter().map(|&item| self.share(item, hidden, barred)).collect();
        items[(self.select)(&shares, point)]
    }

    /// Returns the item that another one finally leads to.
    fn descend(&self, mut met: usize, numbers: &mut Numbers, hidden: &[usize], barred: &[usize]) -> usize {
        let mut level = 0;
        while let Some(table) = self.leads.get(&met) {
            level += 1;
            let sum = self.sum_of_table(Some(table), hidden, barred);
            let point = numbers.below_at(level, self.next_draw, sum);
            met = self.select_in(Some(table), point, hidden, barred);
        }
        met
    }

    /// Returns the item with an id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.rows.iter().position(|row| !row.removed && &*row.item.id == id)
    }

    /// Returns whether the items are still valid with one of them replaced.
    pub(crate) fn fits(&self, with: &[Row]) -> bool {
        let sum = (0..).zip(with).try_fold(0_u64, |sum, (item, row)| {
            let counts = match (self.mode, row.item.stock) {
                (Mode::FixedOdds, _) => Some(row.item.weight),
                // All drawn units may be returned.
                (Mode::PerUnit, Stock::Limited(left)) => {
                    let beside = row.drawn + self.promised(item);
                    left.checked_add(beside).and_then(|supply| row.item.weight.checked_mul(supply))
                }
                (Mode::PerUnit, Stock::Unlimited) => (row.item.weight == 0).then_some(0),
            };
            sum.checked_add(counts?).filter(|&sum| sum <= AMOUNT_MAX)
        });
        let supplies = (0..).zip(with).all(|(item, row)| match row.item.stock {
            Stock::Limited(left) => {
                left.checked_add(row.drawn + self.promised(item)).is_some_and(|supply| supply <= AMOUNT_MAX)
            }
            Stock::Unlimited => true,
        });
        sum.is_some() && supplies
    }

    pub(crate) fn held(&self, item: usize) -> u64 {
        let all = self.reservations.iter().flat_map(|(_, items, _)| items);
        all.filter(|&&held| held == Some(item)).count() as u64
    }

    /// Ends a reservation unless it has ended; returns whether it ended in this way.
    pub(crate) fn end(&mut self, number: u64, ending: Ending) -> bool {
        let Some(place) = self.reservations.iter().position(|&(other, ..)| other == number) else {
            return self.ended.contains(&(number, ending));
        };
        let (_, items, _) = self.reservations.remove(place);
        let holder = self.holders.remove(&number);
        if ending != Ending::Confirmed {
            for item in items.into_iter().flatten() {
                if let Some((user, drawn_ms)) = holder {
                    self.take_back(user, item, 1, drawn_ms);
                }
                let row = &mut self.rows[item];
                row.drawn -= 1;
                if let Stock::Limited(left) = &mut row.item.stock {
                    *left += 1;
                }
            }
        }
        self.ended.push((number, ending));
        true
    }
}

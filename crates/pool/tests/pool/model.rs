//! A pool as its specification has it: a list of items, and for each draw a selector that is made of what counts in it.

use tidemark_pool::{
    AMOUNT_MAX, Draw, Empty, Ending, Item, Mode, Numbers, Repeats, Selector, SoldOut, Stock,
};

/// An item of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) item: Item,
    pub(crate) drawn: u64,
    pub(crate) removed: bool,
}

/// What was asked for under an id, and given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) id: u8,
    pub(crate) user: Option<u8>,
    pub(crate) repeats: Repeats,
    pub(crate) draws: Vec<Draw>,
    pub(crate) until: Option<u64>,
}

/// A pool without anything that would make it quick.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    pub(crate) rows: Vec<Row>,
    pub(crate) mode: Mode,
    pub(crate) sold_out: SoldOut,
    pub(crate) next_draw: u64,
    pub(crate) version: u64,
    /// What is set aside: the number, the items of the draws, and until when.
    pub(crate) reservations: Vec<(u64, Vec<Option<usize>>, u64)>,
    pub(crate) ended: Vec<(u64, Ending)>,
    pub(crate) requests: Vec<Request>,
    select: fn(&[u64], u64) -> usize,
}

impl Model {
    pub(crate) fn new<S: Selector>(items: &[Item], mode: Mode, sold_out: SoldOut) -> Self {
        let row = |item: &Item| Row { item: item.clone(), drawn: 0, removed: false };
        Self {
            rows: items.iter().map(row).collect(),
            mode,
            sold_out,
            next_draw: 0,
            version: 1,
            reservations: Vec::new(),
            ended: Vec::new(),
            requests: Vec::new(),
            select: |weights, point| S::new(weights).select(point),
        }
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

    pub(crate) fn weights_in_force(&self) -> Vec<u64> {
        self.rows.iter().map(|row| self.in_force(row)).collect()
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

    /// A draw, with some items hidden.
    pub(crate) fn draw(&mut self, numbers: &mut Numbers, hidden: &[usize]) -> Result<Option<usize>, Empty> {
        let mut weights = self.weights_in_force();
        for &item in hidden {
            weights[item] = 0;
        }
        let fallback = self.fallback().filter(|item| !hidden.contains(item));
        let total: u64 = weights.iter().sum();
        if total == 0 {
            let item = fallback.filter(|_| self.mode == Mode::PerUnit && hidden.is_empty());
            let item = item.ok_or(Empty)?;
            self.next_draw += 1;
            return Ok(self.take(item));
        }
        let point = numbers.below(self.next_draw, total);
        let met = (self.select)(&weights, point);
        if Self::has(&self.rows[met]) {
            self.next_draw += 1;
            return Ok(self.take(met));
        }
        let on_sale = self.rows.iter().any(|row| row.item.weight > 0 && Self::has(row));
        if fallback.is_none() && !on_sale {
            return Err(Empty);
        }
        self.next_draw += 1;
        Ok(fallback.and_then(|item| self.take(item)))
    }

    /// The item of an id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.rows.iter().position(|row| !row.removed && &*row.item.id == id)
    }

    /// Whether the items, one of them replaced, still fit together.
    pub(crate) fn fits(&self, with: &[Row]) -> bool {
        let sum = with.iter().try_fold(0_u64, |sum, row| {
            let counts = match (self.mode, row.item.stock) {
                (Mode::FixedOdds, _) => Some(row.item.weight),
                // All of it may come back.
                (Mode::PerUnit, Stock::Limited(left)) => {
                    left.checked_add(row.drawn).and_then(|supply| row.item.weight.checked_mul(supply))
                }
                (Mode::PerUnit, Stock::Unlimited) => (row.item.weight == 0).then_some(0),
            };
            sum.checked_add(counts?).filter(|&sum| sum <= AMOUNT_MAX)
        });
        let supplies = with.iter().all(|row| match row.item.stock {
            Stock::Limited(left) => left.checked_add(row.drawn).is_some_and(|supply| supply <= AMOUNT_MAX),
            Stock::Unlimited => true,
        });
        sum.is_some() && supplies
    }

    pub(crate) fn held(&self, item: usize) -> u64 {
        let all = self.reservations.iter().flat_map(|(_, items, _)| items);
        all.filter(|&&held| held == Some(item)).count() as u64
    }

    /// Ends a reservation, if it has not ended; whether it has ended like this.
    pub(crate) fn end(&mut self, number: u64, ending: Ending) -> bool {
        let Some(place) = self.reservations.iter().position(|&(other, ..)| other == number) else {
            return self.ended.contains(&(number, ending));
        };
        let (_, items, _) = self.reservations.remove(place);
        if ending != Ending::Confirmed {
            for item in items.into_iter().flatten() {
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

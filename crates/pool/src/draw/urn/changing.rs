//! Changes between draws: adding and removing items, changing weights and stock, giving units back.

use super::{Rule, Urn, counted, promised};
use crate::catalogue::item::{AMOUNT_MAX, Item, Stock};
use crate::catalogue::{CatalogueError, ITEMS_MAX, check_item_id};
use crate::draw::selector::Selector;
use crate::draw::stocks::{Standing, Stocks, UNLIMITED_DRAWN_MAX};
use crate::refusal::Refusal;

/// State of an item before a change, to undo it.
#[derive(Debug, Clone)]
#[must_use = "for a caller that may undo it"]
pub struct Change {
    item: u32,
    what: What,
    weight: u64,
    standing: Standing,
    version: u64,
}

impl Change {
    /// Returns the item that was changed.
    pub fn item(&self) -> u32 {
        self.item
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing
    }
}

/// An item after a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Altered {
    pub(crate) item: u32,
    pub(crate) weight: u64,
    pub(crate) stock: Stock,
}

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Changed,
    Added,
    Removed,
}

impl<S: Selector> Urn<S> {
    /// Sets an item's weight. O(log n) with most selectors.
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::TooMuch`].
    pub fn reweight(&mut self, id: &str, weight: u64) -> Result<Change, Refusal> {
        let item = self.found(id)?;
        self.change(item, weight, self.stocks.stock(item))
    }

    /// Sets an item's stock, whatever was left. The number drawn does not change.
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::TooMuch`], and [`Refusal::Catalogue`] if an item of a
    /// raffle would get unlimited tickets.
    pub fn set_stock(&mut self, id: &str, stock: Stock) -> Result<Change, Refusal> {
        let item = self.found(id)?;
        self.change(item, self.weights[item as usize], stock)
    }

    /// Adds units to an item's stock, or removes at most as many as are left. An unlimited item
    /// stays unlimited.
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::TooMuch`].
    pub fn restock(&mut self, id: &str, units: i64) -> Result<Change, Refusal> {
        let item = self.found(id)?;
        let then = match self.stocks.stock(item) {
            Stock::Unlimited => Stock::Unlimited,
            Stock::Limited(left) if units < 0 => Stock::Limited(left.saturating_sub(units.unsigned_abs())),
            Stock::Limited(left) => {
                let then = left.checked_add(units.unsigned_abs());
                Stock::Limited(then.ok_or_else(|| Refusal::TooMuch { id: id.into() })?)
            }
        };
        self.change(item, self.weights[item as usize], then)
    }

    /// Returns drawn units to stock, except the `held` ones. The catalogue's version does not
    /// change.
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::NotDrawn`].
    pub fn give_back(&mut self, id: &str, count: u64, held: u64) -> Result<Change, Refusal> {
        let item = self.found(id)?;
        let drawn = self.stocks.drawn(item).saturating_sub(held);
        if count > drawn {
            return Err(Refusal::NotDrawn { id: id.into(), count, drawn });
        }
        Ok(self.put_back(item, count))
    }

    /// Appends an item.
    ///
    /// # Errors
    /// [`Refusal::Catalogue`] and [`Refusal::TooMuch`].
    pub fn add(&mut self, item: &Item) -> Result<Change, Refusal> {
        let number = self.ids.len() + 1;
        if number > ITEMS_MAX {
            return Err(CatalogueError::TooManyItems { items: number }.into());
        }
        check_item_id(number, &item.id)?;
        if let Some(first) = self.ids.find(&item.id) {
            let first = first as usize + 1;
            return Err(CatalogueError::DuplicateId { number, first, id: item.id.clone() }.into());
        }
        if let Stock::Limited(quantity) = item.stock
            && quantity > AMOUNT_MAX
        {
            return Err(CatalogueError::QuantityTooLarge { number, id: item.id.clone(), quantity }.into());
        }
        self.check(number, &item.id, item.weight, item.stock, 0, 0)?;
        let added = self.ids.push(&item.id);
        self.stocks.push(Stock::Limited(0));
        self.weights.push(0);
        self.selector.push(0);
        let change = self.note(added, What::Added);
        self.version += 1;
        let stock = item.stock;
        self.set(added, item.weight, |stocks| {
            stocks.restock(added, stock).expect("nothing has been drawn of it, so any stock fits");
        });
        Ok(change)
    }

    /// Removes an item: it is not drawn again, and its id can be reused. Its number is not reused.
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::IsFallback`].
    pub fn remove(&mut self, id: &str) -> Result<Change, Refusal> {
        let item = self.found(id)?;
        if let Rule::Keep { fallback } | Rule::PerUnit { fallback } = self.rule
            && fallback == Some(item)
        {
            return Err(Refusal::IsFallback { id: id.into() });
        }
        let change = self.note(item, What::Removed);
        self.version += 1;
        self.ids.release(item);
        self.set(item, 0, |stocks| {
            stocks
                .restock(item, Stock::Limited(0))
                .expect("what was drawn fits, so it does without the rest");
        });
        Ok(change)
    }

    /// Undoes a change. Undo changes and draws in reverse order. O(log n) with most selectors.
    pub fn undo(&mut self, change: &Change) {
        let &Change { item, what, weight, standing, version } = change;
        self.version = version;
        if what == What::Removed {
            self.ids.take_back(item);
        }
        self.set(item, weight, |stocks| stocks.stand(item, standing));
        if what == What::Added {
            assert_eq!(item as usize + 1, self.ids.len(), "the item that was added last is undone first");
            self.ids.pop();
            self.stocks.pop();
            self.weights.pop();
            self.selector.pop();
        }
    }

    /// Returns the state of an item, even if it was removed.
    pub(crate) fn altered(&self, item: u32) -> Altered {
        Altered { item, weight: self.weights[item as usize], stock: self.stocks.stock(item) }
    }

    pub(crate) fn alter(&mut self, item: u32, weight: u64, stock: Stock) -> Result<Change, Refusal> {
        self.change(item, weight, stock)
    }

    /// Returns units to stock; they must have been drawn.
    pub(crate) fn put_back(&mut self, item: u32, count: u64) -> Change {
        let change = self.note(item, What::Changed);
        self.set(item, self.weights[item as usize], |stocks| _ = stocks.put_back(item, count));
        change
    }

    /// Saves the state of an item before the schedule changes it.
    pub(super) fn noted(&self, item: u32) -> Change {
        self.note(item, What::Changed)
    }

    pub(crate) fn undo_draw(&mut self, item: u32) {
        self.set(item, self.weights[item as usize], |stocks| _ = stocks.put_back(item, 1));
    }

    fn change(&mut self, item: u32, weight: u64, stock: Stock) -> Result<Change, Refusal> {
        if stock != Stock::Unlimited && self.leads_to(item).is_some() {
            return Err(Refusal::Leads { id: self.ids.get(item).into() });
        }
        let (id, beside) = (self.ids.get(item), self.stocks.drawn(item) + self.promised(item));
        self.check(item as usize + 1, id, weight, stock, beside, self.counted(item))?;
        let change = self.note(item, What::Changed);
        self.version += 1;
        self.set(item, weight, |stocks| stocks.restock(item, stock).expect("it was checked that it fits"));
        Ok(change)
    }

    /// Sets an item's weight and stock, which must have been checked.
    fn set(&mut self, item: u32, weight: u64, restock: impl FnOnce(&mut Stocks)) {
        self.leave(item);
        restock(&mut self.stocks);
        self.weights[item as usize] = weight;
        self.unit_weight = self.unit_weight.filter(|unit| weight == 0 || weight == unit.get());
        self.enter(item);
    }

    /// Removes an item from the sums before it changes.
    pub(super) fn leave(&mut self, item: u32) {
        if self.is_on_sale(item) {
            self.go_off_sale(item);
        }
        let (all, own) = (self.counted, self.counted(item));
        let others = all.checked_sub(own);
        self.counted = others.unwrap_or_else(|| panic!("item {item} counts {own} of {all} that all count"));
    }

    /// Adds an item to the sums after it has changed.
    pub(super) fn enter(&mut self, item: u32) {
        self.counted += self.counted(item);
        if self.is_on_sale(item) {
            self.come_on_sale(item);
        }
        self.refresh(item);
    }

    /// Checks that an item can have this weight and stock. `beside` is the number of units drawn or
    /// still to come; `counted` is what the item contributed to the sum before.
    fn check(
        &self,
        number: usize,
        id: &str,
        weight: u64,
        stock: Stock,
        beside: u64,
        counted: u64,
    ) -> Result<(), Refusal> {
        let supply = match stock {
            Stock::Limited(left) => left.checked_add(beside),
            Stock::Unlimited if weight > 0 && self.is_raffle() => {
                return Err(CatalogueError::UnlimitedTickets { number, id: id.into() }.into());
            }
            Stock::Unlimited => (beside <= UNLIMITED_DRAWN_MAX).then_some(beside),
        };
        let supply = supply.filter(|&supply| supply <= AMOUNT_MAX);
        let counts = if self.is_raffle() {
            supply.and_then(|supply| weight.checked_mul(supply))
        } else {
            supply.map(|_| weight)
        };
        match counts.and_then(|counts| (self.counted - counted).checked_add(counts)) {
            Some(sum) if sum <= AMOUNT_MAX => Ok(()),
            _ => Err(Refusal::TooMuch { id: id.into() }),
        }
    }

    fn counted(&self, item: u32) -> u64 {
        counted(self.rule, self.weights[item as usize], self.stocks.supply(item) + self.promised(item))
    }

    fn promised(&self, item: u32) -> u64 {
        promised(self.timetable.as_deref(), item)
    }

    fn is_raffle(&self) -> bool {
        matches!(self.rule, Rule::PerUnit { .. })
    }

    /// Saves the state of an item before a change.
    fn note(&self, item: u32, what: What) -> Change {
        let (weight, standing) = (self.weights[item as usize], self.stocks.standing(item));
        Change { item, what, weight, standing, version: self.version }
    }
}

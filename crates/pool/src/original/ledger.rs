//! Stock and draws of each item after some records.

use super::item::OriginalItem;
use super::names::Names;

/// One item. If no catalogue names it, it has no stock, and its draws are only counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) present: bool,
    pub(super) quantity: i64,
    pub(super) weight: i64,
    pub(super) drawn: u64,
    /// Number of draws when nothing was left.
    pub(super) beyond: u64,
}

/// Items by their number in [`Names`].
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    held: Vec<Held>,
    /// Items of the catalogue, in its order.
    order: Vec<u32>,
}

impl Ledger {
    /// Creates the ledger of a catalogue. Also returns the indexes of items with a duplicate id,
    /// which are omitted.
    pub(super) fn of(items: &[OriginalItem], names: &mut Names) -> (Self, Vec<usize>) {
        let (mut ledger, mut again) = (Self::default(), Vec::new());
        for (position, item) in items.iter().enumerate() {
            let number = names.number(&item.id);
            let held = ledger.held_mut(number);
            if held.present {
                again.push(position);
                continue;
            }
            *held = Held { present: true, quantity: item.quantity, weight: item.weight, ..Held::default() };
            ledger.order.push(number);
        }
        (ledger, again)
    }

    pub(super) fn held(&self, number: u32) -> Held {
        self.held.get(number as usize).copied().unwrap_or_default()
    }

    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Takes one unit. Stock does not fall below zero.
    pub(super) fn draw(&mut self, number: u32) {
        let held = self.held_mut(number);
        held.drawn += 1;
        match held.quantity {
            OriginalItem::UNLIMITED => {}
            1.. => held.quantity -= 1,
            _ => held.beyond += u64::from(held.present),
        }
    }

    /// Sets both amounts. As in the original, an item that no catalogue names is ignored.
    pub(super) fn update(&mut self, number: u32, quantity: i64, weight: i64) {
        let held = self.held_mut(number);
        if held.present {
            (held.quantity, held.weight) = (quantity, weight);
        }
    }

    fn held_mut(&mut self, number: u32) -> &mut Held {
        let place = number as usize;
        if self.held.len() <= place {
            self.held.resize(place + 1, Held::default());
        }
        &mut self.held[place]
    }
}

/// A ledger that can be reset to its initial state, at the cost of the changes since.
#[derive(Debug)]
pub(super) struct Rewindable {
    base: Ledger,
    now: Ledger,
    /// Numbers of changed items, each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl Rewindable {
    pub(super) fn new(base: Ledger) -> Self {
        Self { now: base.clone(), base, changed: Vec::new(), is_changed: Vec::new() }
    }

    pub(super) fn base(&self) -> &Ledger {
        &self.base
    }

    pub(super) fn now(&self) -> &Ledger {
        &self.now
    }

    pub(super) fn draw(&mut self, number: u32) {
        self.mark(number);
        self.now.draw(number);
    }

    pub(super) fn update(&mut self, number: u32, quantity: i64, weight: i64) {
        self.mark(number);
        self.now.update(number, quantity, weight);
    }

    pub(super) fn rewind(&mut self) {
        for number in self.changed.drain(..) {
            self.is_changed[number as usize] = false;
            *self.now.held_mut(number) = self.base.held(number);
        }
    }

    fn mark(&mut self, number: u32) {
        let place = number as usize;
        if self.is_changed.len() <= place {
            self.is_changed.resize(place + 1, false);
        }
        if !self.is_changed[place] {
            self.is_changed[place] = true;
            self.changed.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_ends_at_zero_and_more_is_counted() {
        let mut names = Names::default();
        let items = [
            OriginalItem::new("car", 1, 1),
            OriginalItem::new("rock", -1, 9),
            OriginalItem::new("car", 5, 5),
        ];
        let (mut ledger, again) = Ledger::of(&items, &mut names);
        assert_eq!(again, [2]);
        for _ in 0..3 {
            ledger.draw(0);
            ledger.draw(1);
        }
        assert_eq!(ledger.held(0), Held { present: true, quantity: 0, weight: 1, drawn: 3, beyond: 2 });
        assert_eq!(ledger.held(1), Held { present: true, quantity: -1, weight: 9, drawn: 3, beyond: 0 });
    }

    #[test]
    fn what_is_in_no_catalogue_is_only_counted() {
        let mut ledger = Ledger::default();
        ledger.draw(4);
        ledger.update(4, 10, 10);
        assert_eq!(ledger.held(4), Held { drawn: 1, ..Held::default() });
    }

    #[test]
    fn a_rewound_ledger_is_as_it_began() {
        let mut names = Names::default();
        let (base, _) = Ledger::of(&[OriginalItem::new("gold", 7, 1)], &mut names);
        let mut ledger = Rewindable::new(base.clone());
        for _ in 0..2 {
            ledger.draw(0);
            ledger.update(0, 90, 2);
            ledger.draw(3);
            assert_eq!(ledger.now().held(0).quantity, 90);
            ledger.rewind();
            assert_eq!(ledger.now().held(0), base.held(0));
            assert_eq!(ledger.now().held(3), Held::default());
        }
    }
}

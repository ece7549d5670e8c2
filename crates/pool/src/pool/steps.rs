//! Sequence of the steps that can be undone.

use super::draw::Given;
use super::step::Step;

/// Steps in order. Draws are nearly all of them, so they are stored apart, in four bytes each.
#[derive(Debug, Clone, Default)]
pub(super) struct Steps {
    /// Results of the draws.
    draws: Vec<Given>,
    /// The other steps, each with the number of draws before it.
    others: Vec<(usize, Step)>,
}

/// The step to undo next.
#[derive(Debug)]
pub(super) enum Last {
    /// A draw took a number and a unit of this item, or gave nothing.
    Drew(Option<u32>),
    Did(Step),
}

impl Steps {
    pub(super) fn len(&self) -> usize {
        self.draws.len() + self.others.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn clear(&mut self) {
        self.draws.clear();
        self.others.clear();
    }

    #[inline]
    pub(super) fn drew(&mut self, item: Option<u32>) {
        self.draws.push(Given::new(item));
    }

    pub(super) fn did(&mut self, step: Step) {
        self.others.push((self.draws.len(), step));
    }

    pub(super) fn draws(&self) -> usize {
        self.draws.len()
    }

    /// Returns the results of the draws after the first `draws`.
    pub(super) fn drawn_since(&self, draws: usize) -> impl ExactSizeIterator<Item = Option<u32>> {
        self.draws[draws..].iter().map(|given| given.item())
    }

    pub(super) fn pop(&mut self) -> Option<Last> {
        let draws = self.draws.len();
        match self.others.pop_if(|(before, _)| *before == draws) {
            Some((_, step)) => Some(Last::Did(step)),
            None => self.draws.pop().map(|given| Last::Drew(given.item())),
        }
    }

    /// Drops the first `steps` steps. O(1) for each step that remains.
    pub(super) fn forget_first(&mut self, steps: usize) {
        assert!(steps <= self.len(), "{steps} steps are forgotten, and {} are there", self.len());
        // `others[index]` is preceded by this many steps of both kinds.
        let others = (0..self.others.len()).take_while(|&index| self.others[index].0 + index < steps).count();
        let draws = steps - others;
        self.others.drain(..others);
        self.draws.drain(..draws);
        self.others.iter_mut().for_each(|(before, _)| *before -= draws);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Debug, Clone)]
    enum Deed {
        Drew(Option<u32>),
        Did(u64),
        Pop,
        ForgetFirst(usize),
    }

    fn deed() -> impl Strategy<Value = Deed> {
        prop_oneof![
            4 => proptest::option::of(0..u32::MAX).prop_map(Deed::Drew),
            2 => any::<u64>().prop_map(Deed::Did),
            2 => Just(Deed::Pop),
            1 => (0_usize..8).prop_map(Deed::ForgetFirst),
        ]
    }

    proptest! {
        #[test]
        fn steps_come_back_in_their_order(deeds in proptest::collection::vec(deed(), 0..60)) {
            let (mut steps, mut model) = (Steps::default(), VecDeque::new());
            for deed in deeds {
                match deed {
                    Deed::Drew(item) => {
                        steps.drew(item);
                        model.push_back(Ok(item));
                    }
                    Deed::Did(number) => {
                        steps.did(Step::Reserved(number));
                        model.push_back(Err(number));
                    }
                    Deed::Pop => {
                        let popped = steps.pop().map(|last| match last {
                            Last::Drew(item) => Ok(item),
                            Last::Did(Step::Reserved(number)) => Err(number),
                            Last::Did(other) => panic!("{other:?} was not done"),
                        });
                        prop_assert_eq!(popped, model.pop_back());
                    }
                    Deed::ForgetFirst(count) => {
                        let count = count.min(model.len());
                        steps.forget_first(count);
                        model.drain(..count);
                    }
                }
                prop_assert_eq!((steps.len(), steps.is_empty()), (model.len(), model.is_empty()));
                let drawn: Vec<_> = steps.drawn_since(0).collect();
                prop_assert_eq!(&drawn, &model.iter().copied().flatten().collect::<Vec<_>>());
                prop_assert_eq!(drawn.len(), steps.draws());
            }
        }
    }
}

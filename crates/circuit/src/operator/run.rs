//! Operators over runs of equal values.

use super::{And, Part, Plan, Stage};
use crate::Change;
use crate::Flow;
use crate::Run;

impl<I: Send + 'static, O: Part + PartialEq, R: Plan<I, Out = O>> Flow<I, O, R> {
    /// Emits each change of the value, with the length of the run that ended. The first value and
    /// equal ones emit nothing.
    ///
    /// State: one value and one number. Cost: a comparison, and a copy per change.
    ///
    /// ```
    /// # use tidemark_circuit::{Change, Fault, Flow};
    /// let changes = Flow::new().change().trace([1, 1, 1, 2])?;
    /// assert_eq!(changes, [Change { from: 1, to: 2, length: 3 }]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn change(self) -> Flow<I, Change<O>, And<R, Changes<O>>> {
        self.then(Changes { run: None })
    }

    /// Emits each value with the length of its current run.
    ///
    /// State: one value and one number. Cost: a comparison, and a copy at the start of each run.
    ///
    /// ```
    /// # use tidemark_circuit::{Fault, Flow};
    /// let lengths = Flow::new().run().map(|run| run.length);
    /// assert_eq!(lengths.trace([7, 7, 9, 7])?, [1, 2, 1, 1]);
    /// # Ok::<(), Fault>(())
    /// ```
    pub fn run(self) -> Flow<I, Run<O>, And<R, Runs<O>>> {
        self.then(Runs { run: None })
    }
}

/// The stage of [`Flow::change`].
#[derive(Clone)]
pub struct Changes<E> {
    run: Option<Run<E>>,
}

impl<E: Part + PartialEq> Stage<E> for Changes<E> {
    type Out = Change<E>;

    #[inline]
    fn apply(&mut self, value: E) -> Option<Change<E>> {
        match &mut self.run {
            Some(run) if run.value == value => {
                run.length += 1;
                None
            }
            run => {
                let ended = run.replace(Run { value: value.clone(), length: 1 })?;
                Some(Change { from: ended.value, to: value, length: ended.length })
            }
        }
    }
}

/// The stage of [`Flow::run`].
#[derive(Clone)]
pub struct Runs<E> {
    run: Option<Run<E>>,
}

impl<E: Part + PartialEq> Stage<E> for Runs<E> {
    type Out = Run<E>;

    #[inline]
    fn apply(&mut self, value: E) -> Option<Run<E>> {
        match &mut self.run {
            Some(run) if run.value == value => run.length += 1,
            run => *run = Some(Run { value: value.clone(), length: 1 }),
        }
        let length = self.run.as_ref()?.length;
        Some(Run { value, length })
    }
}

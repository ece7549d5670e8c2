//! Pipes whose lost values are emitted to another pipe.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::depth::Depth;
use crate::execution::node::NodeRef;
use crate::failure::care::{Care, Make};
use crate::identity::subject::Kind;
use crate::operator::recipe::Recipe;
use crate::structure::pipe::Pipe;
use crate::subscription::attachment::{AttachmentSite, Finish};
use crate::subscription::receptor::Receptor;

/// Makes pipes whose lost values are emitted to another pipe: those that arrive in
/// [quarantine](crate::Supervision::Quarantine), and optionally those whose handling failed.
///
/// A lost value is emitted where it would have been handled. So lost values are in the order of the
/// circuit, and a replay loses the same ones. Values emitted after the circuit's close are refused,
/// not lost.
///
/// ```
/// use std::sync::mpsc;
/// use tidemark_circuit::{Circuit, Supervision};
///
/// # std::panic::set_hook(Box::new(|_| ()));
/// let circuit = Circuit::builder().supervision(Supervision::Quarantine { after: 2 }).build()?;
/// let (sender, lost) = mpsc::channel();
/// let dead = circuit.pipe(move |number: u64| sender.send(number).unwrap())?;
/// let pipe = circuit.dead_letters(&dead).including_failed().pipe(|number: u64| {
///     assert!(number < 10, "{number} is too much");
/// })?;
/// [1, 20, 2, 30, 3].into_iter().for_each(|number| pipe.emit(number));
/// circuit.settle()?;
/// assert_eq!(lost.try_iter().collect::<Vec<_>>(), [20, 30, 3]); // 3 came in quarantine
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "it makes pipes"]
pub struct DeadLetters<'a, E> {
    naming: Naming<'a>,
    dead: &'a Pipe<E>,
    /// Clones each value, if values whose handling fails are to be emitted as well.
    copy: Option<fn(&E) -> E>,
}

impl Circuit {
    /// Makes pipes that emit lost values to `dead`, of this circuit or another. See
    /// [`DeadLetters`].
    pub fn dead_letters<'a, E: Send + 'static>(&'a self, dead: &'a Pipe<E>) -> DeadLetters<'a, E> {
        self.unnamed().dead_letters(dead)
    }
}

impl<'a> Naming<'a> {
    /// See [`Circuit::dead_letters`].
    pub fn dead_letters<E: Send + 'static>(self, dead: &'a Pipe<E>) -> DeadLetters<'a, E> {
        DeadLetters { naming: self, dead, copy: None }
    }
}

impl<E: Send + 'static> DeadLetters<'_, E> {
    /// Also emits values whose handling failed to `dead`. Each value is cloned before it is
    /// handled. If cloning panics, the value is not handled and is itself emitted to `dead`.
    pub fn including_failed(self) -> Self
    where
        E: Clone,
    {
        Self { copy: Some(E::clone), ..self }
    }

    /// Makes a pipe to a receptor. See [`Circuit::pipe`].
    pub fn pipe<R>(&self, receptor: R) -> Result<Pipe<E>, Fault>
    where
        R: Receptor<E> + 'static,
    {
        let place = self.place()?;
        let care = self.naming.care(None);
        Ok(Pipe::new(self.finish(place, receptor, care)))
    }

    /// Makes a pipe to a receptor that the function makes. See [`Circuit::pipe_from`].
    pub fn pipe_from<R, F>(&self, mut make: F) -> Result<Pipe<E>, Fault>
    where
        R: Receptor<E> + 'static,
        F: FnMut() -> R + Send + 'static,
    {
        let place = self.place()?;
        let receptor = make();
        let care = self.naming.care(Some(Box::new(move |_| Ok(make()))));
        Ok(Pipe::new(self.finish(place, receptor, care)))
    }

    /// Makes a pipe to the recipe's operators in front of the target, which must belong to this
    /// circuit. See [`Naming::prepend`].
    ///
    /// Only failures of the operators lose values here; the target handles its own failures.
    pub fn prepend<R>(&self, target: &Pipe<R::Out>, recipe: &R) -> Result<Pipe<E>, Fault>
    where
        R: Recipe<In = E>,
    {
        self.naming.prepend_as(target, recipe, self)
    }

    fn place(&self) -> Result<AttachmentSite<'_>, Fault> {
        let subject = self.naming.component(Kind::Pipe, "pipe")?;
        Ok(AttachmentSite { machine: self.naming.machine(), subject, depth: Depth::of(size_of::<E>(), None) })
    }
}

impl<E: Send + 'static> Finish<E> for DeadLetters<'_, E> {
    fn finish<R>(&self, place: AttachmentSite<'_>, receptor: R, care: Care<E, R>) -> NodeRef
    where
        R: Receptor<E> + 'static,
    {
        let letters: Box<dyn Receptor<E>> = Box::new(self.dead.clone());
        let Some(copy) = self.copy else {
            return place.node(receptor, Care { dead_letters: Some(letters), ..care });
        };
        let dead = self.dead.clone();
        let copying = move |receptor| Copying { receptor, copy, dead: dead.clone() };
        let receptor = copying(receptor);
        let make =
            care.make.map(|mut make| -> Make<_> { Box::new(move |restarted| make(restarted).map(&copying)) });
        let care = Care { supervision: care.supervision, make, dead_letters: Some(letters) };
        place.node(receptor, care)
    }
}

/// Keeps a copy of each value until the value is handled.
struct Copying<E, R> {
    receptor: R,
    copy: fn(&E) -> E,
    dead: Pipe<E>,
}

impl<E: Send + 'static, R: Receptor<E>> Receptor<E> for Copying<E, R> {
    fn receive(&mut self, value: E) {
        let kept = match catch_unwind(AssertUnwindSafe(|| (self.copy)(&value))) {
            Ok(kept) => kept,
            Err(panic) => {
                // There is no copy, but the value itself is not needed any more.
                self.dead.emit(value);
                resume_unwind(panic);
            }
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.receptor.receive(value))) {
            self.dead.emit(kept);
            resume_unwind(panic);
        }
    }
}

impl<E> fmt::Debug for DeadLetters<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeadLetters")
            .field("naming", &self.naming)
            .field("dead", self.dead)
            .field("including_failed", &self.copy.is_some())
            .finish()
    }
}

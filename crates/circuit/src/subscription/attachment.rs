//! Nodes of operators in front of a target.

use crate::error::Fault;
use crate::execution::depth::Depth;
use crate::execution::machine::Machine;
use crate::execution::node::NodeRef;
use crate::failure::care::{Care, Make};
use crate::failure::supervision::Supervision;
use crate::identity::subject::Subject;
use crate::operator::recipe::{Recipe, Site};
use crate::random;
use crate::subscription::receptor::Receptor;

/// Where operators are attached.
pub(crate) struct Attachment<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) subject: Subject,
    pub(crate) site: Site<'a>,
    /// Includes what the new node calls directly.
    pub(crate) depth: Depth,
    /// None for the circuit's own.
    pub(crate) supervision: Option<Supervision>,
}

pub(crate) struct AttachmentSite<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) subject: Subject,
    /// Includes what the node calls directly.
    pub(crate) depth: Depth,
}

impl AttachmentSite<'_> {
    pub(crate) fn node<E, R>(self, receptor: R, care: Care<E, R>) -> NodeRef
    where
        E: Send + 'static,
        R: Receptor<E> + 'static,
    {
        NodeRef::with_care(self.machine, self.subject, self.depth, receptor, care)
    }
}

/// Creates a node of a receptor, and may wrap the receptor first.
pub(crate) trait Finish<E> {
    fn finish<R>(&self, place: AttachmentSite<'_>, receptor: R, care: Care<E, R>) -> NodeRef
    where
        R: Receptor<E> + 'static;
}

/// Creates a node of the receptor unchanged.
pub(crate) struct AsItIs;

impl<E: Send + 'static> Finish<E> for AsItIs {
    fn finish<R>(&self, place: AttachmentSite<'_>, receptor: R, care: Care<E, R>) -> NodeRef
    where
        R: Receptor<E> + 'static,
    {
        place.node(receptor, care)
    }
}

impl Attachment<'_> {
    /// Creates the node of the recipe's operators in front of what `next` makes of the target.
    /// Fails if a factory among the operators refuses.
    pub(crate) fn node<R, T, N>(
        self,
        recipe: &R,
        finish: &impl Finish<R::In>,
        target: &T,
        next: fn(&T) -> N,
    ) -> Result<NodeRef, Fault>
    where
        R: Recipe,
        T: Clone + Send + 'static,
        N: Receptor<R::Out> + 'static,
    {
        let Self { machine, subject, site, depth, supervision } = self;
        let receptor = recipe.attach(&site, next(target))?;
        let make = machine.supervises(supervision).restarts().then(|| -> Make<_> {
            let (recipe, target) = (recipe.clone(), target.clone());
            let (subject, seed) = (site.subject.clone(), site.seed);
            Box::new(move |restarted| {
                let site = Site { subject: &subject, seed: seed_of_restart(seed, restarted) };
                recipe.attach(&site, next(&target))
            })
        });
        let care = Care { supervision, make, dead_letters: None };
        Ok(finish.finish(AttachmentSite { machine, subject, depth }, receptor, care))
    }
}

/// A restart draws other random numbers: the previous ones may have caused the failure.
fn seed_of_restart(seed: u64, restarted: u32) -> u64 {
    seed ^ random::mixed(u64::from(restarted))
}

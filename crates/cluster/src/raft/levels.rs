//! The group's level: which kinds of records may be appended.
//!
//! ```text
//!  all members state that they know a higher level ─► leader: an entry names the members at that level
//!        ─► committed and applied: TermListener::level ─► records of that level may be appended
//! ```
//!
//! So an entry with a newer record lies behind the entry that allows it, in every log. A member that
//! knows less than its log's level ends its part; the others do not let it connect.

use std::time::Duration;

use openraft::ChangeMembers;

use super::node::Node;
use super::types::Cfg;
use crate::consensus::ChangeError;
use crate::ids::NodeId;
use crate::level::Level;
use crate::member::Place;

impl<C: Cfg> Node<C> {
    /// Returns the level to which the group can be raised: that of the member that knows least. `None` if
    /// a member has not stated what it knows, or the group has that level. `knows` is what the others
    /// have stated.
    pub(crate) fn level_to_raise(&self, knows: &impl Fn(NodeId) -> Option<Level>) -> Option<Level> {
        let members = self.members()?;
        let known_by = |id: &u64| match NodeId(*id) {
            id if id == self.me() => Some(self.settings.level),
            id => knows(id),
        };
        let known = members.nodes.keys().map(known_by).collect::<Option<Vec<_>>>()?;
        known.into_iter().min().filter(|level| *level > members.level())
    }

    /// Raises the group's level as far as all members know it. Returns the new level; `None` if there is
    /// nothing to raise.
    ///
    /// # Errors
    /// This member does not lead, or another change is under way.
    pub(crate) async fn raise_level(
        &self,
        knows: impl Fn(NodeId) -> Option<Level>,
        patience: Duration,
    ) -> Result<Option<Level>, ChangeError> {
        let term = self.leading_term()?;
        let Some(level) = self.level_to_raise(&knows) else { return Ok(None) };
        let members = self.members().ok_or(ChangeError::NotLeader)?;
        let nodes = members.nodes.into_iter().map(|(id, place)| (id, Place { level, ..place })).collect();
        let until = self.now() + patience;
        self.change(term, until, ChangeMembers::SetNodes(nodes)).await?;
        Ok(Some(level))
    }
}

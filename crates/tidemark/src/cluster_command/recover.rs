//! `tidemark cluster recover`: brings a cluster back that has no leader and never will by itself.
//!
//! | left are | what helps |
//! |---|---|
//! | most members, of which some may have lost what they acknowledged | as many of those vote as are missing, those with the newest entries |
//! | fewer | the member with the newest entry begins a cluster of its own, and others join that |

use super::findings::{QUORUM_AGE_MS_MAX, able, damaged, majority};
use super::picture::{Picture, ask_member, at};
use crate::asking::{ask, connect};
use anyhow::bail;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::target::Target;
use tidemark_server::ClusterStatus;

/// Longest wait for one answer of a member.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// How long the members are watched before they are taken to have no leader: longer than elections take.
const WATCH: Duration = Duration::from_secs(5);
const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// How a cluster is brought back.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    /// These vote, although they may have lost what they acknowledged.
    Vote(Vec<u64>),
    /// This one begins a cluster of its own.
    Alone(u64),
    /// Nothing is lost: why there is no leader yet, and what to do.
    Wait(&'static str),
}

/// Voting members that answer, and what they say. The one with the newest entry first.
fn survivors(picture: &Picture) -> Vec<&ClusterStatus> {
    let voters = picture.members.iter().filter(|member| member.seen.votes);
    let mut said: Vec<_> = voters.filter_map(|member| member.said.as_ref().ok()).collect();
    // Of two that have as much, the one that is known to have lost nothing.
    said.sort_by_key(|said| std::cmp::Reverse((said.last_entry_term, said.last_entry, !said.is_suspect)));
    said
}

/// Decides what helps. There is no leader.
fn plan(picture: &Picture) -> Plan {
    let (survivors, able, majority) = (survivors(picture), able(picture), majority(picture));
    if picture.members.is_empty() {
        return Plan::Wait("the cluster has no members yet: it is founded when all of cluster-members run");
    }
    if able >= majority {
        return Plan::Wait(
            "most members answer and vote: they elect a leader as soon as they reach each other; check the network \
             between them, and the ports for members",
        );
    }
    if survivors.len() >= majority {
        let suspects = survivors.iter().filter(|said| said.is_suspect).map(|said| said.node);
        return Plan::Vote(suspects.take(majority - able).collect());
    }
    match survivors.first() {
        Some(newest) => Plan::Alone(newest.node),
        None => Plan::Wait("no member that votes answers: start one with its directory"),
    }
}

fn list(nodes: impl IntoIterator<Item = u64>) -> String {
    nodes.into_iter().map(|node| node.to_string()).collect::<Vec<_>>().join(", ")
}

/// Returns what is left and what could be lost, in lines.
fn describe(picture: &Picture, plan: &Plan) -> Vec<String> {
    let (survivors, majority) = (survivors(picture), majority(picture));
    let silent = picture.members.iter().filter(|member| member.seen.votes && member.said.is_err());
    let silent: Vec<u64> = silent.map(|member| member.seen.node).collect();
    let mut lines = vec![format!(
        "no leader: {} of {} voting members answer, {} vote, and {majority} elect one",
        survivors.len(),
        survivors.len() + silent.len(),
        able(picture),
    )];
    for said in &survivors {
        let suspect = if said.is_suspect { "; may have lost what it acknowledged" } else { "" };
        lines.push(format!(
            "  {}  last entry {} of term {}, committed up to {}{suspect}",
            said.node, said.last_entry, said.last_entry_term, said.committed_entry
        ));
    }
    let report_of = |node: u64| {
        let member = picture.members.iter().find(|member| member.seen.node == node);
        member.and_then(|member| member.seen.report.as_deref()).unwrap_or("silent")
    };
    lines.extend(silent.iter().map(|node| format!("  {node}  {}", report_of(*node))));
    let damaged = damaged(picture);
    if !damaged.is_empty() {
        lines.push(format!(
            "the directories of {} stay as they are, and nothing removes them: they may have changes that no other \
             member has. Copy them before anything else",
            list(damaged)
        ));
    }
    match plan {
        Plan::Wait(why) => lines.push((*why).to_owned()),
        Plan::Vote(nodes) => lines.push(format!(
            "recovery lets {} vote with what is left there: changes that were acknowledged and that only these had are \
             lost. A silent member that comes back first may have them",
            list(nodes.iter().copied())
        )),
        Plan::Alone(node) => {
            let newest = survivors.iter().find(|said| said.node == *node);
            lines.push(format!(
                "recovery lets member {node} begin a cluster of its own with its {} entries, the newest that are left: \
                 what others had acknowledged behind them is lost. All others are strangers to it, also if they come \
                 back: stop them, and let them join with empty directories. If a silent member only cannot be reached, \
                 or can be started with its directory, nothing needs to be lost: do that instead",
                newest.map_or(0, |said| said.last_entry)
            ));
        }
    }
    lines
}

/// Returns the leader, if most members answer it: one whose followers have died does not know at once.
fn leader(picture: &Picture) -> Option<&ClusterStatus> {
    picture.leader().filter(|leader| leader.quorum_age_ms.is_some_and(|age| age <= QUORUM_AGE_MS_MAX))
}

/// Watches the cluster for a moment. Returns the picture, with a leader as soon as there is one.
fn watch(target: &Target) -> anyhow::Result<Picture> {
    let until = Instant::now() + WATCH;
    loop {
        let picture = Picture::draw(target, ANSWER_PATIENCE)?;
        // A leader that has enough followers is known by that they answer.
        let is_led = leader(&picture).is_some() && able(&picture) >= majority(&picture);
        if is_led || Instant::now() >= until {
            return Ok(picture);
        }
        std::thread::sleep(LOOK_PAUSE);
    }
}

/// Says what is left of a cluster without a leader, and goes on with that if the loss is accepted.
pub(super) fn run(target: &Target, accepts_loss: bool, timeout: Duration) -> anyhow::Result<ExitCode> {
    let picture = watch(target)?;
    let mut out = io::stdout().lock();
    if let Some(leader) = leader(&picture) {
        writeln!(
            out,
            "member {} leads in term {}: there is nothing to recover from",
            leader.node, leader.term
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan(&picture);
    for line in describe(&picture, &plan) {
        writeln!(out, "{line}")?;
    }
    let (nodes, how) = match &plan {
        Plan::Wait(_) => return Ok(ExitCode::FAILURE),
        Plan::Vote(nodes) => (nodes.clone(), "VOTE"),
        Plan::Alone(node) => (vec![*node], "ALONE"),
    };
    if !accepts_loss {
        writeln!(out, "nothing was changed; to accept the loss: tidemark cluster recover --accept-loss")?;
        return Ok(ExitCode::FAILURE);
    }
    let address = |node: u64| {
        let member = picture.members.iter().find(|member| member.seen.node == node);
        at(&member.map_or_else(String::new, |member| member.seen.clients.clone()), target)
    };
    for node in &nodes {
        ask(&mut connect(&address(*node)?, ANSWER_PATIENCE)?, &["CLUSTER", "RECOVER", how])?;
    }
    let until = Instant::now() + timeout;
    let asked = address(nodes.first().copied().unwrap_or_default())?;
    let leader = loop {
        let leader = match &plan {
            // Its server starts again.
            Plan::Alone(node) => ask_member(&asked, ANSWER_PATIENCE).ok().filter(|said| {
                said.role == "leader" && said.node == *node && said.cluster != picture.cluster
            }),
            _ => Picture::draw(&asked, ANSWER_PATIENCE).ok().and_then(|picture| leader(&picture).cloned()),
        };
        match leader {
            Some(leader) => break leader,
            None if Instant::now() >= until => {
                bail!(
                    "no member leads yet; `tidemark cluster status` and standard error of {} say more",
                    list(nodes)
                )
            }
            None => std::thread::sleep(LOOK_PAUSE),
        }
    };
    writeln!(
        out,
        "member {} leads, in term {}, with entries up to {}",
        leader.node, leader.term, leader.last_entry
    )?;
    if how == "ALONE" {
        writeln!(out, "let others join it: tidemark serve --cluster-join {asked} with empty directories")?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::picture::Drawn;
    use super::*;
    use tidemark_server::MemberStatus;

    /// A picture of members that are silent, or have a last entry of term and index, and may have lost some.
    /// Term and index of a member's last entry, and whether it may have lost entries; `None` if it does not answer.
    type Seen = Option<(u64, u64, bool)>;

    fn picture(members: &[Seen]) -> Picture {
        let drawn = |(number, state): (usize, &Seen)| {
            let node = number as u64 + 1;
            let seen = MemberStatus {
                node,
                peers: format!("a:{node}"),
                clients: format!("b:{node}"),
                directory: None,
                votes: true,
                is_reachable: state.is_some(),
                error: String::new(),
                entry: None,
                snapshot_error: None,
                report: None,
            };
            let said = state.map(|(last_entry_term, last_entry, is_suspect)| ClusterStatus {
                version: "0.1.0".into(),
                level: 2,
                cluster_level: 2,
                cluster: "c".into(),
                node,
                role: "follower".into(),
                leader: None,
                term: 9,
                last_entry,
                last_entry_term,
                committed_entry: 1,
                quorum_age_ms: None,
                is_fresh: false,
                is_suspect,
                problem: None,
                change: None,
                last_change: None,
                last_change_error: None,
                are_members_committed: true,
                members: Vec::new(),
            });
            Drawn { seen, said: said.ok_or_else(|| "refused".to_owned()) }
        };
        Picture { cluster: "c".into(), members: members.iter().enumerate().map(drawn).collect() }
    }

    #[test]
    fn as_little_is_accepted_as_is_needed_for_a_leader() {
        let (well, lost) = (|index| Some((2, index, false)), |index| Some((2, index, true)));
        let cases: [(&[Seen], Plan); 7] = [
            (&[well(7), lost(5), lost(6)], Plan::Vote(vec![3])),
            (&[lost(7), lost(5), lost(6)], Plan::Vote(vec![1, 3])),
            (&[None, lost(5), lost(6)], Plan::Vote(vec![3, 2])),
            (&[None, None, well(3)], Plan::Alone(3)),
            (&[None, Some((1, 9, false)), well(3), None, None], Plan::Alone(3)),
            (&[None, lost(3), well(3), None, None], Plan::Alone(3)),
            (&[lost(4)], Plan::Vote(vec![1])),
        ];
        for (members, expected) in cases {
            let picture = picture(members);
            assert_eq!(plan(&picture), expected, "{members:?}");
            let text = describe(&picture, &expected).join("\n");
            assert!(text.contains("no leader") && text.contains("lost"), "{text}");
        }
    }

    #[test]
    fn damaged_members_may_have_what_no_other_has() {
        let mut picture = picture(&[None, None, Some((2, 3, false))]);
        picture.members[0].seen.report = Some("its data is damaged: a bit".into());
        let plan = plan(&picture);
        assert_eq!(plan, Plan::Alone(3));
        let text = describe(&picture, &plan).join("\n");
        assert!(text.contains("  1  its data is damaged: a bit\n  2  silent"), "{text}");
        assert!(text.contains("the directories of 1 stay as they are"), "{text}");
    }

    #[test]
    fn where_nothing_needs_to_be_lost_nothing_is_accepted() {
        let well = Some((2, 3, false));
        for members in [&[well, well, well][..], &[well, Some((2, 1, true)), well], &[None, None, None], &[]]
        {
            assert!(matches!(plan(&picture(members)), Plan::Wait(_)), "{members:?}");
        }
    }
}

//! `tidemark cluster transfer`, `remove` and `replace`: the leader is asked, and the outcome waited for.

use super::picture::{ask_member, at};
use crate::asking::connect;
use anyhow::{Context as _, bail};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::client::ClientError;
use tidemark_lab::target::Target;
use tidemark_server::{ClusterStatus, MemberStatus};

/// Longest wait for one answer of a member.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// Time after which the operator is told what is waited for, and between two such lines.
const SILENCE: Duration = Duration::from_secs(1);
const LINE_PAUSE: Duration = Duration::from_secs(5);

/// A cluster that is to be changed until some time.
struct Changing<'a> {
    /// The member that the command line names.
    target: &'a Target,
    /// The members that were seen last.
    members: Vec<Target>,
    until: Instant,
    /// When the operator is told next what is waited for.
    next_line: Instant,
}

impl<'a> Changing<'a> {
    fn begin(target: &'a Target, timeout: Duration) -> Changing<'a> {
        let now = Instant::now();
        Changing { target, members: Vec::new(), until: now + timeout, next_line: now + SILENCE }
    }

    fn note(&mut self, said: &ClusterStatus) {
        let members = said.members.iter().filter_map(|member| at(&member.clients, self.target).ok());
        self.members = members.collect();
    }

    /// Waits for a leader, and returns its address with what it says. The members may be starting.
    fn leader(&mut self) -> anyhow::Result<(Target, ClusterStatus)> {
        loop {
            let mut targets = vec![self.target.clone()];
            targets.extend(self.members.iter().cloned());
            let mut why = String::new();
            let mut has_answered = false;
            for target in targets {
                match ask_member(&target, ANSWER_PATIENCE) {
                    Ok(said) if said.role == "leader" => {
                        self.note(&said);
                        return Ok((target, said));
                    }
                    Ok(said) => {
                        has_answered = true;
                        // The member that was named may end meanwhile: the others are known then.
                        if self.members.is_empty() {
                            self.note(&said);
                        }
                    }
                    Err(error) if target == *self.target && !is_passing(&error) => return Err(error),
                    Err(error) if why.is_empty() => why = format!("no member answers at {target}: {error:#}"),
                    Err(_) => {}
                }
            }
            if has_answered {
                "no member leads; `tidemark cluster status` says what is wrong".clone_into(&mut why);
            }
            self.wait(&why)?;
        }
    }

    /// Waits a moment, and says now and then what for. Fails with `why` when the time is over.
    fn wait(&mut self, why: &str) -> anyhow::Result<()> {
        let now = Instant::now();
        if now >= self.until {
            bail!("{why}");
        }
        if now >= self.next_line {
            self.next_line = now + LINE_PAUSE;
            let left = (self.until - now).as_secs();
            // Standard error may be closed.
            let _ = writeln!(io::stderr(), "waiting for up to {left} more seconds: {why}");
        }
        std::thread::sleep(LOOK_PAUSE);
        Ok(())
    }

    /// Asks the leader for a change, and waits until it `is_done`. A leader that has not begun it, or ends
    /// before it is done, is followed by one that is asked again. Fails when the change was not made, or the
    /// time is over.
    fn change(
        &mut self,
        command: &[&str],
        what: &str,
        is_done: impl Fn(&ClusterStatus) -> bool,
    ) -> anyhow::Result<ClusterStatus> {
        let mut asked_in = None;
        loop {
            let (target, said) = self.leader()?;
            if is_done(&said) {
                return Ok(said);
            }
            if asked_in == Some(said.term) {
                if said.change.is_none() {
                    if let Some(error) = &said.last_change_error {
                        bail!("{what}: {error}");
                    }
                    // It has ended, and is not done: another one came between.
                    asked_in = None;
                }
                self.wait(&format!(
                    "{what}: it is still under way; `tidemark cluster status` shows its end"
                ))?;
                continue;
            }
            match connect(&target, ANSWER_PATIENCE).and_then(|mut client| client.call(command)) {
                // The connection has failed: if the change has begun, the leader's next answer shows that.
                Err(error) => self.wait(&format!("the leader at {target} cannot be asked: {error}"))?,
                Ok(reply) => match reply.as_error().map(String::from_utf8_lossy) {
                    None => asked_in = Some(said.term),
                    Some(error) => {
                        let answer = format!("the leader at {target} answers: {error}");
                        let is_passing = |code: &&str| error.starts_with(*code);
                        if !["MOVED ", "TRYAGAIN ", "CLUSTERDOWN "].iter().any(is_passing) {
                            bail!("{answer}");
                        }
                        self.wait(&answer)?;
                    }
                },
            }
        }
    }

    fn transfer(&mut self, node: u64) -> anyhow::Result<ClusterStatus> {
        let command = ["CLUSTER", "TRANSFER", &node.to_string()];
        self.change(&command, &format!("member {node} does not lead"), |said| said.node == node)
    }

    fn remove(&mut self, node: u64) -> anyhow::Result<()> {
        let (_, leader) = self.leader()?;
        if leader.member(node).is_none() {
            bail!("{node} is no member of the cluster");
        }
        if leader.node == node {
            let others = leader.members.iter().filter(|member| member.node != node && member.votes);
            let next = others.filter(|member| member.is_reachable).max_by_key(|member| member.entry);
            let next =
                next.context("no other member can lead: it is the last one that votes and is reachable")?;
            self.transfer(next.node)?;
        }
        let command = ["CLUSTER", "FORGET", &node.to_string()];
        self.change(&command, &format!("member {node} is not removed"), |said| said.member(node).is_none())?;
        Ok(())
    }
}

/// Whether a member that answered this, or did not, may answer soon.
fn is_passing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref()
        .is_some_and(|error| !matches!(error, ClientError::Refused { .. } | ClientError::Protocol(_)))
}

/// Says why a new member does not vote.
fn does_not_vote(leader: &ClusterStatus, member: &MemberStatus) -> String {
    let (node, lacks) = (member.node, leader.last_entry.saturating_sub(member.entry.unwrap_or(0)));
    let why = match &member.snapshot_error {
        Some(error) => format!("it does not get the snapshot that it needs: {error}"),
        None if !member.is_reachable => format!("the leader does not reach it: {}", member.error),
        None => format!("it lacks {lacks} entries"),
    };
    format!("member {node} does not vote yet: {why}; repeat this when it has caught up")
}

fn say(line: &str) -> anyhow::Result<ExitCode> {
    writeln!(io::stdout(), "{line}")?;
    Ok(ExitCode::SUCCESS)
}

/// Lets member `node` lead.
pub(super) fn transfer(target: &Target, node: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    let said = Changing::begin(target, timeout).transfer(node)?;
    say(&format!("member {node} leads, in term {}", said.term))
}

/// Takes member `node` out of the cluster.
pub(super) fn remove(target: &Target, node: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    Changing::begin(target, timeout).remove(node)?;
    say(&format!("member {node} is removed: stop its process; its directory is of no use any more"))
}

/// Takes member `old` out of the cluster once `new` votes.
pub(super) fn replace(target: &Target, old: u64, new: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    if old == new {
        bail!("a member cannot take its own place: the new one has a number of its own");
    }
    let mut changing = Changing::begin(target, timeout);
    loop {
        let (_, leader) = changing.leader()?;
        match leader.member(new) {
            Some(member) if member.votes => break,
            Some(member) => changing.wait(&does_not_vote(&leader, member))?,
            None => changing.wait(&format!(
                "member {new} has not joined: start it with --cluster-node {new} and --cluster-join"
            ))?,
        }
    }
    changing.remove(old)?;
    say(&format!("member {new} has taken the place of {old}: stop the process of {old}"))
}

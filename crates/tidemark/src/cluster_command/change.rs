//! `tidemark cluster transfer`, `remove` and `replace`: the leader is asked, and the outcome waited for.

use super::picture::{ask_member, at};
use crate::asking::connect;
use anyhow::{Context as _, bail};
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tidemark_lab::target::Target;
use tidemark_server::ClusterStatus;

/// Longest wait for one answer of a member.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// A cluster that is to be changed until some time.
struct Changing<'a> {
    /// The member that the command line names.
    target: &'a Target,
    /// The members that were seen last.
    members: Vec<Target>,
    until: Instant,
}

impl<'a> Changing<'a> {
    fn begin(target: &'a Target, timeout: Duration) -> anyhow::Result<Changing<'a>> {
        let mut changing = Changing { target, members: Vec::new(), until: Instant::now() + timeout };
        let said = ask_member(target, ANSWER_PATIENCE)?;
        changing.note(&said);
        Ok(changing)
    }

    fn note(&mut self, said: &ClusterStatus) {
        let members = said.members.iter().filter_map(|member| at(&member.clients, self.target).ok());
        self.members = members.collect();
    }

    /// Waits for a leader, and returns its address with what it says.
    fn leader(&mut self) -> anyhow::Result<(Target, ClusterStatus)> {
        loop {
            let mut targets = vec![self.target.clone()];
            targets.extend(self.members.iter().cloned());
            for target in targets {
                let Ok(said) = ask_member(&target, ANSWER_PATIENCE) else { continue };
                if said.role == "leader" {
                    self.note(&said);
                    return Ok((target, said));
                }
            }
            self.wait("no member leads; `tidemark cluster status` says what is wrong")?;
        }
    }

    /// Waits a moment; fails with `why` when the time is over.
    fn wait(&self, why: &str) -> anyhow::Result<()> {
        if Instant::now() >= self.until {
            bail!("{why}");
        }
        std::thread::sleep(LOOK_PAUSE);
        Ok(())
    }

    /// Asks the leader for a change until it begins one.
    fn ask(&mut self, command: &[&str]) -> anyhow::Result<()> {
        loop {
            let (target, _) = self.leader()?;
            let mut client = connect(&target, ANSWER_PATIENCE)?;
            let reply = client.call(command)?;
            let Some(error) = reply.as_error() else { return Ok(()) };
            let error = String::from_utf8_lossy(error).into_owned();
            let is_passing =
                ["MOVED ", "TRYAGAIN ", "CLUSTERDOWN "].iter().any(|code| error.starts_with(code));
            if !is_passing {
                bail!("the leader at {target} answers: {error}");
            }
            self.wait(&format!("the leader at {target} answers: {error}"))?;
        }
    }

    /// Waits until `is_done`; fails when the leader's last change was not made, or the time is over.
    fn wait_until(
        &mut self,
        what: &str,
        is_done: impl Fn(&ClusterStatus) -> bool,
    ) -> anyhow::Result<ClusterStatus> {
        loop {
            let (_, said) = self.leader()?;
            if is_done(&said) {
                return Ok(said);
            }
            if said.change.is_none()
                && let Some(error) = &said.last_change_error
            {
                bail!("{what}: {error}");
            }
            self.wait(&format!("{what}: it is still under way; `tidemark cluster status` shows its end"))?;
        }
    }

    fn transfer(&mut self, node: u64) -> anyhow::Result<ClusterStatus> {
        let (_, leader) = self.leader()?;
        if leader.node == node {
            return Ok(leader);
        }
        self.ask(&["CLUSTER", "TRANSFER", &node.to_string()])?;
        self.wait_until(&format!("member {node} does not lead"), |said| said.node == node)
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
        self.ask(&["CLUSTER", "FORGET", &node.to_string()])?;
        self.wait_until(&format!("member {node} is not removed"), |said| said.member(node).is_none())?;
        Ok(())
    }
}

fn say(line: &str) -> anyhow::Result<ExitCode> {
    writeln!(io::stdout(), "{line}")?;
    Ok(ExitCode::SUCCESS)
}

/// Lets member `node` lead.
pub(super) fn transfer(target: &Target, node: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    let said = Changing::begin(target, timeout)?.transfer(node)?;
    say(&format!("member {node} leads, in term {}", said.term))
}

/// Takes member `node` out of the cluster.
pub(super) fn remove(target: &Target, node: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    Changing::begin(target, timeout)?.remove(node)?;
    say(&format!("member {node} is removed: stop its process; its directory is of no use any more"))
}

/// Takes member `old` out of the cluster once `new` votes.
pub(super) fn replace(target: &Target, old: u64, new: u64, timeout: Duration) -> anyhow::Result<ExitCode> {
    if old == new {
        bail!("a member cannot take its own place: the new one has a number of its own");
    }
    let mut changing = Changing::begin(target, timeout)?;
    loop {
        let (_, leader) = changing.leader()?;
        match leader.member(new) {
            Some(member) if member.votes => break,
            Some(_) => changing
                .wait(&format!("member {new} does not vote yet; repeat this when it has caught up"))?,
            None => changing.wait(&format!(
                "member {new} has not joined: start it with --cluster-node {new} and --cluster-join"
            ))?,
        }
    }
    changing.remove(old)?;
    say(&format!("member {new} has taken the place of {old}: stop the process of {old}"))
}

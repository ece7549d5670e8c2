//! Published messages between members: what `PUBLISH` says at one member reaches the subscribers of all.
//!
//! ```text
//!  PUBLISH ─► own subscribers
//!     └─► outgoing, until what it may show is committed ─► one frame to each member ─► its subscribers
//! ```
//!
//! A message arrives at most once, as on Redis Cluster's bus: it is dropped, and counted, where a member
//! is away or a queue is full. Messages of one publisher arrive in order. One thread does the work, and
//! also looks who leads: see [`announce_leader`].

use super::leadership::Leadership;
use super::message::{MessageFigures, Published};
use crate::command::sentinel_command::announce_leader;
use crate::events::publication::Kind;
use crate::shared::Shared;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, mem};
use tidemark_cluster::net::{Lane, Transport};
use tidemark_cluster::{GroupService, NodeId, Term, net::Service};
use tidemark_log::{Log, Lsn};
use tokio::sync::{mpsc, oneshot};

/// How often the thread looks who leads.
const PULSE: Duration = Duration::from_millis(50);
/// Bytes of messages that wait to be sent, and of frames that wait to be delivered. Beyond it messages
/// are dropped.
const QUEUED_BYTES_MAX: usize = 32 << 20;
/// Bytes that a message counts besides its channel and its payload.
const MESSAGE_COST: usize = 64;
/// Messages are sent together up to this size.
const FRAME_BYTES: usize = 1 << 20;

const CHANNEL: u8 = 1;
const SHARD: u8 = 2;

/// The messages of a member, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    queues: Mutex<Queues>,
    changed: Condvar,
    sent: AtomicU64,
    received: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Queues {
    outgoing: VecDeque<Published>,
    outgoing_bytes: usize,
    incoming: VecDeque<Bytes>,
    incoming_bytes: usize,
    /// The term that this member leads.
    leading: Option<Term>,
    /// The other members.
    peers: Vec<NodeId>,
    is_stopping: bool,
}

impl Messages {
    /// Queues a message for the subscribers of the other members. Returns at once.
    pub(crate) fn publish(&self, message: Published) {
        let bytes = message.bytes() + MESSAGE_COST;
        let mut queues = self.lock();
        if queues.peers.is_empty() {
            return;
        }
        // What was executed in a term that has ended may be taken back.
        let is_of_term = message.after.is_none_or(|(term, _)| queues.leading == Some(term));
        if !is_of_term || queues.outgoing_bytes + bytes > QUEUED_BYTES_MAX {
            let lost = queues.peers.len();
            drop(queues);
            return self.drop_messages(lost);
        }
        queues.outgoing_bytes += bytes;
        queues.outgoing.push_back(message);
        drop(queues);
        self.changed.notify_all();
    }

    pub(crate) fn figures(&self) -> MessageFigures {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        MessageFigures {
            sent: read(&self.sent),
            received: read(&self.received),
            dropped: read(&self.dropped),
        }
    }

    /// Notes that the log has moved: what messages wait for may be committed.
    pub(crate) fn log_moved(&self) {
        if !self.lock().outgoing.is_empty() {
            self.changed.notify_all();
        }
    }

    pub(super) fn begin_term(&self, term: Term) {
        self.lock().leading = Some(term);
    }

    /// Drops the messages that wait for records: another leader decides whether those stay. Called
    /// before anything of that leader is committed here.
    pub(super) fn end_term(&self) {
        let mut queues = self.lock();
        queues.leading = None;
        let before = queues.outgoing.len();
        queues.outgoing.retain(|message| message.after.is_none());
        let lost = (before - queues.outgoing.len()) * queues.peers.len();
        queues.outgoing_bytes = queues.outgoing.iter().map(|message| message.bytes() + MESSAGE_COST).sum();
        drop(queues);
        self.drop_messages(lost);
    }

    pub(super) fn set_peers(&self, peers: Vec<NodeId>) {
        self.lock().peers = peers;
    }

    /// Ends the thread.
    pub(super) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// Queues what another member has sent. On the thread of the consensus: returns at once.
    fn receive(&self, frame: Bytes) {
        let mut queues = self.lock();
        if queues.incoming_bytes + frame.len() > QUEUED_BYTES_MAX {
            drop(queues);
            let lost = decode(&frame).map_or(1, |messages| messages.len());
            return self.drop_messages(lost);
        }
        queues.incoming_bytes += frame.len();
        queues.incoming.push_back(frame);
        drop(queues);
        self.changed.notify_all();
    }

    fn drop_messages(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Waits for work, at most for a moment. `None` once the thread is to end. What is returned for
    /// others may be told: the end of a term comes before or behind.
    fn next_work(&self, committed: impl Fn() -> Lsn) -> Option<Work> {
        let is_free = |message: &Published| message.after.is_none_or(|(_, lsn)| lsn <= committed());
        let idle = |queues: &mut Queues| {
            !queues.is_stopping && queues.incoming.is_empty() && !queues.outgoing.front().is_some_and(is_free)
        };
        let waited = self.changed.wait_timeout_while(self.lock(), PULSE, idle);
        let (mut queues, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if queues.is_stopping {
            return None;
        }
        let (mut outgoing, mut count) = (Vec::new(), 0);
        while let Some(message) = queues.outgoing.pop_front_if(|message| {
            is_free(message) && (outgoing.is_empty() || outgoing.len() + message.bytes() <= FRAME_BYTES)
        }) {
            queues.outgoing_bytes -= message.bytes() + MESSAGE_COST;
            encode(&message, &mut outgoing);
            count += 1;
        }
        queues.incoming_bytes = 0;
        let incoming = mem::take(&mut queues.incoming);
        Some(Work { outgoing, count, peers: queues.peers.clone(), incoming })
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the thread is to do next.
struct Work {
    /// A frame of messages, or nothing.
    outgoing: Vec<u8>,
    /// The number of its messages.
    count: usize,
    peers: Vec<NodeId>,
    incoming: VecDeque<Bytes>,
}

/// Starts the thread. It ends by [`Messages::stop`].
pub(super) fn start(
    messages: Arc<Messages>,
    leadership: Arc<Leadership>,
    log: Arc<Log>,
    transport: impl Transport,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("tidemark-messages".to_owned()).spawn(move || {
        let mut unanswered: BTreeMap<NodeId, VecDeque<Unanswered>> = BTreeMap::new();
        while let Some(work) = messages.next_work(|| log.committed()) {
            if let Some(server) = leadership.server() {
                deliver(&messages, &work.incoming, &server);
                announce_leader(&server);
            }
            if work.count > 0 {
                for peer in &work.peers {
                    let answer = transport.send(*peer, Lane::Message, work.outgoing.clone());
                    unanswered.entry(*peer).or_default().push_back(Unanswered { answer, count: work.count });
                }
            }
            unanswered.values_mut().for_each(|sent| take_answers(&messages, sent));
            unanswered.retain(|_, sent| !sent.is_empty());
        }
    })
}

/// A frame that was sent. The transport's limit on queued bytes bounds their number.
struct Unanswered {
    answer: oneshot::Receiver<Bytes>,
    count: usize,
}

/// Counts what has arrived, and what is lost.
fn take_answers(messages: &Messages, sent: &mut VecDeque<Unanswered>) {
    while let Some(first) = sent.front_mut() {
        match first.answer.try_recv() {
            Ok(_) => drop(messages.sent.fetch_add(first.count as u64, Ordering::Relaxed)),
            Err(oneshot::error::TryRecvError::Empty) => return,
            Err(oneshot::error::TryRecvError::Closed) => messages.drop_messages(first.count),
        }
        sent.pop_front();
    }
}

/// Hands messages of other members to the subscribers of this one.
fn deliver(messages: &Messages, frames: &VecDeque<Bytes>, server: &Shared) {
    for frame in frames {
        // The connection has checked the frame: a member of another version has sent it.
        let Some(received) = decode(frame) else {
            messages.drop_messages(1);
            continue;
        };
        messages.received.fetch_add(received.len() as u64, Ordering::Relaxed);
        for (kind, channel, payload) in received {
            // What it may show is committed: the publisher has waited for that.
            server.pubsub.publish(kind, channel, payload, None, None, &server.inboxes);
        }
    }
}

fn encode(message: &Published, into: &mut Vec<u8>) {
    into.push(if message.kind == Kind::Shard { SHARD } else { CHANNEL });
    for part in [&message.channel, &message.payload] {
        into.extend_from_slice(&(part.len() as u32).to_le_bytes());
        into.extend_from_slice(part);
    }
}

/// A message of a frame: its kind, channel and payload.
type Received<'f> = (Kind, &'f [u8], &'f [u8]);

/// Returns the messages of a frame; `None` if it is none.
fn decode(mut frame: &[u8]) -> Option<Vec<Received<'_>>> {
    let mut messages = Vec::new();
    while let Some((kind, rest)) = frame.split_first() {
        let kind = match *kind {
            CHANNEL => Kind::Channel,
            SHARD => Kind::Shard,
            _ => return None,
        };
        let (channel, rest) = part(rest)?;
        let (payload, rest) = part(rest)?;
        messages.push((kind, channel, payload));
        frame = rest;
    }
    Some(messages)
}

fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

/// Answers the frames of other members: messages here, everything else in the consensus.
#[derive(Clone)]
pub(super) struct MemberService {
    pub(super) consensus: GroupService,
    pub(super) messages: Arc<Messages>,
}

impl Service for MemberService {
    async fn serve(
        &self,
        from: NodeId,
        lane: Lane,
        mut requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        if lane != Lane::Message {
            return self.consensus.serve(from, lane, requests, answers).await;
        }
        while let Some(frame) = requests.recv().await {
            self.messages.receive(frame);
            if answers.send(Vec::new()).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PEERS: [NodeId; 2] = [NodeId(2), NodeId(3)];

    fn messages() -> Messages {
        let messages = Messages::default();
        messages.set_peers(PEERS.to_vec());
        messages
    }

    fn message(text: &str, after: Option<(u64, u64)>) -> Published {
        let after = after.map(|(term, lsn)| (Term(term), Lsn(lsn)));
        Published {
            kind: Kind::Channel,
            channel: b"news".as_slice().into(),
            payload: text.as_bytes().into(),
            after,
        }
    }

    /// What may be sent when `committed` is.
    fn sent(messages: &Messages, committed: u64) -> Vec<String> {
        let work = messages.next_work(|| Lsn(committed)).expect("the thread goes on");
        let texts = decode(&work.outgoing).expect("messages");
        assert_eq!(texts.len(), work.count);
        texts.into_iter().map(|(_, _, text)| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn a_message_waits_until_what_it_may_show_is_committed_and_those_behind_it_wait_too() {
        let messages = messages();
        messages.begin_term(Term(5));
        messages.publish(message("first", Some((5, 7))));
        messages.publish(message("second", None));
        assert!(sent(&messages, 6).is_empty());
        assert_eq!(sent(&messages, 7), ["first", "second"]);
        assert!(sent(&messages, 7).is_empty());
    }

    #[test]
    fn a_message_whose_term_has_ended_is_dropped_and_counted_for_each_member() {
        let messages = messages();
        messages.begin_term(Term(5));
        messages.publish(message("waits", Some((5, 7))));
        messages.publish(message("free", None));
        messages.end_term();
        messages.publish(message("late", Some((5, 7))));
        assert_eq!(sent(&messages, 100), ["free"]);
        assert_eq!(messages.figures().dropped, 2 * PEERS.len() as u64);
        messages.begin_term(Term(6));
        messages.publish(message("of the term before", Some((5, 7))));
        messages.publish(message("of this one", Some((6, 8))));
        assert_eq!(sent(&messages, 8), ["of this one"]);
    }

    #[test]
    fn queues_are_bounded_in_both_directions() {
        let messages = messages();
        let large = "x".repeat(QUEUED_BYTES_MAX / 4);
        (0..5).for_each(|_| messages.publish(message(&large, None)));
        assert_eq!(messages.figures().dropped, 2 * PEERS.len() as u64);
        assert_eq!(sent(&messages, 0).len(), 1, "a large message has a frame of its own");
        let mut frame = Vec::new();
        encode(&message(&large, None), &mut frame);
        let frame = Bytes::from(frame);
        (0..5).for_each(|_| messages.receive(frame.clone()));
        assert_eq!(messages.figures().dropped, 2 * PEERS.len() as u64 + 2);
        assert_eq!(messages.next_work(|| Lsn::ZERO).expect("work").incoming.len(), 3);
        messages.receive(frame);
        assert_eq!(messages.next_work(|| Lsn::ZERO).expect("work").incoming.len(), 1, "there is room again");
    }

    #[test]
    fn the_answers_say_what_has_arrived_and_what_is_lost() {
        let messages = messages();
        let (answered, first) = oneshot::channel();
        let (lost, second) = oneshot::channel();
        let (_open, third) = oneshot::channel();
        let mut sent: VecDeque<Unanswered> =
            [(first, 3), (second, 4), (third, 5)].map(|(answer, count)| Unanswered { answer, count }).into();
        answered.send(Bytes::new()).expect("it is awaited");
        drop(lost);
        take_answers(&messages, &mut sent);
        assert_eq!(messages.figures(), MessageFigures { sent: 3, received: 0, dropped: 4 });
        assert_eq!(sent.len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn frames_are_read_back_and_no_bytes_panic(
            parts in prop::collection::vec(
                (any::<bool>(), prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..40)), 0..6
            ),
            at: prop::sample::Index, value: u8,
        ) {
            let mut frame = Vec::new();
            for (is_shard, channel, payload) in &parts {
                let kind = if *is_shard { Kind::Shard } else { Kind::Channel };
                let (channel, payload) = (channel.as_slice().into(), payload.as_slice().into());
                encode(&Published { kind, channel, payload, after: None }, &mut frame);
            }
            let read = decode(&frame).expect("a frame");
            prop_assert_eq!(read.len(), parts.len());
            for ((kind, channel, payload), (is_shard, expected_channel, expected)) in read.iter().zip(&parts) {
                prop_assert_eq!(*kind == Kind::Shard, *is_shard);
                prop_assert_eq!((*channel, *payload), (expected_channel.as_slice(), expected.as_slice()));
            }
            if !frame.is_empty() {
                let at = at.index(frame.len());
                prop_assert!(decode(&frame[..at]).is_none_or(|read| read.len() < parts.len()), "cut");
                frame[at] = value;
                let _ = decode(&frame);
            }
        }
    }
}

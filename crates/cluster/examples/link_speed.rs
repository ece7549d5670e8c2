//! Measures a link beside plain TCP, both ends on threads of their own:
//! `cargo run --release -p tidemark-cluster --example link_speed`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tidemark_cluster::RandomId;
use tidemark_cluster::net::{
    Identity, Lane, NetEvents, NetSettings, Peer, Roster, Service, TcpTransport, Tls, Transport,
};
use tidemark_cluster::{GroupId, NodeId};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PINGS: usize = 20_000;
const FRAME_BYTES: usize = 256 << 10;
const FRAMES: usize = 8_000;
const FRAMES_UNDER_WAY: usize = 16;
const TWO: NodeId = NodeId(2);

type Error = Box<dyn std::error::Error>;

#[derive(Clone)]
struct Short;

impl Service for Short {
    async fn serve(
        &self,
        _: NodeId,
        _: Lane,
        mut requests: mpsc::Receiver<Bytes>,
        answers: mpsc::Sender<Vec<u8>>,
    ) {
        while let Some(request) = requests.recv().await {
            if answers.send(request[..16].to_vec()).await.is_err() {
                return;
            }
        }
    }
}

struct Silent;

impl NetEvents for Silent {
    fn heartbeats_closed(&self, _: NodeId) {}
    fn connection_failed(&self, _: Option<NodeId>, error: &str) {
        eprintln!("{error}");
    }
}

fn main() -> Result<(), Error> {
    for _ in 0..3 {
        plain_pings()?;
        plain_frames()?;
        let runtime = runtime()?;
        runtime.block_on(link("a link", None))?;
        runtime.block_on(link("a link with TLS", Some(certificates()?)))?;
    }
    Ok(())
}

fn runtime() -> Result<Runtime, Error> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

fn percentiles(name: &str, mut nanoseconds: Vec<u128>) {
    nanoseconds.sort_unstable();
    let at = |percent: usize| nanoseconds[nanoseconds.len() * percent / 100] as f64 / 1000.0;
    println!("{name}: p50 {:.1} µs, p99 {:.1} µs", at(50), at(99));
}

/// A blocking ping of 36 bytes, as many as a frame of 16 has, between two threads.
fn plain_pings() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        socket.set_nodelay(true)?;
        let mut bytes = [0; 36];
        while socket.read_exact(&mut bytes).is_ok() {
            socket.write_all(&bytes)?;
        }
        Ok(())
    });
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let (mut bytes, mut times) = ([7; 36], Vec::new());
    for _ in 0..PINGS {
        let begin = Instant::now();
        socket.write_all(&bytes)?;
        socket.read_exact(&mut bytes)?;
        times.push(begin.elapsed().as_nanos());
    }
    drop(socket);
    echo.join().map_err(|_| "the echo ends")??;
    percentiles("plain TCP, 36 bytes", times);
    Ok(())
}

/// Blocking writes of frames, answered by 36 bytes each, between two threads.
fn plain_frames() -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let reader = thread::spawn(move || -> std::io::Result<()> {
        let (mut socket, _) = listener.accept()?;
        let mut bytes = vec![0; FRAME_BYTES];
        for _ in 0..FRAMES {
            socket.read_exact(&mut bytes)?;
            socket.write_all(&[0; 36])?;
        }
        Ok(())
    });
    let mut socket = TcpStream::connect(address)?;
    let mut answers = socket.try_clone()?;
    let begin = Instant::now();
    let counter = thread::spawn(move || answers.read_exact(&mut vec![0; 36 * FRAMES]));
    for _ in 0..FRAMES {
        socket.write_all(&vec![1; FRAME_BYTES])?;
    }
    counter.join().map_err(|_| "the answers end")??;
    report_rate("plain TCP, frames of 256 KiB", begin);
    reader.join().map_err(|_| "the reader ends")??;
    Ok(())
}

fn report_rate(name: &str, begin: Instant) {
    let rate = (FRAMES * FRAME_BYTES) as f64 / 1e9 / begin.elapsed().as_secs_f64();
    println!("{name}: {rate:.2} GB/s");
}

fn identity(node: NodeId, cluster: RandomId) -> std::io::Result<Identity> {
    let (directory, process) = (RandomId::draw()?, RandomId::draw()?);
    Ok(Identity { cluster, group: GroupId(0), node, directory, process })
}

/// TLS with a certificate for this machine, of an authority that ends with the program.
fn certificates() -> Result<Tls, Error> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.signed_by(&key, &authority)?;
    let (root, certificate) = (authority.der().clone(), certificate.der().clone());
    Ok(Tls::new(vec![root], vec![certificate], key.serialize_der().try_into()?)?)
}

async fn link(name: &str, tls: Option<Tls>) -> Result<(), Error> {
    let cluster = RandomId::draw()?;
    let socket = TcpListener::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?.to_string();
    let other = runtime()?;
    let peer = TcpTransport::new(
        other.handle().clone(),
        identity(TWO, cluster)?,
        NetSettings::default(),
        tls.clone(),
        Arc::new(Silent),
    )?;
    peer.set_roster(Roster { admits_unlisted: true, ..Roster::default() });
    peer.listen(socket, Short)?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = thread::spawn(move || drop(other.block_on(stopped)));

    let here = tokio::runtime::Handle::current();
    let own = identity(NodeId(1), cluster)?;
    let transport = TcpTransport::new(here, own, NetSettings::default(), tls, Arc::new(Silent))?;
    let peers = [(TWO, Peer { address, directory: None })].into();
    transport.set_roster(Roster { peers, admits_unlisted: false });
    while transport.send(TWO, Lane::Heartbeat, vec![0; 16]).await.is_err() {}

    let mut times = Vec::new();
    for _ in 0..PINGS {
        let begin = Instant::now();
        transport.send(TWO, Lane::Heartbeat, vec![0; 16]).await?;
        times.push(begin.elapsed().as_nanos());
    }
    percentiles(&format!("{name}, 16 bytes in a frame"), times);

    let begin = Instant::now();
    let mut answers = std::collections::VecDeque::new();
    for _ in 0..FRAMES {
        answers.push_back(transport.send(TWO, Lane::Log, vec![1; FRAME_BYTES]));
        if answers.len() >= FRAMES_UNDER_WAY
            && let Some(answer) = answers.pop_front()
        {
            answer.await?;
        }
    }
    for answer in answers {
        answer.await?;
    }
    report_rate(&format!("{name}, frames of 256 KiB, {FRAMES_UNDER_WAY} under way"), begin);
    transport.close();
    peer.close();
    drop(stop);
    thread.join().map_err(|_| "the runtime of the peer ends")?;
    Ok(())
}

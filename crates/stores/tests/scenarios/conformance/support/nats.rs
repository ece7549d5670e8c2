//! Behaviour that only a stream of NATS has.

use super::{DEADLINE, batch, positions};
use crate::conformance::running::{found, free_port};
use crate::conformance::{Kind, Running};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tidemark_counter::store::Store;
use tidemark_stores::{Deadlines, NatsOptions, NatsStore};

/// Returns the number of messages in a stream.
fn messages_of(stream: &str, port: u16) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = async_nats::connect(format!("127.0.0.1:{port}")).await.expect("a connection");
        let stream = async_nats::jetstream::new(client).get_stream(stream).await.expect("the stream");
        stream.cached_info().state.messages
    })
}

pub(crate) fn is_cut_by_copies() {
    const BATCHES: u64 = 400;
    let running = Running::shared(Kind::Nats);
    let options = NatsOptions {
        stream: "copies".into(),
        copy_after_bytes: 2_000,
        deadlines: Deadlines { connect: DEADLINE, request: DEADLINE },
        ..NatsOptions::new(format!("nats://127.0.0.1:{}", running.port))
    };
    let open = || NatsStore::new(options.clone()).expect("an address");
    let (mut one, mut other, mut seldom) = (open(), open(), open());
    let claims = [one.claim("one").expect("a claim"), other.claim("other").expect("a claim")];
    let third = seldom.claim("seldom").expect("a claim");
    let long = "key".repeat(100);
    let mut sequence = 0;
    // Both writers make copies, until the stream has far fewer messages than were written.
    while sequence < BATCHES || messages_of("copies", running.port) > BATCHES / 2 {
        sequence += 1;
        one.commit(&batch("one", claims[0], sequence, &[(&long, 1), ("short", 2)])).expect("a receipt");
        other.commit(&batch("other", claims[1], sequence, &[("short", 1)])).expect("a receipt");
    }
    assert_eq!((one.copy_failure(), other.copy_failure()), (None, None));
    // A store that has just opened and one that has not read for long find the same positions.
    let sums = [Some(sequence as i64), Some(3 * sequence as i64), None];
    assert_eq!(positions(&mut open(), &[&long, "short", "none"]), sums);
    seldom.commit(&batch("seldom", third, 1, &[("none", 7)])).expect("a receipt");
    assert_eq!(positions(&mut seldom, &[&long, "short", "none"]), [sums[0], sums[1], Some(7)]);
    assert_eq!(open().claim("one").expect("a claim").last_sequence, sequence);
}

/// Creates or updates a stream that stores the messages of this subject.
async fn listen(context: &async_nats::jetstream::Context, stream: &str, subject: &str) {
    let config = async_nats::jetstream::stream::Config {
        name: stream.to_owned(),
        subjects: vec![subject.to_owned()],
        ..Default::default()
    };
    context.create_or_update_stream(config).await.expect("the stream");
}

pub(crate) fn waits_for_a_stream_that_does_not_listen_yet() {
    let running = Running::shared(Kind::Nats);
    let url = format!("nats://127.0.0.1:{}", running.port);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let context = runtime.block_on(async {
        let context =
            async_nats::jetstream::new(async_nats::connect(url.clone()).await.expect("a connection"));
        listen(&context, "late", "late.for_now").await;
        context
    });
    let options = NatsOptions {
        stream: "late".into(),
        deadlines: Deadlines { connect: DEADLINE, request: DEADLINE },
        ..NatsOptions::new(url)
    };
    let mut store = NatsStore::new(options).expect("an address");
    // No stream listens on the store's subject yet; one does a moment later.
    assert_eq!(positions(&mut store, &["key"]), [None]);
    let claiming = std::thread::spawn(move || store.claim("writer").map(|claim| (claim, store)));
    std::thread::sleep(Duration::from_millis(100));
    runtime.block_on(listen(&context, "late", "late.commits"));
    let (claim, mut store) = claiming.join().expect("no panic").expect("a claim");
    store.commit(&batch("writer", claim, 1, &[("key", 5)])).expect("a receipt");
    assert_eq!(positions(&mut store, &["key"]), [Some(5)]);
}

/// Starts a server that accepts only TLS, with a certificate made for this test.
pub(crate) fn is_asked_over_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=tidemark", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "extendedKeyUsage=serverAuth", "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(at("key.pem"))
        .arg("-out")
        .arg(at("certificate.pem"))
        .output()
        .expect("openssl is there: apt-get install openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let port = free_port();
    let mut server = found("nats-server")
        .args(["-a", "127.0.0.1", "-p", &port.to_string(), "--user", "ann", "--pass", "secret", "-js", "-sd"])
        .arg(at("data"))
        .arg("--tls")
        .arg("--tlscert")
        .arg(at("certificate.pem"))
        .arg("--tlskey")
        .arg(at("key.pem"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nats-server is there: apt-get install nats-server");
    let options = |certificates| NatsOptions {
        certificates,
        deadlines: Deadlines { connect: DEADLINE, request: DEADLINE },
        ..NatsOptions::new(format!("tls://ann:secret@127.0.0.1:{port}"))
    };
    let outcome = std::panic::catch_unwind(|| {
        let mut store = NatsStore::new(options(Some(at("certificate.pem")))).expect("an address");
        let began = Instant::now();
        let claim = loop {
            match store.claim("writer") {
                Ok(claim) => break claim,
                Err(error) => assert!(began.elapsed() < DEADLINE, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        store.commit(&batch("writer", claim, 1, &[("key", 5)])).expect("a receipt");
        assert_eq!(positions(&mut store, &["key"]), [Some(5)]);
        // A client that does not trust the certificate sends nothing, not even its password.
        let error = NatsStore::new(options(None))
            .expect("an address")
            .claim("writer")
            .expect_err("the host is unknown");
        assert!(!error.to_string().contains("secret"), "{error}");
    });
    let _ = server.kill();
    let _ = server.wait();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

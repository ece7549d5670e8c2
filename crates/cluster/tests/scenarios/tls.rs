//! Links with mutual TLS.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tidemark_cluster::net::{Lane, Peer, Roster, Tls, TlsFiles};

use crate::support::{Echo, Member, identity, introduce, patient, run};

pub(crate) type Authority = CertifiedIssuer<'static, KeyPair>;

pub(crate) fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// The TLS of a member whose certificate `signer` has made for `host`, and which trusts `trusted`.
pub(crate) fn tls(trusted: &Authority, signer: &Authority, host: &str) -> Tls {
    let directory = tempfile::tempdir().expect("a directory");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new([host.to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, signer).expect("a certificate");
    let file = |name: &str, pem: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, pem).expect("a file");
        path
    };
    let files = TlsFiles {
        authority: file("authority.pem", trusted.pem()),
        certificate: file("certificate.pem", certificate.pem()),
        key: file("key.pem", key.serialize_pem()),
    };
    Tls::load(&files).expect("TLS")
}

fn member(node: u64, tls: Option<Tls>) -> Member {
    Member::start_with(identity(node), patient(), tls, Echo)
}

#[test]
fn members_of_one_authority_talk_on_all_lanes() {
    run(async {
        let authority = authority();
        let tls = || Some(tls(&authority, &authority, "localhost"));
        let (one, two) = (member(1, tls()), member(2, tls()));
        introduce(&[&one, &two]);
        for lane in Lane::ALL {
            let request = vec![5; lane.request_bytes_max().min(64 << 20)];
            let answer = one.ask_until_answered(&two, lane, &request).await;
            assert_eq!(answer[..3], [1, lane.code(), 5]);
            two.ask_until_answered(&one, lane, &request).await;
        }
        let answers: Vec<_> =
            (0..1000_u32).map(|n| one.send(two.node(), Lane::Log, n.to_le_bytes().to_vec())).collect();
        for (number, answer) in (0_u32..).zip(answers) {
            assert_eq!(answer.await.expect("an answer")[2..], number.to_le_bytes());
        }
    });
}

/// `stranger` connects to a member with TLS. Each end reports its words, and nothing is answered.
async fn is_refused(member_tls: Option<Tls>, stranger_tls: Option<Tls>, words: [&str; 2]) {
    let (one, stranger) = (member(1, member_tls), member(2, stranger_tls));
    one.transport.set_roster(Roster { peers: [].into(), admits_unlisted: true });
    stranger.transport.set_roster(Roster { peers: [one.listed()].into(), admits_unlisted: true });
    one.reports.error_with(words[0]).await;
    stranger.reports.error_with(words[1]).await;
    assert!(stranger.ask(&one, Lane::Log, b"x").await.is_none());
}

#[test]
fn a_certificate_of_another_authority_is_refused_by_both_ends() {
    run(async {
        let (ours, other) = (authority(), authority());
        let member = || Some(tls(&ours, &ours, "localhost"));
        // The stranger trusts our authority, but has no certificate of it.
        is_refused(
            member(),
            Some(tls(&ours, &other, "localhost")),
            ["invalid peer certificate", "fatal alert"],
        )
        .await;
        // The stranger does not trust our member.
        is_refused(
            member(),
            Some(tls(&other, &ours, "localhost")),
            ["fatal alert", "invalid peer certificate"],
        )
        .await;
    });
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    run(async {
        let ours = authority();
        let member = Some(tls(&ours, &ours, "elsewhere.example"));
        let words = ["fatal alert", "not valid for name"];
        is_refused(member, Some(tls(&ours, &ours, "localhost")), words).await;
    });
}

#[test]
fn plain_and_tls_do_not_meet() {
    run(async {
        let ours = authority();
        let with = || Some(tls(&ours, &ours, "localhost"));
        is_refused(with(), None, ["TLS with the peer failed", "node 1 at"]).await;
        is_refused(None, with(), ["the peer speaks TLS, and this member does not", "node 1 at"]).await;
    });
}

#[test]
fn a_key_of_another_certificate_is_refused_at_the_start() {
    let ours = authority();
    let key = KeyPair::generate().expect("a key");
    let certificate = CertificateParams::new(["localhost".to_owned()])
        .and_then(|params| params.signed_by(&key, &ours))
        .expect("a certificate");
    let other = KeyPair::generate().expect("a key");
    let key = other.serialize_der().try_into().expect("a private key");
    let error =
        Tls::new(vec![ours.der().clone()], vec![certificate.der().clone()], key).expect_err("a mismatch");
    assert!(error.to_string().contains("do not fit together"), "{error}");
}

#[test]
fn addresses_may_be_numbers() {
    run(async {
        let ours = authority();
        let tls = || Some(tls(&ours, &ours, "127.0.0.1"));
        let (one, two) = (member(1, tls()), member(2, tls()));
        two.transport.set_roster(Roster { peers: [].into(), admits_unlisted: true });
        let peer = Peer { address: two.address.to_string(), directory: None };
        one.transport.set_roster(Roster { peers: [(two.node(), peer)].into(), admits_unlisted: false });
        one.ask_until_answered(&two, Lane::Control, b"x").await;
    });
}

#[test]
fn certificates_are_renewed_without_a_restart() {
    run(async {
        let (old, new) = (authority(), authority());
        let with = |authority: &Authority| tls(authority, authority, "localhost");
        let (one, two) = (member(1, Some(with(&old))), member(2, Some(with(&old))));
        introduce(&[&one, &two]);
        one.ask_until_answered(&two, Lane::Log, b"x").await;
        for member in [&one, &two] {
            member.transport.renew_tls(with(&new)).expect("it has TLS");
        }
        // Connections that are there stay.
        assert!(one.ask(&two, Lane::Log, b"x").await.is_some());
        let three = member(3, Some(with(&new)));
        introduce(&[&one, &two, &three]);
        three.ask_until_answered(&one, Lane::Log, b"x").await;
        one.ask_until_answered(&three, Lane::Log, b"x").await;
        let plain = member(4, None);
        let error = plain.transport.renew_tls(with(&new)).expect_err("no TLS").to_string();
        assert!(error.contains("runs without TLS"), "{error}");
    });
}

//! TLS between the members of a cluster.

use crate::support::cluster::Cluster;
use crate::support::{Answer, Client, wait_until};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::path::Path;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// Writes a certificate for members on this machine, and returns the flags that name its files.
fn certificate(authority: &Authority, directory: &Path) -> Vec<String> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).expect("a name");
    let certificate = params.signed_by(&key, authority).expect("a certificate");
    let files = [("cert", certificate.pem()), ("key", key.serialize_pem()), ("ca-cert", authority.pem())];
    let flag = |(name, pem): (&str, String)| {
        let path = directory.join(format!("{name}.pem"));
        std::fs::write(&path, pem).expect("a file");
        [format!("--cluster-tls-{name}-file"), path.display().to_string()]
    };
    files.into_iter().flat_map(flag).collect()
}

fn renew(port: u16, path: &str) -> Answer {
    let mut client = Client::connect(port).expect("the member accepts");
    client.call(&["CONFIG", "SET", "cluster-tls-cert-file", path]).expect("an answer")
}

#[test]
fn members_with_certificates_form_a_cluster_and_go_on_with_renewed_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = authority();
    let flags = certificate(&first, directory.path());
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let mut cluster = Cluster::found_with(&flags);
    cluster.set("key", "value");
    // Files that do not fit together are refused, and the old ones stay in use.
    let good = std::fs::read(directory.path().join("key.pem")).expect("the file");
    std::fs::write(directory.path().join("key.pem"), "nothing").expect("a file");
    for port in cluster.clients {
        let Answer::Error(error) = renew(port, flags[1]) else { panic!("it is refused") };
        assert!(error.contains("key.pem") && error.contains("a private key"), "{error}");
        let Answer::Error(error) = renew(port, "elsewhere.pem") else { panic!("it is refused") };
        assert!(error.contains("immutable"), "{error}");
    }
    std::fs::write(directory.path().join("key.pem"), good).expect("a file");
    // Another authority: only members that have read its files again can connect with each other.
    let _ = certificate(&authority(), directory.path());
    for port in cluster.clients {
        assert_eq!(renew(port, flags[1]), Answer::Status("OK".into()));
    }
    for member in 0..3 {
        cluster.kill(member);
        cluster.run(member);
    }
    for mut client in cluster.settled() {
        let _ = client.call(&["READONLY"]).expect("an answer");
        assert_eq!(client.call(&["GET", "key"]).expect("an answer"), Answer::Bulk("value".into()));
    }
}

/// Whether a member knows no leader.
fn is_outside(port: u16) -> bool {
    let mut client = Client::connect(port).expect("the member accepts");
    let answer = client.call(&["SET", "key", "value"]).expect("an answer");
    matches!(answer, Answer::Error(error) if error.starts_with("CLUSTERDOWN"))
}

#[test]
fn a_member_without_a_certificate_of_the_authority_stays_outside() {
    let directories = [tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory")];
    let flags = certificate(&authority(), directories[0].path());
    let mut cluster = Cluster::found_with(&flags.iter().map(String::as_str).collect::<Vec<_>>());
    let outsider = (cluster.leader() + 1) % 3;
    cluster.kill(outsider);
    let strange = certificate(&authority(), directories[1].path());
    for flags in [strange.iter().map(String::as_str).collect::<Vec<_>>(), vec![]] {
        cluster.run_with(outsider, &flags);
        // The leader that it has heard of before counts for a lease.
        wait_until("it knows no leader", || is_outside(cluster.clients[outsider]));
        cluster.set("without", "1");
        assert!(is_outside(cluster.clients[outsider]));
        cluster.kill(outsider);
    }
    cluster.run(outsider);
    wait_until("the member follows", || {
        let mut client = Client::connect(cluster.clients[outsider]).expect("the member accepts");
        client.call(&["SET", "key", "value"]).is_ok_and(|answer| {
            matches!(&answer, Answer::Error(error) if error.starts_with("MOVED"))
                || answer == Answer::Status("OK".into())
        })
    });
}

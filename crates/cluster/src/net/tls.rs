//! Mutual TLS between members, with certificates of an authority of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Files of a member's certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificates of the authority, which signs those of members only: every holder of a certificate
    /// of it may connect.
    pub authority: PathBuf,
    /// The member's certificate, for the host in its address, and those between it and the authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why there is no TLS with these files.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read or has nothing of what it must have.
    #[error("the TLS file {path}: {error}; give a PEM file with {wanted}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What it must have.
        wanted: &'static str,
        /// What is wrong.
        error: String,
    },
    /// The certificate, its key and the authority do not fit together.
    #[error("the TLS files do not fit together: {0}")]
    Mismatch(String),
}

/// Both ends of TLS 1.3 in which each presents a certificate. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    pub(super) acceptor: TlsAcceptor,
    pub(super) connector: TlsConnector,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files and checks that they fit together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let authority = certificates(&files.authority)?;
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key)
            .map_err(|error| unreadable(&files.key, "a private key", error.to_string()))?;
        Self::new(authority, chain, key)
    }

    /// Uses a certificate chain with its key, and the certificates of the authority.
    pub fn new(
        authority: Vec<CertificateDer<'static>>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, TlsError> {
        let mismatch = |error: &dyn std::fmt::Display| TlsError::Mismatch(error.to_string());
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in authority {
            roots.add(certificate).map_err(|error| mismatch(&error))?;
        }
        let roots = Arc::new(roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider))
            .build()
            .map_err(|error| mismatch(&error))?;
        let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| mismatch(&error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(|error| mismatch(&error))?;
        // A resumed session would not look at the certificate again.
        server.send_tls13_tickets = 0;
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| mismatch(&error))?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(|error| mismatch(&error))?;
        client.resumption = Resumption::disabled();
        Ok(Self { acceptor: Arc::new(server).into(), connector: Arc::new(client).into() })
    }
}

/// Returns the name that the certificate at this address must have.
pub(super) fn name_of(address: &str) -> io::Result<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    ServerName::try_from(host.to_owned()).map_err(|_| {
        io::Error::other(format!("the address {address} has no name that a certificate can have"))
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const WANTED: &str = "certificates";
    let read = |error: &dyn std::fmt::Display| unreadable(path, WANTED, error.to_string());
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| read(&error))?.collect();
    let found = found.map_err(|error| read(&error))?;
    if found.is_empty() { Err(read(&"there is no certificate in it")) } else { Ok(found) }
}

fn unreadable(path: &Path, wanted: &'static str, error: String) -> TlsError {
    TlsError::File { path: path.to_owned(), wanted, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_for_the_host_of_an_address() {
        for (address, name) in [
            ("node1.example:7000", "node1.example"),
            ("10.0.0.1:7000", "10.0.0.1"),
            ("[::1]:7000", "::1"),
            ("node1", "node1"),
        ] {
            assert_eq!(name_of(address).expect(address).to_str(), name);
        }
        for address in ["", "a b:1", ":7000"] {
            assert!(name_of(address).is_err(), "{address}");
        }
    }

    #[test]
    fn a_file_without_what_is_wanted_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let empty = directory.path().join("empty.pem");
        std::fs::write(&empty, "").expect("a file");
        let missing = directory.path().join("missing.pem");
        let load = |authority: &Path, key: &Path| {
            let files = TlsFiles {
                authority: authority.to_owned(),
                certificate: authority.to_owned(),
                key: key.to_owned(),
            };
            Tls::load(&files).expect_err("an error").to_string()
        };
        let error = load(&empty, &empty);
        assert!(error.contains("empty.pem: there is no certificate in it"), "{error}");
        let error = load(&missing, &empty);
        assert!(error.contains("missing.pem"), "{error}");
    }
}

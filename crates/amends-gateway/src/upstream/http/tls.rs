//! TLS to one endpoint: whom we believe that it is the one.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long the handshake may take, whatever time the request has: nothing of the request is sent before it is over.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// TLS to the endpoint of one name.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

/// Why nothing can be sent over TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The file of the certificate authority cannot be used.
    #[error("cannot read a certificate from `{path}`: {reason}")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system trusts nobody.
    #[error("the system has no trusted certificates; name some with `ca`")]
    NobodyTrusted,
    /// No certificate can be for that name.
    #[error("`{0}` is no name that a certificate could be for")]
    Name(String),
    /// There is no TLS to be had.
    #[error("there is no TLS: {0}")]
    Unusable(String),
}

impl Tls {
    /// TLS to that host. It must show a certificate that the authority of the file signed, or one the system trusts where
    /// there is no file.
    pub(crate) fn to(host: &str, authority: Option<&Path>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        match authority {
            Some(path) => {
                for certificate in read(path)? {
                    let refused = |error: rustls::Error| unusable(path, &error);
                    roots.add(certificate).map_err(refused)?;
                }
            }
            None => {
                let (_added, _skipped) =
                    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    return Err(TlsError::NobodyTrusted);
                }
            }
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Unusable(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let host = host.trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Shakes hands; the reason in words where that fails.
    pub(super) async fn connect(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        let shaken = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.connector.connect(self.name.clone(), stream)).await;
        shaken.map_err(|_| "no answer to the TLS handshake".to_owned())?.map_err(|error| reason(&error))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = std::fs::read(path).map_err(|error| unusable(path, &error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(unusable(path, &"there is none in it")),
        Ok(found) => Ok(found),
        Err(error) => Err(unusable(path, &error)),
    }
}

fn unusable(path: &Path, reason: &dyn fmt::Display) -> TlsError {
    TlsError::Authority { path: path.to_owned(), reason: reason.to_string() }
}

/// Why a handshake failed, by TLS's own word where there is one.
fn reason(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    tls.map_or_else(|| format!("the TLS handshake broke off: {error}"), |tls| format!("no TLS: {tls}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_no_certificate_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let refused = Tls::to("shop.example", Some(&path)).unwrap_err().to_string();
        assert!(refused.contains("ca.pem"), "{refused}");
        std::fs::write(&path, "no certificate").unwrap();
        let refused = Tls::to("shop.example", Some(&path)).unwrap_err().to_string();
        assert!(refused.ends_with("there is none in it"), "{refused}");
    }
}

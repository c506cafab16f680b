//! TLS to PostgreSQL, as its address demands it.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

use crate::error::Error;

/// What an address demands of the line, in the words of PostgreSQL's own programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    mode: Mode,
    /// The file of the only authority that is believed, where it is not the system's.
    authority: Option<PathBuf>,
}

/// How much is demanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// No TLS.
    Off,
    /// TLS, whoever answers: nobody can listen, and anybody can pretend.
    Any,
    /// TLS with somebody whom the authority knows.
    Known,
    /// TLS with the one whom the address names.
    Named,
}

impl Demand {
    /// Takes what is said of TLS out of an address, and gives the rest of it.
    pub(super) fn split(url: &str) -> Result<(String, Self), Error> {
        let mut demand = Self { mode: Mode::Off, authority: None };
        let Some((place, query)) = url.split_once('?') else { return Ok((url.to_owned(), demand)) };
        let mut rest = Vec::new();
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslmode", mode)) => demand.mode = Mode::parse(mode)?,
                Some(("sslrootcert", "system")) => {}
                Some(("sslrootcert", file)) => demand.authority = Some(decoded(file).into()),
                _ => rest.push(pair),
            }
        }
        if demand.mode == Mode::Any && demand.authority.is_some() {
            // As PostgreSQL's own programs have it: whoever names an authority wants it to be asked.
            demand.mode = Mode::Known;
        }
        Ok((if rest.is_empty() { place.to_owned() } else { format!("{place}?{}", rest.join("&")) }, demand))
    }

    /// Whether there is to be TLS at all.
    pub(super) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }
}

impl Mode {
    fn parse(word: &str) -> Result<Self, Error> {
        Ok(match word {
            // Without a demand, asking for it would cost a round trip and prove nothing.
            "disable" | "allow" | "prefer" => Self::Off,
            "require" => Self::Any,
            "verify-ca" => Self::Known,
            "verify-full" => Self::Named,
            _ => {
                let known = "`disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`";
                return Err(unusable(&format!("`sslmode` is {known}")));
            }
        })
    }
}

/// How connections are secured.
#[derive(Clone)]
pub(super) struct Tls {
    config: Option<Arc<ClientConfig>>,
}

impl Tls {
    /// What is needed for that demand.
    pub(super) fn of(demand: &Demand) -> Result<Self, Error> {
        if !demand.is_on() {
            return Ok(Self { config: None });
        }
        let failed = |error: &dyn fmt::Display| unusable(&format!("there is no TLS: {error}"));
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&error))?;
        let authority = demand.authority.as_deref();
        let known = || -> Result<Arc<WebPkiServerVerifier>, Error> {
            let roots = Arc::new(roots(authority)?);
            WebPkiServerVerifier::builder_with_provider(roots, provider.clone()).build().map_err(|error| failed(&error))
        };
        let lenient = |known| Arc::new(Lenient { known, provider: provider.clone() });
        let builder = match demand.mode {
            Mode::Named => builder.with_root_certificates(roots(authority)?),
            Mode::Known => builder.dangerous().with_custom_certificate_verifier(lenient(Some(known()?))),
            Mode::Any | Mode::Off => builder.dangerous().with_custom_certificate_verifier(lenient(None)),
        };
        Ok(Self { config: Some(Arc::new(builder.with_no_client_auth())) })
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("on", &self.config.is_some()).finish_non_exhaustive()
    }
}

/// The authorities that are believed.
fn roots(authority: Option<&Path>) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    match authority {
        Some(path) => {
            let wrong = |reason: &dyn fmt::Display| {
                unusable(&format!("cannot read a certificate from `{}`: {reason}", path.display()))
            };
            let text = std::fs::read(path).map_err(|error| wrong(&error))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|error| wrong(&error))?;
                roots.add(certificate).map_err(|error| wrong(&error))?;
            }
            if roots.is_empty() {
                return Err(wrong(&"there is none in it"));
            }
        }
        None => {
            let (_added, _skipped) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            if roots.is_empty() {
                return Err(unusable("the system has no trusted certificates; name some with `sslrootcert`"));
            }
        }
    }
    Ok(roots)
}

fn unusable(words: &str) -> Error {
    Error::Unavailable { reason: format!("its address cannot be used: {words}") }
}

/// A part of an address as it is meant.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let hex = || u8::from_str_radix(std::str::from_utf8(others.get(..2)?).ok()?, 16).ok();
        let (byte, left) = match hex().filter(|_| *first == b'%') {
            Some(byte) => (byte, &others[2..]),
            None => (*first, others),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Believes whom the authority knows, whatever its name, or anybody at all. That whoever shows a certificate has its key is checked
/// in any case.
#[derive(Debug)]
struct Lenient {
    known: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(known) = &self.known else { return Ok(ServerCertVerified::assertion()) };
        match known.verify_server_cert(certificate, others, name, stapled, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Secured;
    type TlsConnect = Handshake;
    type Error = Box<dyn StdError + Send + Sync>;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Self::Error> {
        Ok(Handshake { config: self.config.clone(), host: host.to_owned() })
    }
}

/// TLS with one host, before it began.
pub(super) struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Secured;
    type Error = Box<dyn StdError + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Secured, Self::Error>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let config = self.config.ok_or("TLS was not asked for")?;
            let name = ServerName::try_from(self.host)?;
            Ok(Secured(TlsConnector::from(config).connect(name, stream).await?))
        })
    }
}

/// A line that is secured.
#[derive(Debug)]
pub(super) struct Secured(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_says_of_tls_is_taken_out_of_it() {
        let split = |url: &str| Demand::split(url).map(|(rest, demand)| (rest, demand.mode, demand.authority));
        let plain = "postgres://a@h/d";
        assert_eq!(split(plain).unwrap(), (plain.to_owned(), Mode::Off, None));
        for (said, mode) in [
            ("sslmode=disable", Mode::Off),
            ("sslmode=prefer", Mode::Off),
            ("sslmode=require", Mode::Any),
            ("sslmode=verify-ca", Mode::Known),
            ("sslmode=verify-full&sslrootcert=system", Mode::Named),
        ] {
            assert_eq!(split(&format!("{plain}?{said}")).unwrap(), (plain.to_owned(), mode, None), "{said}");
        }
        let url = "postgres://a@h/d?user=b&sslrootcert=%2Fa%20b.pem&sslmode=require&host=/x";
        let rest = "postgres://a@h/d?user=b&host=/x".to_owned();
        assert_eq!(split(url).unwrap(), (rest, Mode::Known, Some("/a b.pem".into())));
        let refused = split("postgres://a:s3cret@h/d?sslmode=verify").unwrap_err().to_string();
        assert!(refused.contains("verify-full") && !refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn an_authority_that_is_none_is_refused_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let demand = Demand { mode: Mode::Named, authority: Some(path.clone()) };
        assert!(Tls::of(&demand).unwrap_err().to_string().contains("ca.pem"));
        std::fs::write(&path, "no certificate").unwrap();
        assert!(Tls::of(&demand).unwrap_err().to_string().contains("there is none in it"));
    }
}

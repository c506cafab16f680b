//! Certificates of our own making.

use std::sync::Arc;

use base64::Engine;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// An authority that signs certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("an authority"))
    }

    /// Its own certificate, as a file.
    pub fn pem(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }

    /// A server's configuration, with a certificate for that name until that year.
    pub fn server(&self, name: &str, until: i32) -> Arc<ServerConfig> {
        let (certificate, key) = self.certify(name, until);
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a configuration");
        Arc::new(config)
    }

    /// A certificate for that name and its key, as files.
    pub fn files(&self, name: &str) -> (String, String) {
        let (certificate, key) = self.certify(name, 2999);
        (pem("CERTIFICATE", &certificate), pem("PRIVATE KEY", &key.serialize_der()))
    }

    fn certify(&self, name: &str, until: i32) -> (CertificateDer<'static>, KeyPair) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.not_after = date_time_ymd(until, 1, 1);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate").der().clone();
        (certificate, key)
    }
}

fn pem(kind: &str, bytes: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("text")).collect();
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n"))
}

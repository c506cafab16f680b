//! The signatures of tokens, checked with the library that TLS brings.

use jsonwebtoken::crypto::{CryptoProvider, JwkUtils, JwtSigner, JwtVerifier};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as Wrong, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature as checks;

/// The algorithms that count: each with a public key, so that nobody who can check a token can make one.
pub(super) const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, jwk_utils: JwkUtils::new_unimplemented() };

/// Has every token of this process checked here.
pub(super) fn install() {
    // The second time it is there already.
    let _ = PROVIDER.install_default();
}

fn signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    // We make no tokens.
    Err(ErrorKind::InvalidAlgorithm.into())
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let check = Check::of(*algorithm).ok_or(ErrorKind::InvalidAlgorithm)?;
    match (check, key.kind()) {
        (Check::Rsa(_), DecodingKeyKind::RsaModulusExponent { .. })
        | (Check::Point(_), DecodingKeyKind::SecretOrDer(_)) => {}
        _ => return Err(ErrorKind::InvalidKeyFormat.into()),
    }
    Ok(Box::new(Checker { algorithm: *algorithm, check, key: key.clone() }))
}

#[derive(Clone, Copy)]
enum Check {
    Rsa(&'static checks::RsaParameters),
    Point(&'static dyn checks::VerificationAlgorithm),
}

impl Check {
    fn of(algorithm: Algorithm) -> Option<Self> {
        Some(match algorithm {
            Algorithm::RS256 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Self::Rsa(&checks::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Self::Rsa(&checks::RSA_PSS_2048_8192_SHA256),
            Algorithm::ES256 => Self::Point(&checks::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Self::Point(&checks::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Self::Point(&checks::ED25519),
            Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 | Algorithm::PS384 | Algorithm::PS512 => {
                return None;
            }
        })
    }
}

struct Checker {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

impl Verifier<Vec<u8>> for Checker {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), Wrong> {
        let checked = match (self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                checks::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Check::Point(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                checks::UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            _ => return Err(Wrong::new()),
        };
        checked.map_err(|_| Wrong::new())
    }
}

impl JwtVerifier for Checker {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

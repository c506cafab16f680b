//! A small real issuer: its keys are made when it starts, it publishes them over HTTP, and signs whatever it is told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use serde_json::{Value, json};

/// Whom its tokens are for.
pub(crate) const AUDIENCE: &str = "http://localhost/mcp";

/// An issuer that listens on a free port.
pub(crate) struct Issuer {
    pub(crate) url: String,
    published: Arc<Published>,
}

#[derive(Default)]
struct Published {
    keys: Mutex<Vec<Value>>,
    /// What it says of itself, where that is not the truth.
    description: Mutex<Option<Value>>,
    /// Where it sends whoever asks for its keys.
    elsewhere: Mutex<Option<String>>,
    away: AtomicBool,
    over: AtomicBool,
    reads: AtomicUsize,
}

/// A key of an issuer.
pub(crate) struct Key {
    pub(crate) id: String,
    algorithm: &'static str,
    pair: Pair,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(Box<Mutex<Rsa>>),
}

/// A process that signs with an RSA key of its own.
struct Rsa {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    public: Value,
}

impl Drop for Rsa {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    i64::try_from(since.as_secs()).expect("a time")
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Key {
    pub(crate) fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("a key");
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
        Self { id: id.into(), algorithm: "EdDSA", pair: Pair::Ed25519(pair) }
    }

    pub(crate) fn p256(id: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self { id: id.into(), algorithm: "ES256", pair: Pair::P256(pair.expect("a key")) }
    }

    pub(crate) fn p384(id: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, document.as_ref(), &random);
        Self { id: id.into(), algorithm: "ES384", pair: Pair::P384(pair.expect("a key")) }
    }

    pub(crate) fn rsa(id: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/identity/rsa.py");
        let mut child = Command::new("python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 starts");
        let input = child.stdin.take().expect("its input");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        output.read_line(&mut line).expect("a key");
        let public = serde_json::from_str(&line).expect("a key");
        Self {
            id: id.into(),
            algorithm: "RS256",
            pair: Pair::Rsa(Box::new(Mutex::new(Rsa { child, input, output, public }))),
        }
    }

    /// The public half, as it is published.
    pub(crate) fn public(&self) -> Value {
        let point = |curve: &str, bytes: &[u8]| {
            let (x, y) = bytes[1..].split_at((bytes.len() - 1) / 2);
            json!({ "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) })
        };
        let mut jwk = match &self.pair {
            Pair::Ed25519(pair) => json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key()) }),
            Pair::P256(pair) => point("P-256", pair.public_key().as_ref()),
            Pair::P384(pair) => point("P-384", pair.public_key().as_ref()),
            Pair::Rsa(rsa) => {
                let mut public = rsa.lock().expect("the signer").public.clone();
                public["kty"] = json!("RSA");
                public
            }
        };
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A token of those claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({ "alg": self.algorithm, "kid": self.id, "typ": "at+jwt" }), claims)
    }

    /// The same by another algorithm of this key.
    pub(crate) fn token_by(&self, algorithm: &str, claims: &Value) -> String {
        self.token_with(&json!({ "alg": algorithm, "kid": self.id }), claims)
    }

    /// The same with that header.
    pub(crate) fn token_with(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
        let signature = match &self.pair {
            Pair::Ed25519(pair) => encode(pair.sign(message.as_bytes())),
            Pair::P256(pair) | Pair::P384(pair) => {
                encode(pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature"))
            }
            Pair::Rsa(rsa) => {
                let mut rsa = rsa.lock().expect("the signer");
                let algorithm = header["alg"].as_str().filter(|name| name.starts_with(['R', 'P'])).unwrap_or("RS256");
                writeln!(rsa.input, "{algorithm} {}", encode(&message)).expect("the signer listens");
                let mut line = String::new();
                rsa.output.read_line(&mut line).expect("a signature");
                line.trim().to_owned()
            }
        };
        format!("{message}.{signature}")
    }
}

/// A token of those claims with a shared secret, and with no signature at all.
pub(crate) fn shared(secret: &[u8], header: &Value, claims: &Value) -> String {
    let message = format!("{}.{}", encode(header.to_string()), encode(claims.to_string()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes())))
}

pub(crate) fn unsigned(claims: &Value) -> String {
    format!("{}.{}.", encode(json!({ "alg": "none" }).to_string()), encode(claims.to_string()))
}

impl Issuer {
    pub(crate) fn start(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let published = Arc::new(Published::default());
        let issuer = Self { url: url.clone(), published: published.clone() };
        issuer.publish(keys);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if published.over.load(Ordering::SeqCst) {
                    return;
                }
                if !published.away.load(Ordering::SeqCst) {
                    answer(&url, &published, stream);
                }
            }
        });
        issuer
    }

    /// Publishes those keys and no others.
    pub(crate) fn publish(&self, keys: &[&Key]) {
        *self.published.keys.lock().expect("the keys") = keys.iter().map(|key| key.public()).collect();
    }

    /// Says that of itself.
    pub(crate) fn describe(&self, description: Value) {
        *self.published.description.lock().expect("the description") = Some(description);
    }

    /// Sends whoever asks for its keys elsewhere.
    pub(crate) fn redirect(&self, location: &str) {
        *self.published.elsewhere.lock().expect("the place") = Some(location.to_owned());
    }

    /// Answers nobody, or everybody again.
    pub(crate) fn goes_away(&self, away: bool) {
        self.published.away.store(away, Ordering::SeqCst);
    }

    /// How often its keys were read.
    pub(crate) fn reads(&self) -> usize {
        self.published.reads.load(Ordering::SeqCst)
    }

    /// The claims of a good token of that subject.
    pub(crate) fn claims(&self, subject: &str) -> Value {
        json!({ "iss": self.url, "aud": AUDIENCE, "sub": subject, "iat": now(), "exp": now() + 600, "scope": "tools:call" })
    }

    /// The section of a configuration that believes it.
    pub(crate) fn section(&self, more: &str) -> String {
        format!(
            "[auth.oauth]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\nscopes = {{ call = \"tools:call\", admin = \"amends:admin\" }}\n\
             refresh_min = \"1s\"\n{more}\n",
            self.url
        )
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.published.over.store(true, Ordering::SeqCst);
        // It wakes up once more to see that it is over.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn answer(url: &str, published: &Published, mut stream: TcpStream) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let (status, more, body) = match path {
        "/.well-known/openid-configuration" => {
            let own = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") });
            let told = published.description.lock().expect("the description").clone().unwrap_or(own);
            ("200 OK", String::new(), told)
        }
        "/keys" => {
            published.reads.fetch_add(1, Ordering::SeqCst);
            match &*published.elsewhere.lock().expect("the place") {
                Some(place) => ("302 Found", format!("location: {place}\r\n"), Value::Null),
                None => ("200 OK", String::new(), json!({ "keys": *published.keys.lock().expect("the keys") })),
            }
        }
        _ => ("404 Not Found", String::new(), Value::Null),
    };
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{more}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
}

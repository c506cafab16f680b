//! Who we are elsewhere: an account at an issuer, by whose token an upstream believes us.
//!
//! A person signs in once, with a code that is entered at an address (RFC 8628) or at an address that leads back here (a code with
//! PKCE). What the issuer gives for that is kept sealed in the ledger, so that every node has it and a restart loses nothing. It is
//! renewed without a person for as long as the issuer does that, and is shown to its upstream and to nobody else.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use amends_core::interaction::{SignInAt, choice};
use amends_core::{Digest, PersonAnswer, Principal, Timestamp, UpstreamName};
use amends_ledger::{AnswerFate, Kept, QueueFilter, QueueState, keyed_digest};
use amends_wire::mcp::ToolCall;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use hyper::Uri;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::fetch::{self, Trust};
use super::keys;
use super::oidc::{basic, form};
use crate::clock;
use crate::config::{AccountConfig, By, CredentialConfig, SIGN_IN};
use crate::driver::{GATEWAY, Listener, Task, Wish};
use crate::gateway::Gateway;
use crate::mint;
use crate::upstream::{Upstream, credential_now};

/// For how long what an issuer says of itself is not read again.
const FRESH_FOR: Duration = Duration::from_secs(10 * 60);
/// How long before its end a token is not shown any more.
const MARGIN_MS: u64 = 10_000;
/// For how long an address that leads back here is good.
const WAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How often an issuer is asked whether a code was entered, where it does not say.
const INTERVAL: Duration = Duration::from_secs(5);
/// By how much less often, each time that it asks for that.
const SLOWER: Duration = Duration::from_secs(5);
/// How long a code is good at most, and how long a token or an address may be.
const CODE_MS_MAX: u64 = 60 * 60 * 1000;
const TOKEN_BYTES_MAX: usize = 16 << 10;
/// How often it is tried to keep a token that another node replaced at the same time.
const KEEP_TRIES: usize = 5;
/// How many open questions are looked through for those that are over.
const QUESTIONS_MAX: usize = 5000;
/// How long it is waited before somebody is asked again who did not want to, or an issuer that is away.
const ASK_AGAIN: Duration = Duration::from_secs(5 * 60);
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// An account at an issuer.
pub(crate) struct Account {
    config: AccountConfig,
    home: OnceLock<Home>,
    endpoints: tokio::sync::Mutex<Option<(Instant, Arc<Endpoints>)>>,
    held: Mutex<Held>,
    /// Held while a token is looked for.
    one_at_a_time: tokio::sync::Mutex<()>,
}

/// Whose account it is.
struct Home {
    gateway: Weak<Gateway>,
    upstream: UpstreamName,
}

#[derive(Default)]
struct Held {
    token: Option<Token>,
    /// The version under which it is kept.
    version: u64,
    /// Where somebody is to sign in.
    asked: Option<SignInAt>,
}

/// What an issuer gave.
#[derive(Clone, Serialize, Deserialize)]
struct Token {
    access: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh: Option<String>,
    /// When it is over, where the issuer says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
}

/// What goes along on the way to an issuer and back.
#[derive(Serialize, Deserialize)]
struct Along {
    upstream: UpstreamName,
    nonce: String,
    until: Timestamp,
}

/// Where an issuer is asked.
#[derive(Debug)]
struct Endpoints {
    authorization: Option<Uri>,
    device: Option<(Uri, Trust)>,
    token: (Uri, Trust),
    secret_in_form: bool,
}

/// Whether there is something to show.
#[derive(Debug)]
pub(crate) enum Ready {
    /// There is.
    Shown,
    /// Somebody has to sign in there first.
    SignIn(Box<SignInAt>),
    /// It cannot be found out now.
    Away(String),
}

/// What an issuer answers to whoever wants a token.
#[derive(Deserialize)]
struct Granted {
    #[serde(default)]
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<u64>,
    error: Option<String>,
}

/// What an issuer answers to whoever wants a code.
#[derive(Deserialize)]
struct Device {
    device_code: String,
    user_code: String,
    verification_uri: String,
    expires_in: u64,
    interval: Option<u64>,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Account(…)")
    }
}

impl Account {
    pub(crate) fn new(config: AccountConfig) -> Self {
        Self {
            config,
            home: OnceLock::new(),
            endpoints: tokio::sync::Mutex::default(),
            held: Mutex::default(),
            one_at_a_time: tokio::sync::Mutex::default(),
        }
    }

    /// It is that upstream's, of that gateway.
    pub(crate) fn belongs(&self, gateway: &Arc<Gateway>, upstream: &UpstreamName) {
        // The same one, where the configuration was read again.
        let _ = self.home.set(Home { gateway: Arc::downgrade(gateway), upstream: upstream.clone() });
    }

    /// The queue on which somebody is asked to sign in.
    pub(crate) fn queue(&self) -> &str {
        &self.config.queue
    }

    /// What the upstream is shown; nothing where there is nothing that it would take.
    pub(crate) fn shown(&self) -> Option<String> {
        let held = self.held();
        let token = held.token.as_ref()?;
        let over = token.until.is_some_and(|until| until - MARGIN_MS <= clock::now());
        (!over).then(|| token.access.clone())
    }

    /// The upstream did not take what it was shown: it is renewed before anything is shown again.
    pub(crate) fn refused(&self, shown: &str) {
        let mut held = self.held();
        if let Some(token) = held.token.as_mut().filter(|token| token.access == shown) {
            token.until = Some(Timestamp::default());
        }
    }

    /// Sees to it that there is something to show, as far as that needs no person.
    pub(crate) async fn ready(self: &Arc<Self>) -> Ready {
        if self.shown().is_some() {
            return Ready::Shown;
        }
        let _one = self.one_at_a_time.lock().await;
        let Some(gateway) = self.gateway() else { return Ready::Away("the gateway is stopping".into()) };
        if let Err(error) = self.look_up(&gateway).await {
            return Ready::Away(error);
        }
        if self.shown().is_some() {
            return Ready::Shown;
        }
        match self.renew(&gateway).await {
            Ok(true) => return Ready::Shown,
            Ok(false) => {}
            Err(why) => return Ready::Away(why),
        }
        match self.begin(&gateway).await {
            Ok(at) => Ready::SignIn(Box::new(at)),
            Err(why) => {
                tracing::warn!(upstream = %self.upstream(), why, "nobody can be asked to sign in");
                Ready::Away(format!("nobody can sign in for it now: {why}"))
            }
        }
    }

    /// Somebody came back from the issuer.
    pub(crate) async fn came_back(gateway: &Arc<Gateway>, state: &str, code: &str) -> Result<UpstreamName, String> {
        let along: Along = gateway.seal.open_account(state).ok_or("this way back was not begun here")?;
        if along.until <= clock::now() {
            return Err("this way back took too long".into());
        }
        let upstreams = gateway.upstreams();
        let account = upstreams.get(&along.upstream).and_then(|upstream| upstream.account());
        let account = account.ok_or("nobody signs in for that any more")?;
        let (verifier, back) = (account.verifier(gateway, &along.nonce), account.back(gateway));
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", back.as_str()),
            ("code_verifier", verifier.as_str()),
        ];
        let granted = account.grant(&fields).await?;
        account.take(gateway, granted).await?;
        Ok(along.upstream)
    }

    /// Takes over what is kept, where that is newer: another node may have renewed it.
    async fn look_up(&self, gateway: &Gateway) -> Result<(), String> {
        let kept = gateway.ledger.kept(&self.name(gateway)).await.map_err(|error| error.to_string())?;
        let mut held = self.held();
        if let Some(kept) = kept.filter(|kept| kept.version > held.version) {
            let sealed = String::from_utf8_lossy(&kept.body);
            held.version = kept.version;
            held.token = gateway.seal.open_account(&sealed).unwrap_or_default();
        }
        Ok(())
    }

    /// Renews a token that is over. `false` where nobody does that for us any more.
    async fn renew(&self, gateway: &Arc<Gateway>) -> Result<bool, String> {
        let Some(refresh) = self.held().token.as_ref().and_then(|token| token.refresh.clone()) else {
            return Ok(false);
        };
        let fields = [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str())];
        let granted = self.grant(&fields).await?;
        if let Some(error) = &granted.error {
            tracing::warn!(upstream = %self.upstream(), error, "what was given for signing in is not renewed any more");
            // Another node may have renewed it in the same moment; then what it got is kept by now.
            self.look_up(gateway).await?;
            if self.shown().is_some() {
                return Ok(true);
            }
            self.held().token = None;
            return Ok(false);
        }
        let refresh = granted.refresh_token.clone().or(Some(refresh));
        self.take(gateway, Granted { refresh_token: refresh, ..granted }).await?;
        Ok(true)
    }

    /// Where somebody has to sign in, from now on.
    async fn begin(self: &Arc<Self>, gateway: &Arc<Gateway>) -> Result<SignInAt, String> {
        let good = |at: &&SignInAt| at.expires_at.is_none_or(|until| until - MARGIN_MS > clock::now());
        if let Some(at) = self.held().asked.as_ref().filter(good) {
            return Ok(at.clone());
        }
        let endpoints = self.endpoints().await?;
        let at = match self.config.by {
            By::Url => self.way(gateway, &endpoints)?,
            By::Code => self.code(gateway, &endpoints).await?,
        };
        self.held().asked = Some(at.clone());
        Ok(at)
    }

    /// An address that leads back here.
    fn way(&self, gateway: &Gateway, endpoints: &Endpoints) -> Result<SignInAt, String> {
        let authorization = endpoints.authorization.as_ref().ok_or("the issuer names no address to sign in at")?;
        let (nonce, until) = (mint::token(), clock::now() + WAY_MS);
        let verifier = self.verifier(gateway, &nonce);
        let challenge = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes()));
        let state = gateway.seal.close_account(&Along { upstream: self.upstream().clone(), nonce, until });
        let (scope, back) = (self.scope(), self.back(gateway));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", self.config.issuer.audience.as_str()),
            ("redirect_uri", back.as_str()),
            ("state", state.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ];
        fields.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        fields.extend(self.config.resource.as_deref().map(|resource| ("resource", resource)));
        let mark = if authorization.query().is_some() { '&' } else { '?' };
        Ok(self.at(format!("{authorization}{mark}{}", form(&fields)), None, until))
    }

    /// A code that is entered at an address. Whether it was is asked for from now on.
    async fn code(self: &Arc<Self>, gateway: &Arc<Gateway>, endpoints: &Endpoints) -> Result<SignInAt, String> {
        let device = endpoints.device.as_ref().ok_or("the issuer gives no codes; say `by = \"url\"`")?;
        let scope = self.scope();
        let mut fields = Vec::new();
        fields.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        fields.extend(self.config.resource.as_deref().map(|resource| ("resource", resource)));
        let (status, body) = self.post(device, endpoints.secret_in_form, &fields).await?;
        if !status.is_success() {
            return Err(format!("the issuer gives no code: it answers with {status}"));
        }
        let given: Device = serde_json::from_slice(&body).map_err(|_| "what the issuer gives is no code".to_owned())?;
        let is_address = given.verification_uri.parse::<Uri>().is_ok_and(|uri| {
            let scheme = uri.scheme_str();
            scheme == Some("https") || (scheme == Some("http") && device.0.scheme_str() == Some("http"))
        });
        let sound = |text: &str| !text.is_empty() && text.len() < 256 && !text.chars().any(char::is_control);
        if !is_address || !sound(&given.user_code) || !sound(&given.verification_uri) {
            return Err("what the issuer gives is no code".into());
        }
        let until = clock::now() + given.expires_in.saturating_mul(1000).min(CODE_MS_MAX);
        let interval = given.interval.map_or(INTERVAL, Duration::from_secs).clamp(Duration::from_secs(1), SLOWER * 12);
        tokio::spawn(entered(Arc::downgrade(self), Arc::downgrade(gateway), given.device_code, until, interval));
        Ok(self.at(given.verification_uri, Some(given.user_code), until))
    }

    fn at(&self, url: String, code: Option<String>, until: Timestamp) -> SignInAt {
        let upstream = self.upstream().clone();
        SignInAt { upstream, url, code, expires_at: Some(until), says: None, is_heard: true }
    }

    /// Asks the issuer for a token. Its own No is an answer.
    async fn grant(&self, fields: &[(&str, &str)]) -> Result<Granted, String> {
        let endpoints = self.endpoints().await?;
        let mut fields = fields.to_vec();
        fields.extend(self.config.resource.as_deref().map(|resource| ("resource", resource)));
        let (status, body) = self.post(&endpoints.token, endpoints.secret_in_form, &fields).await?;
        let granted: Option<Granted> = serde_json::from_slice(&body).ok();
        match granted {
            Some(granted) if status.is_success() && granted.error.is_none() => {
                let sound =
                    |text: &str| text.len() <= TOKEN_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic());
                match !granted.access_token.is_empty() && sound(&granted.access_token) {
                    true => Ok(granted),
                    false => Err("what the issuer gives is no token".into()),
                }
            }
            Some(granted) if status.is_client_error() && granted.error.is_some() => Ok(granted),
            _ => Err(format!("the issuer gives no token: it answers with {status}")),
        }
    }

    async fn post(
        &self,
        (place, trust): &(Uri, Trust),
        secret_in_form: bool,
        fields: &[(&str, &str)],
    ) -> Result<(hyper::StatusCode, Vec<u8>), String> {
        let client = self.config.issuer.audience.as_str();
        let mut fields = fields.to_vec();
        fields.push(("client_id", client));
        let secret = match &self.config.secret {
            Some(source) => {
                let config = CredentialConfig { source: source.clone(), prefix: String::new() };
                Some(credential_now(&config).map_err(|error| error.to_string())?)
            }
            None => None,
        };
        let mut shown = None;
        match &secret {
            Some(secret) if secret_in_form => fields.push(("client_secret", secret.as_str())),
            Some(secret) => shown = Some(basic(client, secret).ok_or("the secret cannot be shown")?),
            None => {}
        }
        let posted = fetch::post(place, self.config.issuer.ca.as_deref(), *trust, form(&fields), shown).await;
        posted.map_err(|error| error.to_string())
    }

    /// Takes what an issuer gave: keeps it, and says so to whoever waits for it.
    async fn take(&self, gateway: &Arc<Gateway>, granted: Granted) -> Result<(), String> {
        if let Some(error) = granted.error {
            return Err(format!("the issuer gives no token: `{}`", error.chars().take(64).collect::<String>()));
        }
        let until = granted.expires_in.map(|seconds| clock::now() + seconds.saturating_mul(1000));
        let token = Token { access: granted.access_token, refresh: granted.refresh_token, until };
        let sealed = Bytes::from(gateway.seal.close_account(&Some(&token)));
        let name = self.name(gateway);
        for _ in 0..KEEP_TRIES {
            let version = self.held().version + 1;
            let kept = Kept { name: name.clone(), version, body: sealed.clone() };
            if gateway.ledger.keep(kept).await.map_err(|error| error.to_string())? {
                self.holds(token, version);
                tracing::info!(upstream = %self.upstream(), "there is a token to show");
                self.tell(gateway).await;
                return Ok(());
            }
            self.look_up(gateway).await?;
        }
        Err("the ledger does not keep it".into())
    }

    /// Answers every question whether somebody signed in for this upstream.
    async fn tell(&self, gateway: &Gateway) {
        let open = match gateway.ledger.queue(&QueueFilter::default(), QUESTIONS_MAX).await {
            Ok(open) => open,
            Err(error) => return tracing::warn!(%error, "whoever waits for somebody to sign in is not told yet"),
        };
        for entry in open.into_iter().filter(|entry| entry.state == QueueState::Open) {
            let of = |at: &SignInAt| at.is_heard && at.upstream == *self.upstream();
            if !entry.interaction.sign_in().is_some_and(of) {
                continue;
            }
            let (choice, by) = (choice::DONE.to_owned(), self.config.issuer.issuer.clone());
            let answer = PersonAnswer { choice, by, note: None, at: clock::now(), content: None };
            match gateway.ledger.answer_interaction(&entry.interaction.id, answer).await {
                Ok(AnswerFate::Taken | AnswerFate::Late { .. } | AnswerFate::Closed(_)) => {}
                Ok(fate) => tracing::warn!(interaction = %entry.interaction.id, ?fate, "it does not count"),
                Err(error) => tracing::warn!(%error, interaction = %entry.interaction.id, "it could not be answered"),
            }
        }
    }

    async fn endpoints(&self) -> Result<Arc<Endpoints>, String> {
        let mut held = self.endpoints.lock().await;
        if let Some((_, known)) = held.as_ref().filter(|(read, _)| read.elapsed() < FRESH_FOR) {
            return Ok(known.clone());
        }
        let (place, said) = keys::describe(&self.config.issuer).await.map_err(|error| error.to_string())?;
        let named = |named: &str| keys::trusted(&place, named).map_err(|error| error.to_string());
        let some = |text: &str| (!text.is_empty()).then(|| named(text)).transpose();
        let methods = &said.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|one| one == method);
        let read = Arc::new(Endpoints {
            authorization: some(&said.authorization_endpoint)?.map(|(uri, _)| uri),
            device: some(&said.device_authorization_endpoint)?,
            token: named(&said.token_endpoint)?,
            secret_in_form: has("client_secret_post") && !has("client_secret_basic"),
        });
        *held = Some((Instant::now(), read.clone()));
        Ok(read)
    }

    fn scope(&self) -> String {
        let scopes: Vec<&str> = self.config.scopes.iter().map(String::as_str).collect();
        scopes.join(" ")
    }

    /// Where an issuer sends a browser back to.
    fn back(&self, gateway: &Gateway) -> String {
        let here = || format!("http://{}", gateway.listening.get().copied().unwrap_or(gateway.config().http));
        format!("{}/callback/sign-in", self.config.url.clone().unwrap_or_else(here))
    }

    /// What proves that whoever brings a code back began the way here. It follows from the state, so that nothing is remembered.
    fn verifier(&self, gateway: &Gateway, nonce: &str) -> String {
        keyed_digest(&gateway.secret, &[b"account-verifier", nonce.as_bytes()]).to_string()
    }

    /// The name under which its token is kept. Another issuer, client or scope is another account.
    fn name(&self, gateway: &Gateway) -> Digest {
        let issuer = &self.config.issuer;
        let (scope, resource) = (self.scope(), self.config.resource.as_deref().unwrap_or_default());
        let parts = [self.upstream().as_str(), &issuer.issuer, &issuer.audience, &scope, resource];
        let parts: Vec<&[u8]> = std::iter::once("account").chain(parts).map(str::as_bytes).collect();
        keyed_digest(&gateway.secret, &parts)
    }

    fn gateway(&self) -> Option<Arc<Gateway>> {
        self.home.get()?.gateway.upgrade()
    }

    fn upstream(&self) -> &UpstreamName {
        static NOBODY: OnceLock<UpstreamName> = OnceLock::new();
        self.home.get().map_or_else(|| NOBODY.get_or_init(|| UpstreamName::new("")), |home| &home.upstream)
    }

    fn holds(&self, token: Token, version: u64) {
        let mut held = self.held();
        (held.token, held.version, held.asked) = (Some(token), version, None);
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks an issuer, as often as it wants to be asked, whether a code was entered, until it was or is worth nothing any more.
async fn entered(account: Weak<Account>, gateway: Weak<Gateway>, code: String, until: Timestamp, every: Duration) {
    let mut every = every;
    // Ends: a code is good for a bounded time.
    while clock::now() < until {
        tokio::time::sleep(every).await;
        let (Some(account), Some(gateway)) = (account.upgrade(), gateway.upgrade()) else { return };
        let fields = [("grant_type", "urn:ietf:params:oauth:grant-type:device_code"), ("device_code", code.as_str())];
        let why = match account.grant(&fields).await {
            Ok(granted) => match granted.error.as_deref() {
                None => match account.take(&gateway, granted).await {
                    Ok(()) => return,
                    Err(why) => why,
                },
                Some("authorization_pending") => continue,
                Some("slow_down") => {
                    every += SLOWER;
                    continue;
                }
                Some(error) => {
                    tracing::info!(upstream = %account.upstream(), error, "nobody signed in");
                    break;
                }
            },
            Err(why) => why,
        };
        // It is asked again, as long as the code is good.
        tracing::warn!(upstream = %account.upstream(), why, "it is not known whether somebody signed in");
    }
    if let Some(account) = account.upgrade() {
        account.held().asked = None;
    }
}

/// Has somebody sign in for an upstream of which nothing is known before: the gateway calls the tool that does so by itself.
pub(crate) async fn sign_in_first(gateway: Weak<Gateway>, upstream: Arc<Upstream>) {
    let Some(account) = upstream.account() else { return };
    loop {
        let Some(strong) = gateway.upgrade() else { return };
        let asks = matches!(account.ready().await, Ready::SignIn(_));
        let params = serde_json::json!({ "name": format!("{SIGN_IN}{}", upstream.name), "arguments": {} }).to_string();
        let raw = serde_json::from_str::<&RawValue>(&params).ok();
        let call = raw.and_then(|raw| ToolCall::parse(Some(raw)).ok()).filter(|_| asks);
        let listed = call.as_ref().is_some_and(|call| strong.catalogue.now().find(call.name()).is_some());
        let (Some(call), true) = (call, listed) else {
            drop(strong);
            tokio::time::sleep(LOOK_AGAIN).await;
            continue;
        };
        let session = strong.open_session(Principal::new("amends"), GATEWAY);
        let listener = Listener { task: Some(Task::default()), ..Listener::of_the_answer() };
        let handle = session.call(Wish::Call { params: &params, call: &call }, listener);
        drop((strong, session));
        let answered = handle.answer.await;
        let told = answered.map(|answered| answered.rendered.envelope_json()).unwrap_or_default();
        // A code whose time is over makes place for the next one.
        let lapsed = told["error"]["kind"] == "approval_expired";
        let pause = if told["status"] == "success" || lapsed { LOOK_AGAIN } else { ASK_AGAIN };
        tokio::time::sleep(pause).await;
    }
}

// A small real OpenID provider: discovery, a sign-in page, codes that work once with PKCE, signed ID tokens. It can be told to lie.

import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { createServer } from "node:http";

const CLIENT = "amends-console";
const SECRET = "s3cret of the console";

export class Issuer {
  /** Listens on a free port, under another site's name than the gateway's. */
  static async start(people) {
    const issuer = new Issuer();
    issuer.people = people;
    issuer.codes = new Map();
    issuer.redeemed = [];
    issuer.refusals = [];
    /** What is told otherwise than it is, in the next token: `(claims) => claims`. */
    issuer.lie = (claims) => claims;
    issuer.key = newKey("first");
    issuer.published = [issuer.key];
    issuer.server = createServer((request, response) => issuer.answer(request, response));
    await new Promise((listens) => issuer.server.listen(0, "127.0.0.1", listens));
    issuer.url = `http://localhost:${issuer.server.address().port}`;
    return issuer;
  }

  /** The section of a configuration that sends people here. */
  section(secretFile, more = "") {
    return (
      `[console.oidc]\nissuer = ${JSON.stringify(this.url)}\nclient_id = ${JSON.stringify(CLIENT)}\n` +
      `secret = { file = ${JSON.stringify(secretFile)} }\nrole_claim = "groups"\n` +
      `roles = { "Finance leads" = "approver", platform = "operator" }\n${more}\n`
    );
  }

  get secret() {
    return SECRET;
  }

  /** Signs with a key that it does not publish. */
  forge() {
    this.key = newKey("first");
  }

  async answer(request, response) {
    const url = new URL(request.url, this.url);
    const body = await new Promise((done) => {
      const parts = [];
      request.on("data", (part) => parts.push(part));
      request.on("end", () => done(Buffer.concat(parts).toString()));
    });
    const tell = (status, value) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(value));
    };
    switch (`${request.method} ${url.pathname}`) {
      case "GET /.well-known/openid-configuration":
        return tell(200, {
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          jwks_uri: `${this.url}/keys`,
          token_endpoint_auth_methods_supported: ["client_secret_basic"],
        });
      case "GET /keys":
        return tell(200, { keys: this.published.map((key) => key.jwk) });
      case "GET /authorize":
        return this.ask(url.searchParams, response);
      case "POST /authorize":
        return this.signIn(new URLSearchParams(body), response);
      case "POST /token":
        return this.redeem(new URLSearchParams(body), request.headers.authorization, tell);
      default:
        return tell(404, {});
    }
  }

  /** The page on which people say who they are. */
  ask(asked, response) {
    const wrong =
      asked.get("client_id") !== CLIENT ||
      asked.get("response_type") !== "code" ||
      asked.get("code_challenge_method") !== "S256" ||
      !asked.get("scope").split(" ").includes("openid") ||
      !asked.get("state") ||
      !asked.get("nonce");
    const fields = [...asked].map(([name, value]) => `<input type="hidden" name="${name}" value="${escaped(value)}">`);
    response.writeHead(wrong ? 400 : 200, { "content-type": "text/html" });
    response.end(
      wrong
        ? "this is not how it is asked"
        : `<h1>Who are you?</h1><form method="post" action="/authorize">${fields.join("")}<input name="who"><button>Sign in</button></form>`,
    );
  }

  /** Sends the browser back with a code. */
  signIn(asked, response) {
    const back = new URL(asked.get("redirect_uri"));
    back.searchParams.set("state", asked.get("state"));
    back.searchParams.set("iss", this.url);
    const person = this.people[asked.get("who")];
    if (person) {
      const code = randomBytes(16).toString("hex");
      this.codes.set(code, { asked, person: { sub: asked.get("who"), ...person } });
      back.searchParams.set("code", code);
    } else {
      back.searchParams.set("error", "access_denied");
    }
    response.writeHead(303, { location: back.href });
    response.end();
  }

  /** A token for a code: once, for whoever asked for it. */
  redeem(shown, authorization, tell) {
    const found = this.codes.get(shown.get("code"));
    const basic = Buffer.from(`${CLIENT}:${encodeURIComponent(SECRET)}`).toString("base64");
    const challenge = createHash("sha256").update(shown.get("code_verifier") ?? "").digest("base64url");
    const why =
      (!found && "the code is not known") ||
      (authorization !== `Basic ${basic}` && "the secret is wrong") ||
      (found.asked.get("code_challenge") !== challenge && "the verifier is wrong") ||
      (found.asked.get("redirect_uri") !== shown.get("redirect_uri") && "the way back is another one");
    if (why) {
      this.refusals.push(why);
      return tell(400, { error: "invalid_grant", error_description: why });
    }
    this.codes.delete(shown.get("code"));
    this.redeemed.push(shown.get("code"));
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.url, aud: CLIENT, nonce: found.asked.get("nonce"), iat: now, exp: now + 300, ...found.person };
    return tell(200, { access_token: "unused", token_type: "Bearer", id_token: this.key.token(this.lie(claims)) });
  }

  async end() {
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }
}

function newKey(kid) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const encode = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return {
    jwk: { ...publicKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" },
    token(claims) {
      const message = `${encode({ alg: "ES256", kid, typ: "JWT" })}.${encode(claims)}`;
      const signature = sign("sha256", Buffer.from(message), { key: privateKey, dsaEncoding: "ieee-p1363" });
      return `${message}.${signature.toString("base64url")}`;
    },
  };
}

function escaped(text) {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

// What the stories of the console share: a gateway of their own on a free port, a shop that fails on cue, and a real browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

// Gateways are started in folders of their own.
export const AMENDS = process.env.AMENDS_BIN && resolve(process.env.AMENDS_BIN);
const BROWSER = process.env.AMENDS_CHROMIUM ?? "chromium";
export const PATIENCE = 60_000;

/** The refund machine of the stories: large refunds are approved by a person. */
export const MACHINE = `
[tools.get_order]
effect = "read"

[tools.issue_refund]
effect = "keyed"
key = { argument = "idempotency_key", window = "24h", durable = true }
reverse = { tool = "cancel_refund", args = { id = "result.id" }, within = "24h" }

[tools.charge_card]
effect = "write"
timeout = "1s"

[machines.refund]
description = "Pays a customer back."
initial = "asked"
terminal = ["paid"]

[machines.refund.actions.look_up]
from = ["asked"]
to = "known"
tool = "get_order"
args = { order = "inputs.order" }
input = { type = "object", properties = { order = { type = "string" } }, required = ["order"] }
writes = { order = "inputs.order" }

[machines.refund.actions.pay_back]
from = ["known"]
to = "paid"
queue = "money"
tool = "issue_refund"
args = { order = "state.order", amount = "inputs.amount" }
input = { type = "object", properties = { amount = { type = "number" } }, required = ["amount"] }
`;

/** A gateway with a ledger and a shop in a folder of its own. */
export class Place {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "amends-console-"));
    this.gateways = [];
    this.port = 0;
  }

  file(name, text) {
    const path = join(this.folder, name);
    if (text !== undefined) writeFileSync(path, text);
    return path;
  }

  /** Starts a gateway; after the first time on the same port again. */
  async serve({ faults = "", config = MACHINE, console: said = "", memory = false } = {}) {
    const command = [AMENDS, "shop", "--book", this.file("book.db"), "--faults", this.file("faults.toml", faults)];
    const ledger = memory ? "memory:" : `sqlite:${this.file("amends.db")}`;
    const text =
      `[ledger]\nurl = ${JSON.stringify(ledger)}\n\n[listen]\nhttp = "127.0.0.1:${this.port}"\n\n${said}\n` +
      `[upstreams.shop]\ncommand = ${JSON.stringify(command)}\nprefix = ""\ntimeout = "10s"\ndeadline = "50s"\n${config}`;
    const gateway = await Gateway.start(this.file("amends.toml", text), this.folder);
    this.port = Number(new URL(gateway.url).port);
    this.gateways.push(gateway);
    await eventually("the shop's tools are served", async () => {
      const { body } = await gateway.call("get_order", { order: "ord_ready" });
      return body.status === "success";
    });
    return gateway;
  }

  async end() {
    for (const gateway of this.gateways) await gateway.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class Gateway {
  static async start(config, folder) {
    const gateway = new Gateway();
    gateway.links = [];
    gateway.child = spawn(AMENDS, ["serve", "--config", config], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
    gateway.over = new Promise((done) => gateway.child.once("exit", done));
    const lines = createInterface({ input: gateway.child.stderr });
    await new Promise((listens, failed) => {
      gateway.child.once("exit", (code) => failed(new Error(`the gateway ended with ${code}`)));
      lines.on("line", (line) => {
        console.error(`gateway: ${line}`);
        const link = line.match(/^console: (http\S+)$/);
        if (link) gateway.links.push(link[1]);
        const said = line.match(/^amends listens on (http:\S+);/);
        if (said) {
          gateway.url = said[1];
          listens();
        }
      });
    });
    return gateway;
  }

  /** The link to sign in with that was printed last. */
  async link() {
    await eventually("a link is printed", () => this.links.length > 0);
    return this.links.shift();
  }

  async call(tool, args) {
    const answer = await fetch(`${this.url}/call/${tool}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(args),
    });
    return { status: answer.status, body: await answer.json() };
  }

  /** Takes a step in a walk through the machine. */
  async step(action, inputs, session) {
    const args = { action, inputs };
    if (session) args.session = session;
    const { body } = await this.call("step", args);
    return body;
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.over;
  }
}

/** A browser with what its pages complained about. */
export class Browser {
  static async open() {
    const browser = new Browser();
    browser.chromium = await chromium.launch({
      executablePath: BROWSER.includes("/") ? BROWSER : which(BROWSER),
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
    });
    return browser;
  }

  /** A person of their own, signed in with that link. */
  async person(link, options = {}) {
    const context = await this.chromium.newContext({ viewport: { width: 1280, height: 900 }, ...options });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.complaints = [];
    page.on("console", (message) => {
      if (message.type() === "error") page.complaints.push(message.text());
    });
    page.on("pageerror", (error) => page.complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      page.complaints.push(`a dialog opened: ${dialog.message()}`);
      dialog.dismiss();
    });
    if (link) await page.goto(link);
    return page;
  }

  async close() {
    await this.chromium.close();
  }
}

function which(name) {
  for (const folder of (process.env.PATH ?? "").split(":")) {
    const path = join(folder, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // The next folder may have it.
    }
  }
  throw new Error(`there is no \`${name}\` on the PATH; tests/console/setup.sh says what to install`);
}

/** Waits for a condition, generously. What it throws counts as not yet. */
export async function eventually(what, condition) {
  const began = Date.now();
  let last;
  while (Date.now() - began < PATIENCE) {
    try {
      const found = await condition();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((later) => setTimeout(later, 50));
  }
  throw new Error(`it never came true that ${what}`, { cause: last });
}

/** Tells a story, and cleans up whatever comes of it. */
export async function story(tell) {
  const place = new Place();
  const browser = await Browser.open();
  try {
    await tell({ place, browser });
  } finally {
    await browser.close();
    await place.end();
  }
}

export { assert };

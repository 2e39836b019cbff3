/** The commands of an account's and an institution's user, and `listen`, against a running program with its demo. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Buffer } from "node:buffer"
import { randomUUID } from "node:crypto"
import { readFileSync, statSync, writeFileSync } from "node:fs"
import { request as ask } from "node:http"
import { join } from "node:path"
import { generateSecret } from "../../services/webhooks/Signer.ts"
import * as Processes from "../support/Processes.ts"
import { serve } from "../services/platform/Outbound/LoopbackServers.ts"
import { mailEvent } from "./support/EventFeed.ts"
import { cli } from "./support/ProgramInstance.ts"
import { fixture } from "./support/ProgramFixture.ts"
import { faultOf } from "./support/Receiver.ts"
import { until } from "./support/Until.ts"

const started = Effect.gen(function* () {
  const program = yield* fixture({ DEMO: "true", MAIL_ISSUERS: "" })
  const demo = JSON.parse(readFileSync(join(program.home, "demo.json"), "utf8"))
  /** A command as a user types it who has an address and a credential, and no access to the servers. */
  const typed = (key: string, ...args: ReadonlyArray<string>) =>
    cli({ BAILIWICK_URL: program.instance.origin(), BAILIWICK_KEY: key, BAILIWICK_HOME: "/nowhere" }, ...args)
  const done = Effect.fnUntraced(function* (key: string, ...args: ReadonlyArray<string>) {
    const { code, output } = yield* typed(key, ...args)
    assert.strictEqual(code, 0, output)
    return output
  })
  const json = (key: string, ...args: ReadonlyArray<string>) =>
    Effect.map(done(key, ...args, "--json"), (text) => JSON.parse(text))
  const token = (id: string) => Effect.map(cli(program.env, "token", "--person", id), ({ output }) => output.trim())
  return { ...program, demo, typed, done, json, token }
})

class Around extends Context.Service<Around, Effect.Success<typeof started>>()(
  "bailiwick/test/e2e/AccountCommands/Around",
) {
  static readonly layer = Layer.effect(Around, started)
}

/** A server on loopback that records what arrives; it refuses what `secrets` did not sign. */
const receiver = Effect.fnUntraced(function* (secrets: () => ReadonlyArray<string>) {
  const arrivals: Array<{ readonly id: string; readonly email: string; readonly fault: string | null }> = []
  const { port } = yield* serve((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const body = Buffer.concat(chunks)
      const fault = faultOf(request, body, secrets())
      arrivals.push({ id: String(request.headers["webhook-id"]), email: JSON.parse(body.toString()).email_id, fault })
      response.writeHead(fault === null ? 204 : 401).end()
    })
  })
  return { arrivals, port }
})

layer(Around.layer, { excludeTestServices: true, timeout: "2 minutes" })("commands of a user", (it) => {
  it.effect("webhooks and deliveries: made, listed, shown, changed, tested, replayed, deleted", () =>
    Effect.gen(function* () {
      const { demo, done, json } = yield* Around
      const { api_key } = demo.accounts.alice
      let secret = ""
      const endpoint = yield* receiver(() => [secret])
      const url = `http://127.0.0.1:${endpoint.port}/${"long/".repeat(12)}`
      const events = "email.delivered,email.bounced"
      const made = yield* json(api_key, "webhooks", "create", "--url", url, "--events", events)
      secret = made.secret
      assert.match(secret, /^whsec_/)
      const table = yield* done(api_key, "webhooks", "list")
      assert.match(table, /^id +health +url +events +description\n/)
      assert.include(table, made.id)
      assert.notInclude(table, url)
      assert.include(yield* done(api_key, "webhooks", "list", "--full"), url)
      const line = (yield* done(api_key, "webhooks", "list", "--json")).split("\n").find((one) => one.includes(made.id))
      assert.strictEqual(JSON.parse(line!).url, url)

      assert.match(yield* done(api_key, "webhooks", "test", made.id), /a sample of email\.delivered is on its way/)
      yield* until("the sample", Effect.sync(() => endpoint.arrivals), (all) => all.length === 1)
      assert.isNull(endpoint.arrivals[0]!.fault)
      const listing = ["deliveries", "list", "--webhook", made.id, "--since", "1h"]
      yield* until("its record", done(api_key, ...listing), (text) => /delivered +1 +204/.test(text))
      const { id } = yield* json(api_key, ...listing, "--limit", "1")
      const shown = yield* json(api_key, "deliveries", "show", id)
      assert.strictEqual(shown.payload.event, "email.delivered")
      assert.strictEqual(yield* done(api_key, "deliveries", "replay", id), `${id} replayed\n`)
      yield* until("the replay", Effect.sync(() => endpoint.arrivals), (all) => all.length === 2)

      const changed = yield* json(api_key, "webhooks", "update", made.id, "--description", "shop")
      assert.deepInclude(changed, { description: "shop", url, events: events.split(",") })
      const honoring = yield* json(api_key, "webhooks", "update", made.id, "--honor-retry-after")
      assert.deepInclude(honoring, { description: "shop", honor_retry_after: true })
      const still = yield* json(api_key, "webhooks", "update", made.id, "--no-honor-retry-after")
      assert.isFalse(still.honor_retry_after)
      for (const [asked, rate_limit] of [["20", 20], ["0", null]] as const) {
        const limited = yield* json(api_key, "webhooks", "update", made.id, "--rate-limit", asked)
        assert.deepInclude(limited, { description: "shop", rate_limit })
      }
      assert.isFalse((yield* json(api_key, "webhooks", "pause", made.id)).is_active)
      assert.notInclude(yield* done(api_key, "webhooks", "list"), made.id)
      assert.include(yield* done(api_key, "webhooks", "list", "--paused"), made.id)
      assert.isTrue((yield* json(api_key, "webhooks", "resume", made.id)).is_active)
      assert.notStrictEqual((yield* json(api_key, "webhooks", "rotate-secret", made.id)).secret, secret)
      assert.match(yield* done(api_key, "webhooks", "show", made.id), /^description +shop$/m)
      yield* done(api_key, "webhooks", "delete", made.id)
    }))

  it.effect("a delivery that waits is tried again now, and cancelled; a sample is of the type that was asked for", () =>
    Effect.gen(function* () {
      const { demo, done, json, typed } = yield* Around
      const { api_key } = demo.accounts.alice
      const heard: Array<string> = []
      const { port } = yield* serve((request, response) => {
        heard.push(String(request.headers["x-webhook-event"]))
        response.writeHead(503).end()
      })
      const url = ["--url", `http://127.0.0.1:${port}/`, "--events", "email.bounced,email.opened"]
      const made = yield* json(api_key, "webhooks", "create", ...url)
      const told = yield* done(api_key, "webhooks", "test", made.id, "--event", "email.opened")
      assert.include(told, `a sample of email.opened is on its way to ${made.url}`)
      const listing = ["deliveries", "list", "--webhook", made.id, "--since", "1h"]
      yield* until("the first attempt", done(api_key, ...listing), (text) => /retrying +1 +503/.test(text))
      const { id } = yield* json(api_key, ...listing, "--limit", "1")

      assert.strictEqual(yield* done(api_key, "deliveries", "retry", id), `${id} retried\n`)
      yield* until("the second attempt", done(api_key, ...listing), (text) => /retrying +2 +503/.test(text))
      assert.deepStrictEqual(heard, ["email.opened", "email.opened"])

      assert.strictEqual(yield* done(api_key, "deliveries", "cancel", id), `${id} cancelled\n`)
      assert.strictEqual((yield* json(api_key, "deliveries", "show", id)).status, "cancelled")
      for (const verb of ["cancel", "retry"]) {
        const { code, output } = yield* typed(api_key, "deliveries", verb, id)
        assert.strictEqual(code, 1, output)
      }
      const unknown = yield* typed(api_key, "webhooks", "test", made.id, "--event", "email.eaten")
      assert.strictEqual(unknown.code, 1)
      assert.include(unknown.output, "email.delivered")
      assert.strictEqual(heard.length, 2)
      yield* done(api_key, "webhooks", "delete", made.id)
    }))

  it.effect("webhooks of another product: told of, imported once with their secrets, and refused with every fault", () =>
    Effect.gen(function* () {
      const { demo, done, home, typed } = yield* Around
      const { api_key } = demo.accounts.bob
      const secret = generateSecret()
      const endpoint = yield* receiver(() => [secret])
      const at = (path: string) => `http://127.0.0.1:${endpoint.port}/${path}`
      const file = join(home, "svix.json")
      const ours = { id: "ep_1", url: at("one"), filterTypes: ["email.delivered"], secret, disabled: false }
      const paused = { id: "ep_2", url: at("two"), secret: { key: generateSecret() }, disabled: true }
      const write = (...data: ReadonlyArray<object>) => writeFileSync(file, JSON.stringify({ data, done: true }))
      const importing = ["webhooks", "import", file, "--from", "svix"]
      const outcomes = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const output = yield* done(api_key, ...importing, "--json", ...args)
        assert.notInclude(output, secret)
        return output.trim().split("\n").map((line) => JSON.parse(line))
      })
      write(ours, paused)
      const told = yield* outcomes("--dry-run")
      assert.deepStrictEqual(told.map(({ result, source_id, webhook_id }) => [source_id, result, webhook_id]), [
        ["ep_1", "absent", null],
        ["ep_2", "absent", null],
      ])
      assert.strictEqual(yield* done(api_key, "webhooks", "list", "--paused", "--json"), "")
      const made = yield* outcomes()
      assert.deepStrictEqual(made.map(({ paused, result }) => [result, paused]), [["made", false], ["made", true]])
      const again = yield* outcomes()
      assert.deepStrictEqual(
        again.map(({ result, webhook_id }) => [result, webhook_id]),
        made.map(({ webhook_id }) => ["exists", webhook_id]),
      )
      yield* done(api_key, "webhooks", "test", made[0].webhook_id)
      yield* until("a sample", Effect.sync(() => endpoint.arrivals), (all) => all.length === 1)
      assert.isNull(endpoint.arrivals[0]!.fault, "signed with the secret that was brought")
      assert.match(yield* done(api_key, ...importing), /^endpoint +result +webhook +url +notes\nep_1 +exists/)

      // What only the installation knows is refused one by one, and the others are made.
      write({ ...ours, id: "ep_3", url: "http://10.0.0.1/" }, { ...ours, id: "ep_4", url: at("four") })
      const refused = yield* typed(api_key, ...importing)
      assert.strictEqual(refused.code, 1, refused.output)
      assert.match(refused.output, /^ep_3 +refused +- /m)
      assert.match(refused.output, /^ep_3: url: .+/m)
      assert.match(refused.output, /^ep_4 +made /m)

      write({ ...ours, id: "ep_5", url: "none", secret: "whsec_dGlueQ==" }, { ...ours, id: "ep_6", channels: ["a"] })
      const faulty = yield* typed(api_key, ...importing)
      assert.strictEqual(faulty.code, 1)
      assert.match(
        faulty.output,
        /endpoint 1 \(ep_5\): url: .+\nendpoint 1 \(ep_5\): secret: .+\nendpoint 2 \(ep_6\): channels: /,
      )
      assert.notInclude(faulty.output, "dGlueQ")
      for (
        const { id } of (yield* done(api_key, "webhooks", "list", "--paused", "--json")).trim().split("\n").map((l) =>
          JSON.parse(l)
        )
      ) {
        yield* done(api_key, "webhooks", "delete", id)
      }
    }))

  it.effect("an import that ends early tells of the webhooks that it made", () =>
    Effect.gen(function* () {
      const { demo, done, home, instance } = yield* Around
      const { api_key } = demo.accounts.bob
      const file = join(home, "two.json")
      const endpoint = (id: string) => ({ id, url: `https://shop.example/${id}`, secret: generateSecret() })
      writeFileSync(file, JSON.stringify([endpoint("ep_1"), endpoint("ep_2")]))
      // The program's answers, to a client whose key ends after its first POST.
      let posts = 0
      const { port } = yield* serve((request, response) => {
        if (request.method === "POST") posts += 1
        const headers = { ...request.headers, ...posts > 1 ? { authorization: "Bearer none" } : {} }
        request.pipe(ask(`${instance.origin()}${request.url}`, { method: request.method, headers }, (answer) => {
          response.writeHead(answer.statusCode!, answer.headers)
          answer.pipe(response)
        }))
      })
      const address = { BAILIWICK_URL: `http://127.0.0.1:${port}`, BAILIWICK_KEY: api_key, BAILIWICK_HOME: "/nowhere" }
      const { code, output } = yield* cli(address, "webhooks", "import", file, "--from", "svix", "--json")
      assert.strictEqual(code, 1, output)
      const [made] = output.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line))
      assert.deepInclude(made, { source_id: "ep_1", result: "made" })
      assert.notInclude(output, "ep_2")
      assert.match(output, /unauthenticated|credential/i)
      yield* done(api_key, "webhooks", "delete", made.webhook_id)
    }))

  it.effect("a webhook's headers and basic authentication come from files, and are shown by nothing", () =>
    Effect.gen(function* () {
      const { demo, home, json, typed } = yield* Around
      const { api_key } = demo.accounts.alice
      const heard: Array<readonly [tenant: unknown, authorization: unknown]> = []
      const { port } = yield* serve((request, response) => {
        heard.push([request.headers["x-tenant"], request.headers.authorization])
        response.end()
      })
      const file = (text: string) => {
        const path = join(home, randomUUID())
        writeFileSync(path, text)
        return path
      }
      const [tenant, password] = [randomUUID(), `${randomUUID()}:pass wörd`]
      const [headers, basic] = [file(`X-Tenant:  ${tenant}\r\n\nX-Other: b:c\n`), file(`hook:${password}\n`)]
      const url = ["--url", `http://127.0.0.1:${port}/`, "--events", "email.sent"]
      const files = ["--headers-file", headers, "--basic-auth-file", basic]
      const made = yield* json(api_key, "webhooks", "create", ...url, ...files)
      assert.deepInclude(made, { header_names: ["X-Tenant", "X-Other"], basic_auth: true })
      assert.notMatch(JSON.stringify(made), new RegExp(`${tenant}|${password}`))
      yield* typed(api_key, "webhooks", "test", made.id, "--event", "email.sent")
      const expected = [tenant, `Basic ${Buffer.from(`hook:${password}`).toString("base64")}`]
      yield* until("the sample", Effect.sync(() => heard), (all) => all.length === 1)
      assert.deepStrictEqual(heard, [expected] as unknown as typeof heard)

      const without = yield* json(api_key, "webhooks", "update", made.id, "--headers-file", file(""))
      assert.deepInclude(without, { header_names: [], basic_auth: true })
      const bare = yield* json(api_key, "webhooks", "update", made.id, "--basic-auth-file", file("\n"))
      assert.isFalse(bare.basic_auth)

      const refused = Effect.fnUntraced(function* (...args: ReadonlyArray<string>) {
        const { code, output } = yield* typed(api_key, "webhooks", "update", made.id, ...args)
        assert.strictEqual(code, 1, output)
        assert.notInclude(output, tenant)
        return output
      })
      const wrong = file(`X-Ok: 1\n${tenant}\n`)
      assert.strictEqual(yield* refused("--headers-file", wrong), `${wrong}: line 2 is not "Name: value"\n`)
      const two = file(`a:b\nc:d\n`)
      assert.strictEqual(yield* refused("--basic-auth-file", two), `${two}: has more than one line\n`)
      const long = file("X-A: 1\n".repeat(101))
      assert.strictEqual(yield* refused("--headers-file", long), `${long}: has more than 100 lines\n`)
      assert.match(yield* refused("--headers-file", join(home, "none")), /there is no such file\n$/)
      const both = yield* refused("--headers-file", "-", "--basic-auth-file", "-")
      assert.strictEqual(both, "standard input is one file: only one flag can be -\n")
      const invalid = yield* refused("--headers-file", file(`Host: ${tenant}\n`))
      assert.match(invalid, /headers\.0\.name: Value error, Header should not be one that the delivery/)
      yield* typed(api_key, "webhooks", "delete", made.id)
    }))

  it.effect("API keys and transfers: made, used up, and refused in words", () =>
    Effect.gen(function* () {
      const { demo, done, json, typed } = yield* Around
      const { alice, bob } = demo.accounts
      const key = yield* json(alice.api_key, "api-keys", "create", "--name", "CI")
      assert.match(yield* done(key.key, "api-keys", "list"), /CI +\S+ +active/)
      yield* done(alice.api_key, "api-keys", "revoke", key.id)
      const late = yield* typed(key.key, "api-keys", "list")
      assert.strictEqual(late.code, 1)
      assert.match(late.output, /^invalid_credentials: .+ \(request [\w-]+\)\n$/)
      assert.notInclude(late.output, key.key)

      const offer = yield* json(alice.api_key, "transfers", "offer", alice.domain, "--to", bob.email)
      assert.match(yield* done(bob.api_key, "transfers", "list"), new RegExp(`${offer.id} +alder.example +pending`))
      const declined = yield* json(bob.api_key, "transfers", "decline", offer.id)
      assert.strictEqual(declined.status, "declined")
      const again = yield* json(alice.api_key, "transfers", "offer", alice.domain_id ?? alice.domain, "--to", bob.email)
      assert.include(yield* done(alice.api_key, "transfers", "list", "--outgoing", "--json"), again.id)
      assert.strictEqual((yield* json(alice.api_key, "transfers", "cancel", again.id)).status, "cancelled")
      assert.match((yield* typed(bob.api_key, "transfers", "offer", "no.example", "--to", "x")).output, /^you have no/)
    }))

  it.effect("reviews: proposed by one person, approved by another, each with a token of their own", () =>
    Effect.gen(function* () {
      const { demo, done, json, token, typed } = yield* Around
      const of = ["--institution", demo.institution.id]
      const sam = yield* token(demo.people.sam.id)
      const ada = yield* token(demo.people.ada.id)
      const access = ["--access", demo.access.id, "--access-version", "1", "--reason", "quarterly review"]
      const { review_id } = yield* json(sam, "reviews", "propose", ...of, ...access)
      assert.match(yield* done(ada, "reviews", "list", ...of, "--state", "proposed"), new RegExp(`^${review_id} `, "m"))
      const alone = yield* typed(sam, "reviews", "approve", review_id, ...of, "--reason", "looked at it myself")
      assert.strictEqual(alone.code, 1)
      const tried = ["approve", review_id, ...of, "--reason", "looked at it myself", "--dry-run"]
      assert.match(yield* done(ada, "reviews", ...tried), /^it would be accepted now$/m)
      const approved = yield* json(ada, "reviews", "approve", review_id, ...of, "--reason", "looked at it myself")
      assert.strictEqual(approved.state, "approved")
      assert.strictEqual((yield* json(ada, "reviews", "show", review_id, ...of)).decision.state, "approved")
    }))

  it.effect("campaigns: opened, listed, delegated, answered, its deadline moved, closed", () =>
    Effect.gen(function* () {
      const { demo, done, json, token, typed } = yield* Around
      const of = ["--institution", demo.institution.id]
      const why = ["--reason", "as every spring"]
      const ada = yield* token(demo.people.ada.id)
      const sam = yield* token(demo.people.sam.id)
      const { campaign_id: id, items } = yield* json(
        ada,
        ...["campaigns", "open", ...of, ...why, "--name", "Spring", "--deadline", "14d", "--access", demo.access.id],
      )
      assert.strictEqual(items.open, 1)
      assert.match(yield* done(sam, "campaigns", "list", ...of), new RegExp(`^${id} +open .+ Spring$`, "m"))
      const [item] = (yield* done(sam, "campaigns", "items", id, ...of, "--state", "open", "--json")).trim().split("\n")
      const { item_id } = JSON.parse(item!)
      const on = [item_id, ...of, "--campaign", id, ...why]
      assert.strictEqual(
        (yield* json(ada, "campaigns", "delegate", ...on, "--to", demo.people.sam.id)).delegate_person_id,
        demo.people.sam.id,
      )
      assert.match(yield* done(sam, "campaigns", "mine"), new RegExp(`^${item_id} `, "m"))
      const moved = yield* json(ada, "campaigns", "reschedule", id, ...of, ...why, "--deadline", "2w")
      assert.strictEqual(moved.state, "open")
      assert.strictEqual((yield* json(sam, "campaigns", "confirm", ...on)).state, "confirmed")
      const again = yield* typed(sam, "campaigns", "propose", ...on)
      assert.deepStrictEqual([again.code, again.output.split(":")[0]], [1, "invalid_state"])
      assert.strictEqual((yield* json(ada, "campaigns", "close", id, ...of, ...why)).state, "closed")
      assert.strictEqual((yield* json(sam, "campaigns", "show", id, ...of)).items.confirmed, 1)
    }))

  it.effect("evidence: a pack of one person, verified by the served keys and the log's, and refused once changed", () =>
    Effect.gen(function* () {
      const { demo, done, home, instance, token, typed } = yield* Around
      const fern = demo.institution.id
      const ada = yield* token(demo.people.ada.id)
      const pack = join(home, "pack.ndjson")
      writeFileSync(pack, yield* done(ada, "evidence", "pack", "--institution", fern, "--person", demo.people.pat.id))
      const keys = join(home, "keys.json")
      const served = yield* Effect.promise(() => fetch(new URL("/v1/lifecycle/jwks", instance.origin())))
      writeFileSync(keys, yield* Effect.promise(() => served.text()))
      const logKey = (yield* cli({ BAILIWICK_HOME: home }, "log", "key")).output.trim()
      const policy = ["--institution", fern, "--keys", keys, "--log-key", logKey]
      const verify = (file: string, issuer = new URL("/lifecycle", instance.origin()).href) =>
        typed("", "evidence", "verify", file, ...policy, "--issuer", issuer, "--json")
      const found = yield* verify(pack)
      assert.strictEqual(found.code, 0, found.output)
      assert.deepInclude(JSON.parse(found.output), { institution: fern, person_id: demo.people.pat.id, parts: 1 })
      const changed = join(home, "changed.ndjson")
      writeFileSync(changed, readFileSync(pack, "utf8").replace('"state":"active"', '"state":"revoked"'))
      assert.match((yield* verify(changed)).output, /^the pack is refused: digest: other lines were signed/)
      assert.match((yield* verify(pack, "https://other.example/lifecycle")).output, /^the pack is refused: iss/)
      assert.match((yield* verify(join(home, "none"))).output, /none/)
      const foreign = yield* typed(yield* token(demo.people.oz.id), "evidence", "pack", "--institution", fern)
      assert.match(foreign.output, /^not_found/)
    }))

  it.effect("wrong input is answered with every fault, and a missing credential or address with what to set", () =>
    Effect.gen(function* () {
      const { demo, home, instance, typed } = yield* Around
      const { api_key } = demo.accounts.alice
      const wrong = yield* typed(api_key, "webhooks", "create", "--url", "ftp://x", "--events", "email.sent")
      assert.strictEqual(wrong.code, 1)
      assert.match(wrong.output, /url/)
      const unknown = yield* typed(
        api_key,
        "webhooks",
        "create",
        "--url",
        "https://x.example",
        "--events",
        "email.lost",
      )
      assert.match(unknown.output, /event types/)
      const faults = yield* typed(api_key, "api-keys", "create", "--name", "")
      assert.match(faults.output, /^validation_error: the request is not valid.*\n {2}name: .+\n$/)
      const without = yield* cli({ BAILIWICK_URL: instance.origin(), BAILIWICK_HOME: home }, "webhooks", "list")
      assert.match(without.output, /^set BAILIWICK_KEY to an API key/)
      const nowhere = yield* cli({ BAILIWICK_KEY: "k", BAILIWICK_HOME: "/nowhere" }, "webhooks", "list")
      assert.match(nowhere.output, /^set BAILIWICK_URL to the installation's address/)
      const local = yield* cli({ BAILIWICK_KEY: api_key, BAILIWICK_HOME: home }, "webhooks", "list")
      assert.strictEqual(local.code, 0, local.output)
    }))

  it.effect("listen hands every delivery over once, signed, in order, and goes on after a kill where it was", () =>
    Effect.gen(function* () {
      const { demo, feed, home, instance, json } = yield* Around
      const { api_key, id } = demo.accounts.alice
      const url = `http://127.0.0.1:${(yield* serve((_, response) => void response.writeHead(500).end())).port}/`
      yield* json(api_key, "webhooks", "create", "--url", url, "--events", "email.bounced")
      const secret = generateSecret()
      const { arrivals, port } = yield* receiver(() => [secret])
      const state = join(home, `${randomUUID()}.json`)
      const env = { BAILIWICK_URL: instance.origin(), BAILIWICK_KEY: api_key, WEBHOOK_SECRET: secret }
      const listening = Effect.gen(function* () {
        const args = ["listen", String(port), "--event", "email.bounced", "--state", state]
        const program = yield* Processes.start({ module: "src/cli/main.ts", args, env })
        yield* program.line(/listening for 127\.0\.0\.1:\d+\/; Ctrl-C ends/)
        return program
      })
      const happens = (names: ReadonlyArray<string>) =>
        Effect.forEach(
          names,
          (name) => feed.publish("intake.v1.mail-events.bounced", JSON.stringify(mailEvent(id, name, "email.bounced"))),
        )
      const emails = Effect.sync(() => arrivals.map(({ email }) => email))
      const sent = (name: string) => mailEvent(id, name, "email.bounced").email_id

      const first = yield* listening
      yield* happens(["l-1"])
      yield* until("the first", emails, (all) => all.includes(sent("l-1")))
      yield* first.line(/email\.bounced \S+ 204 \(\d+ ms\)/)
      yield* happens(["l-2"])
      yield* first.line(/(204 [^]*){2}/)
      yield* first.kill("SIGKILL")
      yield* first.exited
      yield* happens(["l-3", "l-4"])
      const second = yield* listening
      yield* until("what came meanwhile", emails, (all) => new Set(all).size === 4)
      yield* second.line(/(204 [^]*){2}/)
      yield* second.kill("SIGINT")
      assert.strictEqual(yield* second.exited, 0)
      assert.deepStrictEqual([...new Set(yield* emails)].sort(), ["l-1", "l-2", "l-3", "l-4"].map(sent).sort())
      // A kill between the answer and the file repeats one: the same delivery, by its id.
      assert.isAtMost(arrivals.length, 5)
      assert.lengthOf(new Set(arrivals.map(({ id }) => id)), 4)
      assert.deepStrictEqual(arrivals.filter(({ fault }) => fault !== null), [])
      assert.strictEqual(statSync(state).mode & 0o777, 0o600)
      assert.notInclude(readFileSync(state, "utf8"), secret)

      writeFileSync(state, "{}")
      const broken = yield* cli(env, "listen", String(port), "--state", state)
      assert.deepStrictEqual(broken.code, 1)
      assert.match(broken.output, /is no file that "listen" has written/)
    }))

  it.effect("listen waits for a receiver that is not there yet, and ends where the credential is refused", () =>
    Effect.gen(function* () {
      const { demo, feed, instance } = yield* Around
      const { api_key, id } = demo.accounts.alice
      const refused = yield* cli({ BAILIWICK_URL: instance.origin(), BAILIWICK_KEY: "mail_k_no" }, "listen", "9")
      assert.strictEqual(refused.code, 1)
      assert.match(refused.output, /invalid_credentials/)
      const env = { BAILIWICK_URL: instance.origin(), BAILIWICK_KEY: api_key }
      // Port 9 (discard) has no server.
      const program = yield* Processes.start({ module: "src/cli/main.ts", args: ["listen", "9"], env })
      const [, secret] = yield* program.line(/signed with the secret (whsec_\S+) /)
      assert.match(secret!, /^whsec_[A-Za-z0-9+/]{43}=$/)
      yield* feed.publish("intake.v1.mail-events.bounced", JSON.stringify(mailEvent(id, "l-5", "email.bounced")))
      yield* program.line(/nothing listens on 127\.0\.0\.1:9: waiting for it/)
      yield* program.kill("SIGINT")
      assert.strictEqual(yield* program.exited, 0)
    }))

  it.effect("the import of docs/webhooks.md works as it stands", () =>
    Effect.gen(function* () {
      const { demo, done, home, instance } = yield* Around
      const [, section] = readFileSync("docs/webhooks.md", "utf8").split("## Coming from Svix or Convoy\n")
      const [lines, file] = ["sh", "json"].map((language) =>
        section!.split("```" + language + "\n")[1]!.split("```")[0]!
      )
      const module = join(home, `${randomUUID()}.sh`)
      writeFileSync(join(home, "endpoints.json"), file!)
      const command = `${Processes.runtime().map((word) => `'${word}'`).join(" ")} src/cli/main.ts "$@"`
      const told = lines!.replaceAll("endpoints.json", join(home, "endpoints.json"))
      writeFileSync(module, `set -e\n${told.replace('npx -y deno@2.9.6 task -q cli "$@"', () => command)}`)
      const { api_key } = demo.accounts.bob
      const env = { BAILIWICK_HOME: home, BAILIWICK_KEY: api_key, BAILIWICK_URL: instance.origin() }
      const once = yield* Processes.start({ command: ["bash"], module, env })
      assert.strictEqual(yield* once.exited, 0, once.output())
      const [, , made] = once.output().split(/^endpoint +result +webhook +url +notes$/m)
      assert.match(made!, /^\nep_1 +made, paused +[0-9a-f-]{36} +https:\/\/shop.example\/hook +-\s*$/)
      const shown = JSON.parse(yield* done(api_key, "webhooks", "list", "--paused", "--json"))
      assert.deepInclude(shown, {
        events: ["email.bounced"],
        rate_limit: 50,
        header_names: ["X-Tenant"],
        is_active: false,
      })
    }))

  it.effect("the lines of docs/commands.md work as they stand", () =>
    Effect.gen(function* () {
      const { home } = yield* Around
      const { port } = yield* receiver(() => [])
      const [, ...blocks] = readFileSync("docs/commands.md", "utf8").split("```sh\n")
      const [as, review, campaigns, listening] = blocks.map((text) => text.split("```", 1)[0]!)
      const command = `${Processes.runtime().map((word) => `'${word}'`).join(" ")} src/cli/main.ts "$@"`
      const here = (text: string, cli: string) =>
        `cli() { ${cli}; }\n${text.replace(/^cli\(\) .*$/m, "")}`
          .replaceAll("./.bailiwick", home).replaceAll("9000", String(port))
      const run = Effect.fnUntraced(function* (text: string) {
        const module = join(home, `${randomUUID()}.sh`)
        writeFileSync(module, `set -e\n${text}`)
        return yield* Processes.start({ command: ["bash"], module, env: { BAILIWICK_HOME: home } })
      })
      const once = yield* run(here(as! + review! + campaigns!, command))
      assert.strictEqual(yield* once.exited, 0, once.output())
      assert.match(once.output(), /^secret +whsec_/m)
      assert.match(once.output(), /^id +created_at +event_type +status/m)
      assert.match(once.output(), /^campaign_id +/m)
      const [key] = as!.match(/^export BAILIWICK_KEY.*$/m)!
      const state = join(home, `${randomUUID()}.json`)
      const open = yield* run(here(`${key}\n${listening!.replace("listen.json", state)}`, `exec ${command}`))
      yield* open.line(/listening for 127\.0\.0\.1/)
      yield* open.kill("SIGINT")
      assert.strictEqual(yield* open.exited, 0, open.output())
    }))
})

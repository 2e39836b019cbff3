/** Exports of Svix and Convoy: what becomes of their endpoints, and every fault of a file at once. */
import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { Buffer } from "node:buffer"
import { eventTypes } from "../../../schemas/mail/MailEvent.ts"
import { convoyExport } from "../../../src/cli/account/import/ConvoyExport.ts"
import { endpointsOf, type ExportFormat, type ImportOptions } from "../../../src/cli/account/import/EndpointFile.ts"
import { svixExport } from "../../../src/cli/account/import/SvixExport.ts"

const nowMillis = Date.parse("2026-06-01T00:00:00Z")

const read = (format: ExportFormat, file: unknown, options: Partial<ImportOptions> = {}) =>
  endpointsOf(typeof file === "string" ? file : JSON.stringify(file), format, { paused: false, nowMillis, ...options })

const webhooksOf = (...asked: Parameters<typeof read>) =>
  Result.getOrThrow(read(...asked)).map(({ id, notes, webhook }) => ({ id, notes, ...webhook }))

const faultsOf = (...asked: Parameters<typeof read>) => {
  const result = read(...asked)
  assert.isTrue(Result.isFailure(result), JSON.stringify(result))
  return Result.isFailure(result) ? result.failure.map(({ endpoint, message }) => `${endpoint}: ${message}`) : []
}

const secretBytes = Buffer.from("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "base64")
const secret = `whsec_${secretBytes.toString("base64")}`

/** As Svix's reference shows one. */
const svix = (more: object = {}) => ({
  id: "ep_1srOrx2ZWZBpBUvZwXKQmoEYga2",
  uid: null,
  url: "https://shop.example/hook",
  description: "An example endpoint name",
  filterTypes: ["email.delivered", "email.bounced"],
  channels: null,
  metadata: {},
  disabled: false,
  rateLimit: 100,
  version: 1,
  createdAt: "2026-01-01T00:00:00Z",
  updatedAt: "2026-01-01T00:00:00Z",
  secret,
  ...more,
})

const convoySecret = "5uH3lPq9ZtX0wC7dRk2mVbN8s"

/** As Convoy's reference shows one. */
const convoy = (more: object = {}) => ({
  uid: "01HQZ4Y6Z2W2V9F7C9S3K5T8AB",
  project_id: "01HQ",
  owner_id: "",
  name: "shop",
  url: "https://shop.example/hook",
  description: "",
  status: "active",
  secrets: [{ uid: "1", value: convoySecret, created_at: "2026-01-01T00:00:00Z", expires_at: "0001-01-01T00:00:00Z" }],
  advanced_signatures: true,
  http_timeout: 10,
  rate_limit: 0,
  rate_limit_duration: 0,
  authentication: { type: "api_key", api_key: { header_name: "", header_value: "" } },
  ...more,
})

describe("a Svix export", () => {
  it("becomes webhooks with its types, secret, rate, headers and state", () => {
    const other = svix({
      id: "ep_2",
      url: "https://other.example/",
      description: "",
      filterTypes: null,
      disabled: true,
      rateLimit: null,
      headers: { headers: { "X-Tenant": "blue" }, sensitive: [] },
      secret: { key: secret.slice("whsec_".length) },
    })
    const [first, second, ...more] = webhooksOf(svixExport, { data: [svix(), other], iterator: null, done: true })
    assert.deepStrictEqual(first, {
      id: "ep_1srOrx2ZWZBpBUvZwXKQmoEYga2",
      notes: [],
      url: "https://shop.example/hook",
      description: "An example endpoint name",
      events: ["email.delivered", "email.bounced"],
      secret,
      rate_limit: 100,
      is_active: true,
    })
    assert.deepInclude(second, {
      id: "ep_2",
      events: eventTypes,
      secret,
      is_active: false,
      headers: [{ name: "X-Tenant", value: "blue" }],
    })
    assert.deepStrictEqual(more, [])
  })

  it("is read from a list, one endpoint, or lines of pages", () => {
    for (
      const file of [
        [svix()],
        svix(),
        [{ data: [], done: false }, { data: [svix()], done: true }].map((page) => JSON.stringify(page)).join("\n"),
      ]
    ) assert.lengthOf(webhooksOf(svixExport, file), 1)
  })

  it("takes other types and begins paused where that is asked", () => {
    const [one] = webhooksOf(svixExport, [svix({ filterTypes: ["invoice.paid"] })], {
      events: ["email.opened"],
      paused: true,
    })
    assert.deepInclude(one, { events: ["email.opened"], is_active: false })
  })

  it("that has faults is told all of them, without a value", () => {
    const faults = faultsOf(svixExport, {
      done: false,
      data: [
        svix({ filterTypes: ["invoice.paid"], channels: ["blue"], secret: "whsec_c2hvcnQ=", url: "ftp://x" }),
        svix({ secret: undefined, headers: { headers: {}, sensitive: ["authorization"] } }),
        svix({
          id: "ep_3",
          secret: "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg==",
        }),
        7,
        {},
      ],
    })
    assert.sameMembers(faults, [
      "null: ends before the last page of the list",
      "endpoint 1 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): channels: have no counterpart here; remove them for an endpoint of all",
      "endpoint 1 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): url: Value error, URL should begin with https:// and a host, and hold no space.",
      `endpoint 1 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): events.0: ${oneOf}`,
      "endpoint 1 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): secret: Value error, Secret should be whsec_ and the base64 of 24 to 64 bytes.",
      "null: holds the endpoint ep_1srOrx2ZWZBpBUvZwXKQmoEYga2 twice",
      "endpoint 2 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): secret: is not there; Svix answers it apart",
      "endpoint 2 (ep_1srOrx2ZWZBpBUvZwXKQmoEYga2): headers: Svix keeps sensitive values back; write each into the file, and empty `sensitive`",
      "endpoint 3 (ep_3): secret: is an asymmetric key; none is used here",
      "endpoint 4: is no object",
      "endpoint 5: has no id",
      "endpoint 5: secret: is not there; Svix answers it apart",
      "endpoint 5: url: Field required",
    ])
    for (const text of ["", "{", "[1,", `"x"`, "null"]) assert.lengthOf(faultsOf(svixExport, text), 1)
    assert.deepStrictEqual(faultsOf(svixExport, []), ["null: holds no endpoint"])
    assert.deepStrictEqual(faultsOf(svixExport, Array(1_001).fill(svix())), ["null: holds more than 1000 endpoints"])
  })
})

const oneOf = `Input should be ${eventTypes.slice(0, -1).map((type) => `'${type}'`).join(", ")} or '${
  eventTypes.at(-1)
}'`

describe("a Convoy export", () => {
  it("becomes webhooks whose key is the bytes of its secret", () => {
    const envelope = {
      status: true,
      message: "ok",
      data: { content: [convoy()], pagination: { has_next_page: false } },
    }
    const [one] = webhooksOf(convoyExport, envelope)
    assert.deepInclude(one, {
      id: "01HQZ4Y6Z2W2V9F7C9S3K5T8AB",
      description: "shop",
      events: eventTypes,
      is_active: true,
      notes: [],
    })
    assert.strictEqual(Buffer.from(one!.secret!.slice("whsec_".length), "base64").toString(), convoySecret)
  })

  it("keeps rates, headers and basic authentication, and says which rate is another", () => {
    const all = webhooksOf(convoyExport, [
      convoy({ uid: "1", rate_limit: 50, rate_limit_duration: 60, status: "paused" }),
      convoy({ uid: "2", rate_limit: 600, rate_limit_duration: "1m0s", status: "inactive" }),
      convoy({ uid: "3", authentication: { type: "api_key", api_key: { header_name: "X-Key", header_value: "k" } } }),
      convoy({ uid: "4", authentication: { type: "basic_auth", basic_auth: { username: "u", password: "p" } } }),
    ])
    assert.deepStrictEqual(all.map(({ is_active, notes, rate_limit }) => [rate_limit, is_active, notes]), [
      [1, false, ["its rate becomes 1 a second"]],
      [10, false, []],
      [undefined, true, []],
      [undefined, true, []],
    ])
    assert.deepStrictEqual(all[2]!.headers, [{ name: "X-Key", value: "k" }])
    assert.deepStrictEqual(all[3]!.basic_auth, { username: "u", password: "p" })
  })

  it("signs with the secret that does not expire, else the one that expires last", () => {
    const older = { value: "an older one, of some 30 bytes", expires_at: "2026-07-01T00:00:00Z" }
    const later = { value: "a later one, of thirty bytes..", expires_at: "2026-08-01T00:00:00Z" }
    const ended = { value: "one that has ended some time ago", expires_at: "2026-05-01T00:00:00Z" }
    const current = { value: convoySecret, expires_at: null }
    for (const [secrets, value] of [[[older, current, ended], convoySecret], [[older, later], later.value]] as const) {
      const [one] = webhooksOf(convoyExport, [convoy({ secrets })])
      assert.strictEqual(Buffer.from(one!.secret!.slice("whsec_".length), "base64").toString(), value)
    }
    assert.deepStrictEqual(faultsOf(convoyExport, [convoy({ secrets: [ended] })]), [
      "endpoint 1 (01HQZ4Y6Z2W2V9F7C9S3K5T8AB): secrets: none is there that has not expired",
    ])
  })

  it("that has faults is told all of them, without a value", () => {
    const page = { pagination: { has_next_page: true } }
    const short = convoy({
      uid: "1",
      secrets: [{ value: "tiny-secret", expires_at: null }],
      authentication: { type: "oauth2", oauth2: { client_secret: "hidden" } },
      mtls_client_cert: { client_cert: "c", client_key: "hidden" },
      rate_limit: 5,
      rate_limit_duration: "soon",
    })
    const faults = faultsOf(convoyExport, { data: { ...page, content: [short] } })
    assert.sameMembers(faults, [
      "null: ends before the last page of the list",
      "endpoint 1 (1): secrets: the current one should have 24 to 64 bytes",
      "endpoint 1 (1): authentication: its type has no counterpart here",
      "endpoint 1 (1): mtls_client_cert: has no counterpart here",
      "endpoint 1 (1): rate_limit_duration: should be seconds, or a time such as 1m",
    ])
    assert.notMatch(JSON.stringify(faults), /tiny|hidden/)
  })
})

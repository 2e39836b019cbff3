/** The client's own rules, against a server on loopback, and what its package is made of. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage } from "node:http"
import { gzipSync } from "node:zlib"
import { client, Problem, problems, verifyWebhook, WebhookRefused } from "../../../sdk/client/Client.ts"
import { generateSecret, headersFor } from "../../../services/webhooks/Signer.ts"
import { listsByLastId } from "../../support/ClientContract.ts"
import { clientScript } from "../../support/ClientPackage.ts"
import { serve } from "../../services/platform/Outbound/LoopbackServers.ts"

interface Said {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** A client of a server that gives these answers in turn, the last one for ever; null breaks the connection. */
const answering = Effect.fnUntraced(function* (...answers: ReadonlyArray<Said | null>) {
  const requests: Array<IncomingMessage> = []
  const { port } = yield* serve((request, response) => {
    requests.push(request)
    const said = answers[Math.min(requests.length, answers.length) - 1]!
    if (said === null) return void request.socket.destroy()
    response.writeHead(said.status, { "content-type": "application/json", ...said.headers })
      .end(said.body === undefined ? undefined : JSON.stringify(said.body))
  })
  return { requests, api: client({ url: `http://127.0.0.1:${port}/`, token: () => Promise.resolve("t") }) }
})

/** What a promise fails with. */
const failure = (promise: Promise<unknown>) =>
  Effect.promise(() => promise.then(() => assert.fail("it did not fail"), (error: unknown) => error))

const busy = {
  status: 503,
  headers: { "retry-after": "0" },
  body: { code: "dependency_unavailable", title: "A dependency does not answer" },
}
const review = {
  params: { institution_id: "i" },
  body: { access_id: "a", access_version: 1, reason: "quarterly review" },
} as const
const reviews = "/v1/institutions/{institution_id}/access-grant-reviews"

describe("the client", () => {
  it("takes the first member of an item for its id, as in every list that is followed by it", () => {
    const lists = listsByLastId()
    assert.isAbove(lists.length, 8)
    for (const [path, first] of lists) assert.match(first ?? "", /^(id|\w+_id)$/, path)
  })

  it("weighs at most 3 kB", async () => {
    assert.isAtMost(gzipSync(await clientScript(), { level: 9 }).length, 3_000)
  })

  it.effect("repeats a GET three times at most, and waits for Retry-After", () =>
    Effect.gen(function* () {
      const fine = yield* answering(null, { ...busy, headers: { "retry-after": "1" } }, { status: 200, body: [] })
      const begun = performance.now()
      assert.deepStrictEqual(yield* Effect.promise(() => fine.api.get("/v1/webhooks/")), [])
      assert.isAtLeast(performance.now() - begun, 1_000)
      assert.strictEqual(fine.requests.length, 3)
      assert.strictEqual(fine.requests[2]!.headers.authorization, "Bearer t")
      const never = yield* answering(busy)
      assert.instanceOf(yield* failure(never.api.get("/v1/webhooks/")), problems.dependency_unavailable)
      assert.strictEqual(never.requests.length, 4)
      const long = yield* answering({ ...busy, headers: { "retry-after": "61" } })
      const left = yield* failure(long.api.get("/v1/webhooks/"))
      assert.strictEqual((left as Problem).retryAfter, 61)
      assert.strictEqual(long.requests.length, 1)
    }))

  it.effect("repeats a POST that keeps a receipt under one key, and no other write", () =>
    Effect.gen(function* () {
      const kept = yield* answering(null, { ...busy, status: 409 }, { status: 201, body: {} })
      yield* Effect.promise(() => kept.api.post(reviews, review))
      const keys = kept.requests.map(({ headers }) => headers["idempotency-key"])
      assert.match(String(keys[0]), /^[0-9a-f-]{36}$/)
      assert.deepStrictEqual(keys, [keys[0], keys[0], keys[0]])
      yield* Effect.promise(() => kept.api.post(reviews, { ...review, idempotencyKey: "mine" }))
      assert.strictEqual(kept.requests[3]!.headers["idempotency-key"], "mine")
      const lost = yield* answering(null)
      const error = yield* failure(lost.api.delete("/v1/webhooks/{webhook_id}", { params: { webhook_id: "w" } }))
      assert.instanceOf(error, problems.unreachable)
      assert.instanceOf((error as Error).cause, Error)
      assert.strictEqual(lost.requests.length, 1)
    }))

  it.effect("gives each code its class, and says what an answer of another program is", () =>
    Effect.gen(function* () {
      const { api } = yield* answering(
        { status: 409, body: { code: "version_conflict", detail: "It changed", current_version: 7 } },
        { status: 422, body: { detail: [{ loc: ["body", "url"], msg: "Field required", type: "missing" }] } },
        { status: 404, headers: { "content-type": "text/html" } },
      )
      const conflict = yield* failure(api.get("/v1/webhooks/"))
      assert.isTrue(conflict instanceof problems.version_conflict && conflict.members.current_version === 7)
      assert.isTrue(conflict instanceof Problem && conflict.message === "It changed")
      assert.isFalse(conflict instanceof problems.not_found)
      const invalid = yield* failure(api.get("/v1/webhooks/"))
      assert.isTrue(
        invalid instanceof problems.validation_error && invalid.members.detail?.[0]?.msg === "Field required",
      )
      assert.instanceOf(yield* failure(api.get("/v1/webhooks/")), problems.unexpected_answer)
    }))

  it.effect("a signal ends a call's pause, and a parameter never leads to another path", () =>
    Effect.gen(function* () {
      const { api, requests } = yield* answering({ ...busy, headers: { "retry-after": "50" } })
      const signal = AbortSignal.timeout(300)
      assert.strictEqual(yield* failure(api.get("/v1/webhooks/", { signal })), signal.reason)
      assert.strictEqual(requests.length, 1)
      for (const webhook_id of ["..", ".", ""]) {
        const error = yield* failure(api.delete("/v1/webhooks/{webhook_id}", { params: { webhook_id } }))
        assert.instanceOf(error, TypeError)
      }
      assert.strictEqual(requests.length, 1)
    }))
})

describe("verifyWebhook", () => {
  const event = { event: "email.bounced", recipient: "ü@example.com", metadata: {} }
  const body = JSON.stringify(event)
  const [secret, old] = [generateSecret(), generateSecret()]
  const sent = (seconds = 0, secrets: readonly [string, string?] = [secret]) => {
    const timestampSeconds = Math.floor(Date.now() / 1000) + seconds
    const made = headersFor({ deliveryId: "d", eventType: event.event, attempt: 1, timestampSeconds, body, secrets })
    return Object.fromEntries(Object.entries(made).map(([name, value]) => [name.toLowerCase(), value]))
  }
  const refused = (request: Parameters<typeof verifyWebhook>[0]) =>
    verifyWebhook(request).then(() => assert.fail("verified"), (error: unknown) => {
      assert.instanceOf(error, WebhookRefused)
    })

  it("accepts what the signer of this program signed, in both forms, from Node's and from Fetch's headers", async () => {
    for (const headers of [sent(), new Headers(sent())]) {
      for (const bytes of [body, Buffer.from(body)]) {
        assert.deepStrictEqual<unknown>(await verifyWebhook({ headers, body: bytes, secret }), event)
        assert.deepStrictEqual<unknown>(await verifyWebhook({ headers, body: bytes, secret, untimed: true }), event)
      }
    }
    // While a rotation overlaps, either secret will do.
    for (const known of [secret, old, [generateSecret(), old]]) {
      assert.deepStrictEqual<unknown>(
        await verifyWebhook({ headers: sent(0, [secret, old]), body, secret: known }),
        event,
      )
    }
  })

  it("refuses another body, secret, id or time, a signature that is none, and an empty secret", async () => {
    const headers = sent()
    for (const untimed of [false, true]) {
      await refused({ headers, body: `${body} `, secret, untimed })
      await refused({ headers, body, secret: old, untimed })
      await refused({ headers: {}, body, secret, untimed })
      await refused({ headers, body, secret: "", untimed })
      await refused({ headers, body, secret: [], untimed })
    }
    await refused({ headers, body, secret: "whsec_" })
    await refused({ headers: { ...headers, "webhook-id": "e" }, body, secret })
    await refused({ headers: { ...headers, "webhook-timestamp": "soon" }, body, secret })
    await refused({ headers: { ...headers, "webhook-signature": "v1,%% v2,x v1" }, body, secret })
    for (const seconds of [-302, 302]) await refused({ headers: sent(seconds), body, secret })
    // An X-Webhook-Signature alone is taken where the receiver asks for it only.
    await refused({ headers: { "x-webhook-signature": headers["x-webhook-signature"] }, body, secret })
    await verifyWebhook({ headers: sent(-302), body, secret, tolerance: 600 })
  })
})

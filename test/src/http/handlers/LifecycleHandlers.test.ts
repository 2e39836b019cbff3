import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { createRemoteJWKSet, decodeProtectedHeader, jwtVerify } from "jose"
import { ServiceGrants } from "../../../../services/access/ServiceGrants.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { run } from "../../../../services/platform/database/UnitOfWork.ts"
import { Server } from "../../../../src/http/Server.ts"
import { access, person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { serviceTokenFor, tokenFor } from "../../../support/TestTokens.ts"
import { scene } from "../../../services/lifecycle/LifecycleFixture.ts"
import { type Answer, send } from "../identity/IdentityClient.ts"

const audience = "service-lifecycle"
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const consumer = Effect.gen(function* () {
  const made = yield* scene
  const headers = bearer(yield* serviceTokenFor(made.asking.clientId, { audience }))
  const path = `/v1/projects/${made.project}/lifecycle`
  /** All events so far, once they are signed. */
  const all = Effect.gen(function* () {
    const { sql } = yield* Database
    const [head] = yield* sql<{ position: bigint }>`
      select position from lifecycle_heads where project_id = ${made.project}`
    const items: Array<{ readonly position: number; readonly set: string }> = []
    let cursor = btoa("1.0").replace(/=+$/, "")
    while (items.length < Number(head!.position)) {
      const { body } = yield* send("GET", `${path}/events?after=${cursor}&wait=30`, headers)
      items.push(...body.items)
      cursor = body.cursor
    }
    return { items, cursor }
  })
  return { ...made, headers, path, all }
})

const limits = { MANAGEMENT_READ_RATE: "60", MANAGEMENT_WRITE_RATE: "3" }

layer(management({ ROLES: "api,lifecycle", ...limits }), { excludeTestServices: true })("Lifecycle", (it) => {
  it.effect("a token of no service is 401, and a service without a grant gets 404", () =>
    Effect.gen(function* () {
      const { asking, headers, path } = yield* consumer
      const management = bearer(yield* serviceTokenFor(asking.clientId))
      const somebody = bearer(yield* tokenFor(yield* person(), { audience }))
      const stranger = bearer(yield* serviceTokenFor("stranger", { audience }))
      const body = { cursor: "MS4w", installed_version: "1", chain_head: "x" }
      for (
        const [method, at, sent] of [
          ["GET", "events"],
          ["GET", "snapshot"],
          ["GET", `snapshot/parts/sha256:${"0".repeat(64)}`],
          ["POST", "acknowledgements", body],
        ] as const
      ) {
        const ask = (headers: Readonly<Record<string, string>>) =>
          Effect.map(send(method, `${path}/${at}`, headers, sent), ({ body, status }) => `${status} ${body.code}`)
        for (const wrong of [{}, management, somebody, { cookie: headers.authorization }]) {
          assert.strictEqual(yield* ask(wrong), "401 invalid_token", at)
        }
        assert.strictEqual(yield* ask(stranger), "404 not_found", at)
      }
    }))

  it.effect("a message signed for products is no credential here, in any scheme or place", () =>
    Effect.gen(function* () {
      const { all, headers, path } = yield* consumer
      const { url } = yield* Server
      const { items } = yield* all
      const snapshot = yield* Effect.promise(() => fetch(`${url}${path}/snapshot`, { headers }).then((it) => it.text()))
      for (const token of [items[0]!.set, snapshot]) {
        for (const at of [`${path}/events`, `${path}/snapshot`, "/v1/me"]) {
          const { body, status } = yield* send("GET", at, bearer(token))
          assert.strictEqual(`${status} ${body.code}`, "401 invalid_token", at)
        }
      }
      const good = headers.authorization.slice("Bearer ".length)
      for (const authorization of [`DPoP ${good}`, `Basic ${good}`, good, `Bearer ${good} ${good}`, "Bearer"]) {
        assert.strictEqual((yield* send("GET", `${path}/events`, { authorization })).status, 401, authorization)
      }
      assert.strictEqual((yield* send("GET", `${path}/events?access_token=${good}`, {})).status, 401)
    }))

  it.effect("events and snapshot verify with jose against the served keys", () =>
    Effect.gen(function* () {
      const { all, headers, path, project } = yield* consumer
      const { url } = yield* Server
      const keys = createRemoteJWKSet(new URL("/v1/lifecycle/jwks", url))
      const { items } = yield* all
      assert.deepStrictEqual(items.map(({ position }) => position), items.map((_, i) => i + 1))
      const answer = yield* Effect.promise(() => fetch(`${url}${path}/snapshot`, { headers }))
      assert.match(answer.headers.get("content-type")!, /^application\/jwt/)
      const snapshot = yield* Effect.promise(() => answer.text())
      const about = {
        issuer: "http://127.0.0.1:8080/lifecycle",
        audience: `urn:bailiwick:project:${project}`,
        algorithms: ["RS256"],
      }
      for (const { set } of items) {
        yield* Effect.promise(() => jwtVerify(set, keys, { ...about, typ: "secevent+jwt" }))
      }
      const { payload } = yield* Effect.promise(() =>
        jwtVerify(snapshot, keys, { ...about, typ: "lifecycle-snapshot+jwt" })
      )
      assert.deepInclude(payload, { project_id: project, epoch: 1, position: items.length })
      // The next keys are announced before they are served: a consumer pins them by name.
      const { kid } = decodeProtectedHeader(snapshot)
      const keySet = payload["key_set"] as ReadonlyArray<string>
      assert.lengthOf(keySet, 3)
      assert.include(keySet, kid!)
    }))

  it.effect("a long poll is answered by an event or refused by a revocation, and its cursor is checked", () =>
    Effect.gen(function* () {
      const { administrator, all, grantId, headers, institution, path, project } = yield* consumer
      const { cursor, items } = yield* all
      const poll = (query: string) => send("GET", `${path}/events?${query}`, headers)
      const waiting = yield* Effect.forkChild(poll(`after=${cursor}&wait=30`))
      yield* access(institution, project, yield* person())
      const { body } = yield* Fiber.join(waiting)
      assert.deepStrictEqual(body.items.map(({ position }: { position: number }) => position), [items.length + 1])

      const codes = [["after=Mi4w", "409 cursor_epoch_changed"], [
        `after=${btoa("1.99").replace(/=+$/, "")}`,
        "409 cursor_ahead",
      ]]
      for (const [query, expected] of codes) {
        const { body, status } = yield* poll(query!)
        assert.strictEqual(`${status} ${body.code}`, expected)
      }
      for (const query of ["limit=0", "limit=1001", "wait=31", "wait=-1", "limit=x"]) {
        assert.strictEqual((yield* poll(query)).status, 422, query)
      }
      const fault = { type: "value_error", msg: "Value error, not a cursor of this service", ctx: { error: {} } }
      for (const after of ["A", "AAAA", btoa("0.1"), btoa("1.-1"), btoa("1.1.1"), "MS4w%00"]) {
        const { body, status } = yield* poll(`after=${after}&limit=0`)
        assert.strictEqual(status, 422, after)
        const locs = body.detail.map(({ loc }: { loc: ReadonlyArray<string> }) => loc.join("."))
        assert.deepStrictEqual(locs, ["query.after", "query.limit"], after)
      }
      assert.deepStrictEqual((yield* poll("after=A")).body, {
        detail: [{ ...fault, loc: ["query", "after"], input: "A" }],
      })
      assert.strictEqual((yield* poll("after=")).body.detail[0].type, "string_too_short")
      const acknowledged = yield* send("POST", `${path}/acknowledgements`, headers, {
        cursor: "MS4x=",
        installed_version: "1",
        chain_head: "x",
      })
      assert.deepStrictEqual([acknowledged.status, acknowledged.body.detail], [422, [
        { ...fault, loc: ["body", "cursor"], input: "MS4x=" },
      ]])

      const held = yield* Effect.forkChild(poll(`after=${body.cursor}&wait=30`))
      const { revoke } = yield* ServiceGrants
      yield* run(revoke({ personId: administrator, projectId: project, grantId, reason: "over and out" }))
      const refused = yield* Fiber.join(held)
      assert.strictEqual(`${refused.status} ${refused.body.code}`, "403 role_required")
    }))

  it.effect("a principal's reads and writes are limited; polls and acknowledgements count as neither", () =>
    Effect.gen(function* () {
      const { headers, path } = yield* consumer
      const streams = "/v1/lifecycle/streams"
      /** Requests until one is refused; tokens that the buckets gain meanwhile are extra. */
      const spent = (ask: Effect.Effect<Answer, never, Server>, most: number) =>
        Effect.gen(function* () {
          for (let asked = 1; asked <= most; asked++) {
            const answer = yield* ask
            if (answer.status === 429) return { answer, asked }
          }
          return assert.fail("never refused")
        })
      const read = yield* spent(send("GET", `${path}/events?limit=1`, headers), 90)
      assert.isAbove(read.asked, 60)
      assert.strictEqual(read.answer.body.code, "rate_limited")
      assert.strictEqual(read.answer.headers["ratelimit-policy"], `"default";q=60;w=60`)
      assert.match(read.answer.headers["retry-after"]!, /^[1-9]\d*$/)
      // Limited before validation, at every endpoint of these.
      assert.strictEqual((yield* spent(send("GET", `${path}/events?limit=0`, headers), 9)).answer.status, 429)
      const write = yield* spent(send("POST", streams, headers, {}), 9)
      assert.strictEqual(write.answer.headers["ratelimit-policy"], `"default";q=3;w=60`)
      const following = [
        send("POST", `${path}/acknowledgements`, headers, { cursor: "MS4w", installed_version: "2", chain_head: "x" }),
        send("POST", `${streams}/none/poll`, headers, { returnImmediately: true }),
      ]
      for (const ask of following) for (let n = 0; n < 9; n++) assert.notStrictEqual((yield* ask).status, 429)
      const other = yield* consumer
      assert.strictEqual((yield* send("GET", `${other.path}/events?limit=1`, other.headers)).status, 200)
    }))

  it.effect("a held installation's answer says when to ask again", () =>
    Effect.gen(function* () {
      const { headers, path } = yield* consumer
      const { sql } = yield* Database
      yield* sql`
        update installation set state = 'held', held_since = 'epoch', held_reason = 'unverifiable_messages'`
      const held = yield* send("GET", `${path}/snapshot`, headers)
      yield* sql`update installation set state = 'open', held_since = null, held_reason = null`
      assert.deepStrictEqual([held.status, held.body.code, held.headers["retry-after"]], [503, "held", "5"])
    }))
})

/**
 * Every operation of the document with valid and invalid requests, over a socket, and every answer compared with it
 * (ConformsToSpec.ts). Then the failures are looked up in the audit, and all storage is searched for secrets.
 */
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import * as fc from "fast-check"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Logged, management } from "../../../support/TestManagement.ts"
import { person } from "../../../support/TestIdentity.ts"
import { code } from "../handlers/CredentialFixture.ts"
import { runs } from "../../../support/Runs.ts"
import { as, ask, done, type Headers, key, secret, secretsIn, send } from "./IdentityClient.ts"
import { type Asked, type Case, catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { admitted, bodyOf, refused } from "./Generated.ts"
import { admits, admitsBeyondIds, failures, held } from "./ConformsToSpec.ts"
import { everyPlace, shapes } from "./BodyPaths.ts"
import { type IdentityStage, stage } from "./IdentityStage.ts"
import { without } from "./OmitFields.ts"

/** Failures of files that this worker ran before: their requests are in another audit. */
const earlier = failures.length

/** Refusals by state of bodies that the document accepts: such a body may be refused at these places only. */
const judged: Readonly<Record<string, RegExp>> = {
  "me.startCredentialAction": /^\["body","(target_id|label)"\]$/,
  "me.completeCredentialAction": /^\["body","proof"/,
  "requests.createLinkProof": /^\["body","token"\]$/,
  "requests.createLinkRequest": /^\["body","proof_id"\]$/,
  "operations.repairJob": /^\["body","client_id"\]$/,
  "requests.createTemporaryAccessRequest": /^\["body","ends_at"\]$/,
  "institutions.shortenAccess": /^\["body","ends_at"\]$/,
  "campaigns.rescheduleCampaign": /^\["body","deadline"\]$/,
  "campaigns.openCampaign": /^\["body","(access_ids|deadline|project_ids)"\]$/,
  "requests.createPerson": /^\["body","subject"\]$/,
}

const sent = (one: Case, asked: Asked, headers: Headers, body: unknown = asked.body) => {
  const operation = operationOf(one)
  const keyed = operation.method === "POST" ? key() : {}
  return Effect.map(
    send(operation.method, pathOf(operation, asked), { ...keyed, ...asked.headers, ...headers }, body),
    (answer) => held(operation, answer, JSON.stringify(body)?.slice(0, 2_000)),
  )
}

type Prepared = readonly [one: Case, asked: Asked, auth: { readonly authorization: string }]

const preparing = Effect.fnUntraced(function* (one: Case, fixture: IdentityStage) {
  const personId = fixture.people[one.by]
  const prepared: Prepared = [one, yield* one.asked(fixture, personId), yield* as(personId)]
  return prepared
})

/** The request of each case, by a person who may, in one fixture. */
const prepare = Effect.flatMap(stage, (fixture) => Effect.forEach(catalogue, (one) => preparing(one, fixture)))

/** Runs each case on objects of its own, made just before: one command may change what another one needs. */
const each = <E, R>(use: (...prepared: Prepared) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    const fixture = yield* stage
    for (const one of catalogue) yield* use(...yield* preparing(one, fixture))
  })

let shared: ReadonlyArray<Prepared> | undefined

/** Runs each case on objects that tests share, since what is refused changes none: making them took half of the time. */
const eachRefused = <E, R>(use: (...prepared: Prepared) => Effect.Effect<void, E, R>) =>
  Effect.gen(function* () {
    shared ??= yield* prepare
    for (const one of shared) yield* use(...one)
  })

layer(management({ MANAGEMENT_READ_RATE: "100000", MANAGEMENT_WRITE_RATE: "100000" }, { traced: true }), {
  excludeTestServices: true,
  timeout: "2 minutes",
})("The document, walked", (it) => {
  it.effect(
    "a valid request is answered as documented",
    () =>
      each(Effect.fnUntraced(function* (one, asked, auth) {
        const answer = yield* sent(one, asked, auth)
        assert.strictEqual(answer.status, one.status, `${one.operation} ${answer.text}`)
      })),
    300_000,
  )

  it.effect(
    "a body that the document accepts is never refused for its form",
    () =>
      each(Effect.fnUntraced(function* (one, asked, auth) {
        const schema = bodyOf(operationOf(one))
        if (schema === undefined) return
        for (const body of fc.sample(admitted(schema), runs(6))) {
          assert.isTrue(admits(operationOf(one), body), `${one.operation} ${JSON.stringify(body)}`)
          const answer = yield* sent(one, asked, auth, body)
          assert.isBelow(answer.status, 500, answer.text)
          if (answer.status !== 422) continue
          for (const { loc } of answer.body.detail) {
            assert.match(
              JSON.stringify(loc),
              judged[one.operation] ?? /^never$/,
              `${one.operation} ${JSON.stringify(body)}`,
            )
          }
        }
      })),
    300_000,
  )

  it.effect(
    "a body that the document refuses is 422 with the places of its faults",
    () =>
      eachRefused(Effect.fnUntraced(function* (one, asked, auth) {
        const schema = bodyOf(operationOf(one))
        if (schema === undefined) return
        for (const body of fc.sample(refused(schema), runs(15))) {
          // Some faults do not exist where a field accepts anything.
          if (admits(operationOf(one), body)) continue
          const answer = yield* sent(one, asked, auth, body)
          if (admitsBeyondIds(operationOf(one), body)) {
            assert.include([404, 422], answer.status, `${one.operation} ${JSON.stringify(body)} ${answer.text}`)
            continue
          }
          // A field one code point too long may make the whole body too large.
          if (new TextEncoder().encode(JSON.stringify(body)).length > 256 * 1024) {
            assert.strictEqual(answer.status, 413)
            continue
          }
          assert.strictEqual(answer.status, 422, `${one.operation} ${JSON.stringify(body)} ${answer.text}`)
          for (const { loc } of answer.body.detail) assert.strictEqual(loc[0], "body")
        }
      })),
    300_000,
  )

  it.effect(
    "an unreadable, too large, mistyped or wrongly encoded body is refused as documented",
    () =>
      eachRefused(Effect.fnUntraced(function* (one, asked, auth) {
        const operation = operationOf(one)
        const unacceptable = yield* sent(one, asked, { ...auth, accept: "text/html" })
        assert.strictEqual(unacceptable.status, 406)
        // These are checked before the operation, whatever it reads.
        assert.strictEqual((yield* sent(one, asked, { ...auth, "content-type": "text/plain" }, "text")).status, 415)
        assert.strictEqual((yield* sent(one, asked, { ...auth, "x-filler": "x".repeat(8_192) })).status, 431)
        assert.strictEqual((yield* sent(one, asked, { ...auth, host: "elsewhere.example" })).status, 421)
        // An unread body may hold text that could not be stored.
        if (operation.method === "GET" && operation.parameters.every(({ in: place }) => place !== "query")) {
          assert.strictEqual((yield* sent(one, { ...asked, query: "?other=%00" }, auth)).status, one.status)
        }
        if (bodyOf(operation) === undefined) return
        const json = { ...auth, "content-type": "application/json" }
        for (const text of ["{", `{"reason": "\\ud800"`, "[1,", `{"a":1}}`, "undefined"]) {
          const broken = yield* sent(one, asked, json, text)
          assert.strictEqual(broken.status, 422)
          assert.strictEqual(broken.body.detail[0].type, "json_invalid", text)
        }
        for (const text of ["[]", `"text"`, "7", "true"]) {
          assert.strictEqual((yield* sent(one, asked, json, text)).status, 422, text)
        }
        const missing = yield* sent(one, { ...asked, body: undefined as never }, auth)
        assert.strictEqual(missing.status, operation.requestBody!.required ? 422 : one.status, missing.text)
        const form = yield* sent(one, asked, { ...auth, "content-type": "application/x-www-form-urlencoded" }, "a=1")
        assert.strictEqual(form.status, 415)
        const large = yield* sent(one, asked, json, JSON.stringify({ reason: "x".repeat(256 * 1024) }))
        assert.strictEqual(large.status, 413)
        const unreadable = yield* sent(one, asked, json, Uint8Array.of(0x22, 0xff, 0xfe, 0x22))
        assert.strictEqual(unreadable.status, 400)
      })),
    300_000,
  )

  /** Lists whose cursor is an id of the directory: only its alphabet is checked. */
  const ofDirectory = new Set([
    "websites.listProjects",
    "websites.listRequestableProjects",
    "websites.listProjectOwners",
    "institutions.listInstitutions",
    "institutions.listMembers",
    "institutions.listAccess",
    "periodic-reviews.listOverdueReviews",
    "rollouts.listRollouts",
  ])

  it.effect(
    "headers and queries that the document refuses are 422 with their names",
    () =>
      eachRefused(Effect.fnUntraced(function* (one, asked, auth) {
        const operation = operationOf(one)
        const bad: Record<string, ReadonlyArray<string | ReadonlyArray<string>>> = {
          "x-portal-binding": ["", secret(`binding-${"b".repeat(512)}`)],
          "limit": ["0", "101", "01", "-1", "1.0", "ten", ""],
          "after_id": ofDirectory.has(one.operation)
            ? ["", "a/b", "a\u0000", "x".repeat(129)]
            : ["x", "0199f3a2-7c1e-7d0a-9b55-0d5c2f3e8a1"],
          "ids": ["", ",", "a,", "a/b", "x".repeat(129), Array(101).fill("x").join(",")],
        }
        for (const { in: place, name, required } of operation.parameters) {
          if (place === "path") continue
          if (required) {
            const without = Object.fromEntries(
              Object.entries({ ...key(), ...auth }).filter(([header]) => header !== name),
            )
            const path = pathOf(operation, place === "query" ? { ...asked, query: "" } : asked)
            const missing = yield* send(operation.method, path, without, asked.body)
            const { detail } = held(operation, missing).body
            // Without its query a request lacks every parameter of it.
            const fault = detail.find(({ loc }: { loc: ReadonlyArray<string> }) => loc[1] === name)
            assert.deepInclude(fault, { loc: [place, name], type: "missing" })
          }
          for (const value of bad[name] ?? []) {
            const query = { ...asked, query: `?${name}=${encodeURIComponent(String(value))}` }
            const answer = yield* place === "header"
              ? sent(one, { ...asked, headers: {} }, { ...auth, [name]: value })
              : sent(one, query, auth)
            assert.strictEqual(answer.status, 422, `${one.operation} ${name}=${value}`)
            assert.deepStrictEqual(answer.body.detail.map(({ loc }: { loc: unknown }) => loc), [[place, name]])
            if (place === "header") assert.notProperty(answer.body.detail[0], "input")
          }
        }
      })),
    300_000,
  )

  it.effect(
    "only a good token is recognised, and a caller beyond the limit is told when to come back",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const busy = yield* person()
        // Buckets that refill within an hour.
        const later = new Date(Date.now() + 3_600_000)
        for (const kind of ["reads", "writes"]) {
          yield* sql`insert into rate_buckets (key, level, drawn, at, full_at)
            values (${`management.${kind}:person:${busy}`}, 0, 0, ${later}, ${later})`
        }
        const limited = yield* as(busy)
        yield* eachRefused(Effect.fnUntraced(function* (one, asked) {
          assert.strictEqual((yield* sent(one, asked, {})).status, 401)
          assert.strictEqual((yield* sent(one, asked, { authorization: "Bearer nonsense" })).status, 401)
          assert.strictEqual((yield* sent(one, asked, limited)).status, 429)
        }))
      }),
    300_000,
  )

  it.effect(
    "an inconsistent database is answered with 500 and nothing else",
    () =>
      Effect.gen(function* () {
        const asked = yield* prepare
        const { lines } = yield* Logged
        const before = lines.length
        yield* without(
          "identities",
          Effect.forEach(asked, ([one, what, auth]) =>
            Effect.map(sent(one, what, auth), ({ status }) =>
              assert.strictEqual(status, 500, one.operation))),
        )
        const posts = asked.filter(([one]) =>
          operationOf(one).method === "POST"
        )
        yield* without(
          "idempotency_receipts",
          Effect.forEach(posts, ([one, what, auth]) =>
            Effect.map(sent(one, what, auth), ({ status }) =>
              assert.strictEqual(status, 500, one.operation))),
        )
        const told = lines.slice(before).filter((line) =>
          line.includes("request failed")
        )
        assert.lengthOf(told, asked.length + posts.length)
        // The table is back.
        const [one, what, auth] = posts[0]!
        assert.strictEqual((yield* sent(one, what, auth)).status, one.status)
      }),
    300_000,
  )

  it.effect(
    "every failure leads from its X-Request-ID to a redacted record of the audit",
    () =>
      Effect.gen(function* () {
        const { sql } = yield* Database
        const made = failures.slice(earlier)
        assert.isAbove(made.length, 500)
        const ids = JSON.stringify(made.map(({ requestId }) => requestId))
        const found = sql<{ request_id: string; status: number; code: string; text: string }>`
        select r.id as request_id, a.status, a.code, row_to_json(a)::text as text
          from audit_records a cross join lateral (
            select a.request_id union select jsonb_array_elements_text(a.details->'request_ids')) r(id)
          where a.action = 'request.failed' and r.id in (select json_array_elements_text(${ids}::json))`
        // Refusals without a recognised caller are gathered for a moment.
        const records = yield* found.pipe(
          Effect.filterOrFail((rows) => new Set(rows.map(({ request_id }) => request_id)).size === made.length),
          Effect.retry({ schedule: Schedule.spaced("250 millis"), times: 160 }),
        )
        const byRequest = new Map(records.map((record) => [record.request_id, record]))
        for (const { code, operation, requestId, status } of made) {
          const record = byRequest.get(requestId)!
          assert.deepStrictEqual([record.status, record.code], [status, code], operation)
          assert.notMatch(record.text, /Bearer|eyJ|as we agreed/)
        }
        for (const { text } of records) assert.deepStrictEqual(secretsIn(text), [])
      }),
    300_000,
  )

  it.effect("no secret of these requests is in a row, a log line, a span or a receipt", () =>
    Effect.gen(function* () {
      const me = yield* person()
      const strong = yield* as(me, { acr: "urn:service:aal2" })
      const actions = "/v1/me/credential-actions"
      const binding = { "x-portal-binding": secret(`portal-binding-${crypto.randomUUID()}`) }
      const act = Effect.fnUntraced(function* (kind: string, proof: (challenge: { secret: string }) => object) {
        const headers = { ...strong, ...binding, ...key() }
        const started = done(yield* send("POST", actions, headers, { kind, label: "Phone" }))
        const body = { proof: proof(started.challenge) }
        return done(yield* send("POST", `${actions}/${started.intent_id}/complete`, { ...headers, ...key() }, body))
      })
      yield* act("totp.enroll", ({ secret: shared }) => ({ type: "totp", code: code(secret(shared)) }))
      const { recovery_codes } = yield* act("recovery_codes.generate", () => ({ type: "confirm", acknowledged: true }))
      assert.lengthOf(recovery_codes, 10)
      for (const one of recovery_codes) secret(one)
      done(yield* ask(me, "GET", "/v1/me/authenticators"))

      const places = yield* everyPlace
      const looked = shapes()
      assert.isAbove(looked.length, 300)
      assert.containsAllKeys(places, ["audit_records", "idempotency_receipts", "mails", "outbox"])
      assert.isAbove(places.get("idempotency_receipts")!.length, 1_000)
      // The search finds text that may be there.
      assert.include(places.get("audit_records")!, me)
      for (const place of ["the log", "spans"]) assert.include(places.get(place)!, "/v1/enrollments/{token}/accept")
      for (const [place, text] of places) {
        const found = looked.filter((shape) => text.includes(shape))
        assert.deepStrictEqual(found, [], place)
      }
    }), 300_000)
})

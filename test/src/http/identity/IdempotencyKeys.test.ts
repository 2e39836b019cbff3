/** Each POST of the identity API under its key (docs/api/identity.md): done once, and always answered the same. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes, randomInt, randomUUID } from "node:crypto"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Server } from "../../../../src/http/Server.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { person } from "../../../support/TestIdentity.ts"
import { management } from "../../../support/TestManagement.ts"
import { type Answer, as, type Headers, send } from "./IdentityClient.ts"
import { type Asked, type Case, catalogue, operationOf, pathOf } from "./Catalogue.ts"
import { waits } from "./Interleave.ts"
import { effects } from "./RequestEffects.ts"
import { held } from "./ConformsToSpec.ts"
import { extras, specified } from "./SpecTable.ts"
import { type IdentityStage, stage } from "./IdentityStage.ts"

const posts = catalogue.filter((one) => operationOf(one).method === "POST")

const sent = (one: Case, asked: Asked, headers: Headers, body: unknown = asked.body) => {
  const operation = operationOf(one)
  const all = { ...asked.headers, ...headers }
  return Effect.map(send(operation.method, pathOf(operation, asked), all, body), (answer) => held(operation, answer))
}

/** The same path with every letter after the version escaped: another spelling that reaches the same route. */
const escapedPath = (path: string) =>
  path.replaceAll(/(?<=^\/v1\/.*)(?<!%[0-9A-F]?)[a-z]/g, (letter) => `%${letter.charCodeAt(0).toString(16)}`)

/** Another body of the same form. */
const otherBody: Readonly<Record<string, unknown>> = {
  "me.startCredentialAction": { kind: "passkey.register", label: "Another" },
  "me.completeCredentialAction": { proof: { type: "totp", code: "123456" } },
  "requests.createLinkProof": { token: "another" },
}
const another = (one: Case, asked: Asked) =>
  otherBody[one.operation] ?? { ...asked.body, reason: "as we did not agree on Monday" }

/** Operations that, repeated under a new key, answer with the unchanged state, or a count, instead of a refusal. */
const shows = new Set([
  "lifecycle-service-grants.revokeLifecycleServiceGrant",
  "websites.changeProjectOwner",
  "campaigns.delegateCampaignItem",
  "campaigns.rescheduleCampaign",
  "periodic-reviews.confirmAccess",
  "operator.kickWebhook",
  "operator.replayDeadLetters",
  "signing-keys.activateSigningKey",
  "upkeep.openInstallation",
  "rollouts.decideRollout",
  "upkeep.retryOutgoingMail",
])

/** Takes every role away from a person while `use` runs. */
const stripped = Effect.fnUntraced(function* <E, R>(personId: string, use: Effect.Effect<void, E, R>) {
  const { sql } = yield* Database
  const [ended] = yield* sql<{ memberships: ReadonlyArray<string>; owned: ReadonlyArray<string>; operator: boolean }>`
    with m as (
      update institution_memberships set state = 'ended' where person_id = ${personId} and state = 'active' returning id
    ), o as (update project_owners set active = false where person_id = ${personId} and active returning id),
    p as (update people set operator = false where id = ${personId} and operator returning id)
    select coalesce((select array_agg(id) from m), '{}') as memberships,
      coalesce((select array_agg(id) from o), '{}') as owned, exists (select from p) as operator`
  yield* use
  const { memberships, operator, owned } = ended!
  yield* sql`update institution_memberships set state = 'active' where id = any(${[...memberships]}::text[])`
  yield* sql`update project_owners set active = true where id = any(${[...owned]}::text[])`
  yield* sql`update people set operator = ${operator} where id = ${personId}`
})

const each = <E, R>(use: (one: Case, fixture: IdentityStage) => Effect.Effect<void, E, R>) =>
  Effect.flatMap(stage, (fixture) => Effect.forEach(posts, (one) => use(one, fixture), { discard: true }))

layer(management(), { excludeTestServices: true, timeout: "2 minutes" })("Idempotency over HTTP", (it) => {
  it.effect("every POST of the specification is tested here", () =>
    Effect.sync(() => {
      const looped = posts.map((one) => operationOf(one).template)
      assert.sameMembers(looped, [...Object.keys(specified), ...extras])
      assert.lengthOf(Object.keys(specified), 18)
    }))

  it.effect("a path too long for an index entry is 404", () =>
    Effect.gen(function* () {
      // Incompressible, and as many characters as a parameter may have.
      const id = () =>
        encodeURIComponent(String.fromCodePoint(...new Uint16Array(512).map(() => randomInt(0x100, 0x7ff))))
      const headers = { ...yield* as(yield* person()), "idempotency-key": randomBytes(127).toString("hex") }
      const body = { expected_version: 1, reason: "as we agreed on Monday" }
      const answer = yield* send("POST", `/v1/institutions/${id()}/websites/${id()}/withdraw`, headers, body)
      assert.deepStrictEqual(codeOf(answer), [404, "not_found"])
    }))

  it.effect(
    "a key that is missing, empty, too long or sent twice is 422 with its location",
    () =>
      each(Effect.fnUntraced(function* (one, fixture) {
        const asked = yield* one.asked(fixture, fixture.people[one.by])
        const auth = yield* as(fixture.people[one.by])
        const keys: Record<string, Headers> = {
          "empty": { "idempotency-key": "" },
          "too long": { "idempotency-key": "k".repeat(256) },
          "twice": { "idempotency-key": ["one", "two"] },
        }
        if (specified[operationOf(one).template]?.key === "required") keys["missing"] = {}
        for (const [name, header] of Object.entries(keys)) {
          const answer = yield* sent(one, asked, { ...auth, ...header })
          assert.strictEqual(answer.status, 422, `${one.operation} ${name}`)
          const [fault, ...others] = answer.body.detail
          assert.lengthOf(others, 0)
          assert.deepStrictEqual(fault.loc, ["header", "idempotency-key"])
          assert.strictEqual(fault.type, name === "missing" ? "missing" : "string_pattern_mismatch", one.operation)
        }
        // At its bound it is accepted.
        const good = yield* sent(one, asked, { ...auth, "idempotency-key": "~".repeat(255) })
        assert.strictEqual(good.status, one.status, good.text)
        if (specified[operationOf(one).template]?.key === "required") return
        const without = yield* sent(one, yield* one.asked(fixture, fixture.people[one.by]), auth)
        assert.strictEqual(without.status, one.status, without.text)
      })),
    300_000,
  )

  it.effect(
    "a replay is the same to the byte, whatever happened since, and never another person's",
    () =>
      each(Effect.fnUntraced(function* (one, fixture) {
        const personId = fixture.people[one.by]
        const asked = yield* one.asked(fixture, personId)
        const auth = yield* as(personId)
        const key = { "idempotency-key": randomUUID() }
        const first = yield* sent(one, asked, { ...auth, ...key })
        assert.strictEqual(first.status, one.status, `${one.operation} ${first.text}`)
        assert.notProperty(first.headers, "idempotency-replayed", one.operation)

        const same = Effect.fnUntraced(function* (when: string) {
          const again = yield* sent(one, asked, { ...auth, ...key })
          const what = `${one.operation} ${when}`
          assert.deepStrictEqual([again.status, again.text], [first.status, first.text], what)
          assert.strictEqual(again.headers["idempotency-replayed"], "true", what)
          assert.strictEqual(again.headers["etag"], first.headers["etag"], what)
        })
        yield* same("at once")
        const escaped = yield* send(
          operationOf(one).method,
          escapedPath(pathOf(operationOf(one), asked)),
          { ...asked.headers, ...auth, ...key },
          asked.body,
        )
        assert.deepStrictEqual([escaped.status, escaped.text], [first.status, first.text], `${one.operation} escaped`)
        assert.strictEqual(escaped.headers["idempotency-replayed"], "true", `${one.operation} escaped`)

        // Under another key the command runs again, or is refused as done: either way the state is another one.
        yield* sent(one, asked, { ...auth, "idempotency-key": randomUUID() })
        yield* same("after the state moved on")

        if (asked.body !== undefined) {
          const other = yield* sent(one, asked, { ...auth, ...key }, another(one, asked))
          assert.deepStrictEqual(codeOf(other), [409, "idempotency_key_reused"], one.operation)
        }
        const since = yield* sent(one, asked, { ...auth, ...key, "if-match": `"sha256:${"0".repeat(64)}"` })
        assert.deepStrictEqual(codeOf(since), [409, "idempotency_key_reused"], one.operation)

        const colleague = one.second === one.by ? yield* person({ operator: true }) : fixture.people[one.second]
        const theirs = yield* sent(one, asked, { ...(yield* as(colleague)), ...key })
        assert.notProperty(theirs.headers, "idempotency-replayed", one.operation)
        if (!shows.has(one.operation)) assert.notStrictEqual(theirs.text, first.text, one.operation)

        if (one.by !== "stranger") {
          yield* stripped(
            personId,
            Effect.gen(function* () {
              yield* same("after the role was lost")
              const lost = yield* sent(one, asked, { ...auth, "idempotency-key": randomUUID() })
              assert.include([403, 404], lost.status, `${one.operation} ${lost.text}`)
            }),
          )
        }
        yield* same("in the end")
      })),
    300_000,
  )

  it.effect("a body in another spelling is the same, a body with equivalent values is another", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      const one = catalogue.find(({ operation }) => operation === "websites.changeProjectOwner")!
      const asked = yield* one.asked(fixture, fixture.people.administrator)
      const { person_id, reason } = asked.body as { readonly person_id: string; readonly reason: string }
      const json = { ...(yield* as(fixture.people.administrator)), "content-type": "application/json" }
      const once = { ...json, "idempotency-key": randomUUID() }
      const first = yield* sent(one, asked, once, { person_id, reason })
      assert.strictEqual(first.status, 200, first.text)
      const escaped = reason.replaceAll("a", "\\u0061")
      const again = yield* sent(one, asked, once, ` {"reason" : "${escaped}", "person_id":"${person_id}"}\n`)
      assert.deepStrictEqual([again.headers["idempotency-replayed"], again.text], ["true", first.text])
      // The decoder reads all of these as the same value.
      for (const active of [true, "true", 1]) {
        const other = yield* sent(one, asked, once, { person_id, reason, active })
        assert.deepStrictEqual(codeOf(other), [409, "idempotency_key_reused"], String(active))
      }
      // Keys differ by case; a slash at the end is not part of the path.
      const upper = { ...json, "idempotency-key": once["idempotency-key"].toUpperCase() }
      assert.notProperty((yield* sent(one, asked, upper, { person_id, reason })).headers, "idempotency-replayed")
      const path = `${pathOf(operationOf(one), asked)}/`
      const slashed = yield* send("POST", path, once, { person_id, reason })
      assert.strictEqual(slashed.headers["idempotency-replayed"], "true")
    }))

  it.effect("a suspended person is 401 in spite of a receipt, and a receipt is of one path", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fixture = yield* stage
      const one = catalogue.find(({ operation }) => operation === "access-grant-reviews.approveAccessGrantReview")!
      const { administrator } = fixture.people
      const [asked, next] = [yield* one.asked(fixture, administrator), yield* one.asked(fixture, administrator)]
      const headers = { ...(yield* as(administrator)), "idempotency-key": randomUUID() }
      const first = yield* sent(one, asked, headers)
      assert.strictEqual(first.status, 200, first.text)
      const status = (is: string) => sql`update people set status = ${is} where id = ${administrator}`
      for (const is of ["suspended", "disabled"]) {
        yield* status(is)
        assert.deepStrictEqual(codeOf(yield* sent(one, asked, headers)), [401, "invalid_token"], is)
      }
      yield* status("active")
      assert.strictEqual((yield* sent(one, asked, headers)).text, first.text)
      // The decoder accepts UUIDs in capitals, which mean the same review.
      const { review_id: review, ...ids } = asked.params as { readonly review_id: string }
      const capitals = yield* sent(one, { ...asked, params: { ...ids, review_id: review.toUpperCase() } }, headers)
      assert.deepStrictEqual([capitals.status, capitals.text], [200, first.text])
      assert.strictEqual(capitals.headers["idempotency-replayed"], "true")
      const other = yield* sent(one, next, headers)
      assert.strictEqual(other.status, 200, other.text)
      assert.notProperty(other.headers, "idempotency-replayed")
    }))

  it.effect("a key in progress in another process is refused with a second to wait", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const fixture = yield* stage
      const one = catalogue.find(({ operation }) => operation === "requests.createOrganizationRequest")!
      const { stranger } = fixture.people
      const asked = yield* one.asked(fixture, stranger)
      const { method, template: path } = operationOf(one)
      const headers = { ...(yield* as(stranger)), "idempotency-key": randomUUID() }
      const begun = sql`
        insert into idempotency_receipts (principal, method, path, key, fingerprint, kid, created_at)
        values (${`person:${stranger}`}, ${method}, ${path}, ${headers["idempotency-key"]}, ${new Uint8Array(32)},
          'none', ${new Date()})`
      const meanwhile = yield* Effect.andThen(begun, sent(one, asked, headers)).pipe(
        Effect.flatMap((answer) => Effect.fail({ answer })),
        sql.withTransaction,
        Effect.catchIf((failure): failure is { readonly answer: Answer } => "answer" in failure, Effect.succeed),
      )
      assert.deepStrictEqual(codeOf(meanwhile.answer), [409, "idempotency_in_progress"])
      assert.strictEqual(meanwhile.answer.headers["retry-after"], "1")
      // The other process rolled back, so the command runs here.
      assert.strictEqual((yield* sent(one, asked, headers)).status, 201)
    }))

  it.effect("a client that left before its answer gets it by a replay", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { url } = yield* Server
      const fixture = yield* stage
      const one = catalogue.find(({ operation }) => operation === "access-grant-reviews.approveAccessGrantReview")!
      const { administrator } = fixture.people
      const asked = yield* one.asked(fixture, administrator)
      const headers = { ...(yield* as(administrator)), "idempotency-key": randomUUID() }
      const client = new AbortController()
      const gone = Effect.gen(function* () {
        yield* sql`select from access_reviews where id = ${asked.params!["review_id"]!}::uuid for update`
        const reply = fetch(new URL(pathOf(operationOf(one), asked), url), {
          method: "POST",
          signal: client.signal,
          body: JSON.stringify(asked.body),
          headers: { ...headers, "content-type": "application/json" },
        }).catch(() => "gone")
        yield* waits(1)
        client.abort()
        assert.strictEqual(yield* Effect.promise(() => reply), "gone")
      })
      yield* sql.withTransaction(gone)
      const again = yield* sent(one, asked, headers)
      assert.deepStrictEqual([again.status, again.headers["idempotency-replayed"]], [200, "true"], again.text)
      assert.strictEqual(yield* effects[one.operation]!(asked, again), 1)
    }))

  it.effect("a refused request may be tried again with the same key", () =>
    Effect.gen(function* () {
      const fixture = yield* stage
      const one = catalogue.find(({ operation }) => operation === "websites.registerWebsite")!
      const asked = yield* one.asked(fixture, fixture.people.sponsor)
      const headers = { ...(yield* as(fixture.people.sponsor)), "idempotency-key": randomUUID() }
      yield* stripped(
        fixture.people.sponsor,
        Effect.map(sent(one, asked, headers), (refused) => assert.strictEqual(refused.status, 404)),
      )
      assert.strictEqual((yield* sent(one, asked, headers)).status, 201)
    }))
})

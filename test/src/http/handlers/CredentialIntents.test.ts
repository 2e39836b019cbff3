import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { CredentialActions } from "../../../../services/people/CredentialActions.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { person } from "../../../support/TestIdentity.ts"
import { actions, complete, confirm, start, strong, totp, withApp, wrong } from "./CredentialFixture.ts"
import { during } from "../identity/Interleave.ts"
import { asking, bodyOf, fixture } from "./MeFixture.ts"

layer(fixture(), { excludeTestServices: true })("intents of credential actions", (it) => {
  it.effect("five wrong proofs end an intent", () =>
    Effect.gen(function* () {
      const ask = yield* asking(yield* person())
      const { challenge, intent_id } = yield* start(ask, { kind: "totp.enroll" })
      for (let i = 0; i < 5; i++) {
        const answer = yield* complete(ask, intent_id, wrong(challenge.secret), {
          "idempotency-key": "always-the-same",
        })
        assert.deepStrictEqual(
          [answer.status, answer.body.detail[0].type, answer.body.detail[0].loc],
          [422, "proof_rejected", ["body", "proof", "code"]],
        )
      }
      const late = yield* complete(ask, intent_id, totp(challenge.secret))
      assert.deepStrictEqual(codeOf(late), [409, "invalid_state"])
      assert.deepInclude(late.body, { state: "failed", allowed: ["pending"] })
      // After four wrong proofs the fifth may still be right.
      const next = yield* start(ask, { kind: "totp.enroll" })
      for (let i = 0; i < 4; i++) yield* complete(ask, next.intent_id, wrong(next.challenge.secret))
      bodyOf(yield* complete(ask, next.intent_id, totp(next.challenge.secret)))
    }))

  it.effect("of concurrent wrong proofs five are rejected, and the rest find the intent failed", () =>
    Effect.gen(function* () {
      const ask = yield* asking(yield* person())
      const { challenge, intent_id } = yield* start(ask, { kind: "totp.enroll" })
      const answers = yield* Effect.all(
        Array.from({ length: 9 }, () => complete(ask, intent_id, wrong(challenge.secret))),
        { concurrency: "unbounded" },
      )
      const [told, over] = [422, 409].map((status) => answers.filter((one) => one.status === status))
      assert.deepStrictEqual([told!.length, over!.length], [5, 4])
      for (const one of over!) assert.deepStrictEqual([one.body.code, one.body.state], ["invalid_state", "failed"])
    }))

  it.effect("an intent ends by completion, by time, or by a newer one of its kind and target", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { ask, app } = yield* withApp
      const rename = { kind: "authenticator.rename", target_id: app, label: "Old phone" }
      const [first, second] = [yield* start(ask, rename), yield* start(ask, { ...rename, label: "New phone" })]
      const old = yield* complete(ask, first.intent_id, confirm)
      assert.deepStrictEqual([...codeOf(old), old.body.state], [409, "invalid_state", "superseded"])
      assert.strictEqual(bodyOf(yield* complete(ask, second.intent_id, confirm)).authenticator.label, "New phone")
      const done = yield* complete(ask, second.intent_id, confirm)
      assert.deepStrictEqual([...codeOf(done), done.body.state], [409, "invalid_state", "completed"])

      const third = yield* start(ask, rename)
      yield* sql`update credential_intents set expires_at = ${new Date()} where id = ${third.intent_id}::uuid`
      assert.deepStrictEqual(codeOf(yield* complete(ask, third.intent_id, confirm)), [410, "intent_expired"])
      yield* start(ask, rename)
      const states = yield* sql<{ state: string }>`
        select state from credential_intents where kind = 'authenticator.rename' and target_id = ${app} order by id`
      assert.deepStrictEqual(states.map(({ state }) => state), ["superseded", "completed", "expired", "pending"])
      assert.deepStrictEqual(codeOf(yield* complete(ask, third.intent_id, confirm)), [410, "intent_expired"])
    }))

  it.effect("an intent that was not completed in time expires by itself, and its secret is deleted", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const { expire } = yield* CredentialActions
      const ask = yield* asking(yield* person())
      const [late, open] = [
        yield* start(ask, { kind: "totp.enroll" }),
        yield* start(yield* asking(yield* person()), { kind: "totp.enroll" }),
      ]
      yield* sql`update credential_intents set expires_at = ${new Date()} where id = ${late.intent_id}::uuid`
      assert.isAtLeast(yield* expire, 1)
      const rows = yield* sql<{ state: string; sealed: boolean }>`
        select state, secret is not null and kid is not null as sealed from credential_intents
        where id in (${late.intent_id}::uuid, ${open.intent_id}::uuid) order by id`
      assert.deepStrictEqual(rows, [{ state: "expired", sealed: false }, { state: "pending", sealed: true }])
      const answer = yield* complete(ask, late.intent_id, totp(late.challenge.secret))
      assert.deepStrictEqual(codeOf(answer), [410, "intent_expired"])
    }))

  it.effect("of concurrent starts one intent stays pending, and one of concurrent completions succeeds", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const ask = yield* asking(me)
      const many = <A, E, R>(one: Effect.Effect<A, E, R>) =>
        Effect.all(Array.from({ length: 8 }, () => one), { concurrency: "unbounded" })
      yield* many(start(ask, { kind: "recovery_codes.generate" }))
      const pending = yield* sql<{ id: string }>`
        select id::text from credential_intents where person_id = ${me} and state = 'pending'`
      assert.lengthOf(pending, 1)
      const answers = yield* many(complete(ask, pending[0]!.id, confirm))
      const statuses = answers.map(({ status }) => status).toSorted()
      assert.deepStrictEqual(statuses, [200, 409, 409, 409, 409, 409, 409, 409])
      const list = bodyOf(yield* ask("GET", "/v1/me/authenticators"))
      assert.deepStrictEqual([list.total, list.items[0].codes_remaining], [1, 10])
    }))

  it.effect("an action that waits while its session is revoked is refused", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const ask = yield* asking(me, { sid: `doomed ${me}` })
      bodyOf(yield* ask("GET", "/v1/me/sessions"))
      const { intent_id } = yield* start(ask, { kind: "recovery_codes.generate" })
      const ending = Effect.andThen(
        sql`select from people where id = ${me} for update`,
        sql`update sessions set revoked_at = ${new Date()} where person_id = ${me}`,
      )
      const [, late] = yield* during(ending, complete(ask, intent_id, confirm))
      assert.deepStrictEqual(codeOf(late), [401, "invalid_token"])
      assert.deepStrictEqual(yield* sql`select from authenticators where person_id = ${me}`, [])
    }))

  it.effect("revoking all others works without session ids: sessions then differ by their sign-in", () =>
    Effect.gen(function* () {
      const me = yield* person()
      const ago = (seconds: number) => Math.floor(Date.now() / 1_000) - seconds
      const own = { authTime: ago(20) }
      const mine = yield* asking(me, own)
      const others = [
        yield* asking(me, { authTime: ago(9_000) }),
        yield* asking(me, { authTime: null, ttl: "9 minutes" }),
      ]
      for (const other of others) bodyOf(yield* other("GET", "/v1/me"))
      bodyOf(yield* complete(mine, (yield* start(mine, { kind: "sessions.revoke_others" })).intent_id, confirm))
      for (const other of others) assert.deepStrictEqual(codeOf(yield* other("GET", "/v1/me")), [401, "invalid_token"])
      // The kept session also works with a refreshed token.
      for (const ask of [mine, yield* asking(me, own)]) bodyOf(yield* ask("GET", "/v1/me"))
    }))

  it.effect("a person cannot complete another's intent, or act on another's authenticators and sessions", () =>
    Effect.gen(function* () {
      const { ask, app } = yield* withApp
      const mine = yield* start(ask, { kind: "recovery_codes.generate" })
      const { ask: other } = yield* withApp
      const missing = "0199c0de-0000-7000-8000-000000000001"
      for (const id of [mine.intent_id, missing, "x", "%00"]) {
        assert.deepStrictEqual(codeOf(yield* complete(other, id, confirm)), [404, "not_found"], id)
      }
      for (const kind of ["passkey.remove", "totp.remove", "authenticator.rename", "session.revoke"]) {
        for (const target_id of [app, missing, "x"]) {
          const answer = yield* other("POST", actions, { kind, target_id, label: "Mine" })
          assert.deepStrictEqual(codeOf(answer), [404, "not_found"], kind)
        }
      }
      // Nor is an app removed as a passkey.
      const wrongKind = yield* ask("POST", actions, { kind: "passkey.remove", target_id: app })
      assert.deepStrictEqual(codeOf(wrongKind), [404, "not_found"])
    }))

  it.effect("step-up is required at the start and at completion, by age and by level", () =>
    Effect.gen(function* () {
      const { me, app } = yield* withApp
      const ago = (seconds: number) => Math.floor(Date.now() / 1_000) - seconds
      const fresh = yield* asking(me, strong)
      const rename = { kind: "authenticator.rename", target_id: app, label: "Pocket" }
      const intent = yield* start(fresh, rename)
      const weak = {
        stale: yield* asking(me, { ...strong, authTime: ago(310) }),
        unsaid: yield* asking(me, { ...strong, authTime: null }),
        "one factor": yield* asking(me, { acr: "urn:service:aal1" }),
        "an acr of nobody's": yield* asking(me, { acr: "gold" }),
        "no acr": yield* asking(me),
      }
      for (const [name, ask] of Object.entries(weak)) {
        for (const answer of [yield* ask("POST", actions, rename), yield* complete(ask, intent.intent_id, confirm)]) {
          assert.deepStrictEqual(codeOf(answer), [401, "insufficient_user_authentication"], name)
          assert.strictEqual(
            answer.headers.get("www-authenticate"),
            `Bearer error="insufficient_user_authentication", acr_values="urn:service:aal2", max_age="300"`,
          )
        }
        const { actions: known } = bodyOf(yield* ask("GET", actions))
        assert.isFalse(known.some((one: { satisfied: boolean }) => one.satisfied), name)
      }
      bodyOf(
        yield* complete(yield* asking(me, { acr: "urn:service:aal3", authTime: ago(290) }), intent.intent_id, confirm),
      )
    }))

  it.effect("a portal binding given at the start is required at completion", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const ask = yield* asking(yield* person())
      const bound = (binding: string) => ({ "x-portal-binding": binding })
      const generate = { kind: "recovery_codes.generate" }
      const { intent_id: id } = yield* start(ask, generate, bound("portal session 1"))
      const [row] = yield* sql<{ text: string }>`
        select row_to_json(i)::text as text from credential_intents i where id = ${id}::uuid`
      assert.notInclude(row!.text, "portal session 1")
      for (const headers of [{}, bound("portal session 2"), bound("portal session 1 ".repeat(3))]) {
        assert.deepStrictEqual(codeOf(yield* complete(ask, id, confirm, headers)), [403, "portal_binding_mismatch"])
      }
      bodyOf(yield* complete(ask, id, confirm, bound("portal session 1")))
      const free = yield* start(ask, generate)
      bodyOf(yield* complete(ask, free.intent_id, confirm, bound("whatever")))
      const long = yield* ask("POST", actions, generate, bound("x".repeat(513)))
      assert.deepStrictEqual([long.status, long.body.detail[0].loc], [422, ["header", "x-portal-binding"]])
      assert.strictEqual((yield* ask("POST", actions, generate, bound("x".repeat(512)))).status, 201)
    }))

  it.effect("a replayed start does not show the secret again, and starts nothing", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const ask = yield* asking(me)
      const key = { "idempotency-key": "start-once" }
      const [first, again] = [
        yield* ask("POST", actions, { kind: "totp.enroll" }, key),
        yield* ask("POST", actions, { kind: "totp.enroll" }, key),
      ]
      assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      assert.deepStrictEqual(bodyOf(again, 201), {
        ...first.body,
        challenge: { type: "totp", otpauth_uri: null, secret: null },
      })
      const rows = yield* sql`select from credential_intents where person_id = ${me}`
      assert.lengthOf(rows, 1)
      const reused = yield* ask("POST", actions, { kind: "recovery_codes.generate" }, key)
      assert.deepStrictEqual(codeOf(reused), [409, "idempotency_key_reused"])
      // An unreadable request is answered as such before anything else.
      assert.strictEqual((yield* ask("POST", actions, { kind: "authenticator.rename" }, key)).status, 422)
      bodyOf(yield* complete(ask, first.body.intent_id, totp(first.body.challenge.secret)))
    }))

  it.effect("bodies are strict, and no part of them is repeated", () =>
    Effect.gen(function* () {
      const ask = yield* asking(yield* person())
      const faults = Effect.fnUntraced(function* (path: string, body: unknown) {
        const answer = yield* ask("POST", path, body)
        assert.strictEqual(answer.status, 422, answer.text)
        assert.notInclude(answer.text, "hunter2")
        return answer.body.detail.map(({ loc, type }: { loc: Array<string>; type: string }) => [type, loc.join(".")])
      })
      assert.deepStrictEqual(yield* faults(actions, {}), [["missing", "body.kind"]])
      assert.deepStrictEqual(yield* faults(actions, { kind: "hunter2" }), [["literal_error", "body.kind"]])
      assert.deepStrictEqual(yield* faults(actions, { kind: "totp.enroll", label: "", more: "hunter2" }), [
        ["string_too_short", "body.label"],
        ["extra_forbidden", "body.more"],
      ])
      assert.deepStrictEqual(yield* faults(actions, { kind: "totp.enroll", label: "💡".repeat(65) }), [
        ["string_too_long", "body.label"],
      ])
      assert.deepStrictEqual(yield* faults(actions, { kind: "authenticator.rename" }), [
        ["missing", "body.target_id"],
        ["missing", "body.label"],
      ])
      assert.deepStrictEqual(yield* faults(actions, { kind: "totp.enroll", target_id: "hunter2" }), [
        ["value_error", "body.target_id"],
      ])
      assert.strictEqual(
        (yield* ask("POST", actions, { kind: "totp.enroll", label: "💡".repeat(64), target_id: null })).status,
        201,
      )
      const { intent_id } = yield* start(ask, { kind: "totp.enroll" })
      const path = `${actions}/${intent_id}/complete`
      assert.deepStrictEqual(yield* faults(path, { proof: { type: "totp", code: "hunter2" } }), [
        ["string_pattern_mismatch", "body.proof.totp.code"],
      ])
      assert.deepStrictEqual(yield* faults(path, { proof: { type: "sms" } }), [["union_tag_invalid", "body.proof"]])
      assert.deepStrictEqual(yield* faults(path, confirm), [["literal_error", "body.proof.type"]])
    }))
})

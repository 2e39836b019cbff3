import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { randomBytes } from "node:crypto"
import { hashOf } from "../../../../services/people/Authenticators/RecoveryCodes.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Vault } from "../../../../services/platform/security/Vault.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { create } from "../../../support/SoftAuthenticator.ts"
import { access, institution, person, project } from "../../../support/TestIdentity.ts"
import { actions, complete, confirm, creation, passkey, start, strong, totp, withApp } from "./CredentialFixture.ts"
import { asking, bodyOf, fixture } from "./MeFixture.ts"

layer(fixture(), { excludeTestServices: true })("credential actions", (it) => {
  it.effect("a passkey is registered by its authenticator's answer to the challenge", () =>
    Effect.gen(function* () {
      const me = yield* person({ display_name: "Ada", email: "ada@fern.example" })
      const ask = yield* asking(me)
      const { challenge, ...intent } = yield* start(ask, { kind: "passkey.register", label: "Laptop" })
      assert.deepInclude(intent, { kind: "passkey.register", state: "pending" })
      assert.closeTo(Date.parse(intent.expires_at), Date.now() + 600_000, 20_000)
      assert.deepStrictEqual(challenge.public_key.rp, { name: "Bailiwick", id: "portal.example" })
      assert.deepInclude(challenge.public_key.user, { name: "ada@fern.example", displayName: "Ada" })
      assert.notInclude(Buffer.from(challenge.public_key.user.id, "base64url").toString("latin1"), me)
      assert.deepInclude(challenge.public_key, { excludeCredentials: [], attestation: "none", timeout: 600_000 })
      assert.strictEqual(challenge.public_key.authenticatorSelection.userVerification, "required")
      const made = { challenge: challenge.public_key.challenge, ...creation, synced: true, counter: 7 }
      const credential = create(made)
      const done = bodyOf(
        yield* complete(ask, intent.intent_id, { proof: { type: "webauthn.create", credential } }),
      )
      assert.deepInclude(done, {
        intent_id: intent.intent_id,
        kind: "passkey.register",
        state: "completed",
        recovery_codes: null,
        sessions_revoked: 0,
        event_ids: [],
      })
      assert.deepInclude(done.authenticator, {
        kind: "passkey",
        credential_type: "fido2-platform",
        label: "Laptop",
        last_used_at: null,
        backup_eligible: true,
        backup_state: true,
        codes_remaining: null,
        transports: ["internal", "hybrid"],
        aaguid: "00000000-0000-0000-0000-000000000000",
        removable: false,
        not_removable_reason: "last_authenticator",
      })
      const list = bodyOf(yield* ask("GET", "/v1/me/authenticators"))
      assert.deepStrictEqual(list, { items: [done.authenticator], total: 1 })
      const { sql } = yield* Database
      assert.deepStrictEqual(
        yield* sql`select sign_count::int, credential_id from authenticators where person_id = ${me}`,
        [{ sign_count: 7, credential_id: credential.id }],
      )

      // Two factors are required from now on, and the credential is not registered twice.
      assert.deepStrictEqual(codeOf(yield* ask("POST", actions, { kind: "passkey.register" })), [
        401,
        "insufficient_user_authentication",
      ])
      const again = yield* asking(me, strong)
      const second = yield* start(again, { kind: "passkey.register" })
      assert.deepStrictEqual(
        second.challenge.public_key.excludeCredentials.map(({ id }: { id: string }) => id),
        [credential.id],
      )
      const key = bodyOf(yield* passkey(again, { attachment: "cross-platform" })).authenticator
      assert.deepInclude(key, {
        kind: "security_key",
        credential_type: "fido2-roaming",
        label: "Passkey",
        backup_eligible: false,
        removable: true,
      })
    }))

  it.effect("an answer to another challenge, portal or user is rejected", () =>
    Effect.gen(function* () {
      const ask = yield* asking(yield* person(), strong)
      const others = yield* asking(yield* person(), strong)
      const taken = Buffer.from("another person's credential id")
      bodyOf(yield* passkey(others, { credentialId: taken }))
      bodyOf(yield* passkey(others, { credentialId: Buffer.alloc(1_023, "x") }))
      const rejected = {
        "another challenge": { challenge: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
        "another origin": { origin: "https://evil.example" },
        "another domain": { rpId: "evil.example" },
        "a user who was not verified": { verified: false },
        "a credential that somebody has": { credentialId: taken },
        "a page in a stranger's frame": { framed: true },
        "an id that is not the credential's": { calledId: "c29tZWJvZHk" },
        "a credential id longer than 1,023 bytes": { credentialId: Buffer.alloc(1_024, "x") },
        "an id that no index holds": { credentialId: randomBytes(8_192) },
      }
      for (const [name, how] of Object.entries(rejected)) {
        const answer = yield* passkey(ask, how)
        assert.strictEqual(answer.status, 422, name)
        assert.deepStrictEqual(answer.body, {
          detail: [{
            type: "proof_rejected",
            loc: ["body", "proof", "credential"],
            msg: "The proof does not hold",
          }],
        }, name)
      }
      assert.strictEqual(bodyOf(yield* ask("GET", "/v1/me/authenticators")).total, 0)
    }))

  it.effect("an app is enrolled by its code, also of the step before and after", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      for (const off of [-25_000, 0, 25_000]) {
        const ask = yield* asking(yield* person({ email: "ada@fern.example" }))
        const { challenge, intent_id } = yield* start(ask, { kind: "totp.enroll" })
        assert.match(challenge.secret, /^[A-Z2-7]{32}$/)
        assert.match(challenge.otpauth_uri, /^otpauth:\/\/totp\/Bailiwick:ada%40fern\.example\?/)
        assert.include(challenge.otpauth_uri, `secret=${challenge.secret}`)
        const done = bodyOf(yield* complete(ask, intent_id, totp(challenge.secret, Date.now() + off)))
        assert.deepInclude(done.authenticator, { kind: "totp", credential_type: "app", label: "Authenticator app" })
        const tables = ["authenticators", "credential_intents", "audit_records", "lifecycle_events", "outbox"]
        for (const table of [...tables, "idempotency_receipts"]) {
          const rows = yield* sql<{ text: string }>`select row_to_json(t)::text as text from ${sql(table)} t`
          assert.isFalse(rows.some(({ text }) => text.includes(challenge.secret)), table)
        }
        assert.strictEqual((yield* ask("GET", "/v1/me/authenticators")).text.includes(challenge.secret), false)
      }
    }))

  it.effect("the last second factor stays, under concurrent removals", () =>
    Effect.gen(function* () {
      const { ask, app } = yield* withApp
      const refused = yield* ask("POST", actions, { kind: "totp.remove", target_id: app })
      assert.deepStrictEqual([...codeOf(refused), refused.body.state], [409, "invalid_state", "last_authenticator"])
      assert.match(refused.body.detail, /^'.+' \(totp\) is the last .*: register another one, then remove it\.$/)
      const key = bodyOf(yield* passkey(ask)).authenticator.authenticator_id
      const [one, two] = [
        yield* start(ask, { kind: "totp.remove", target_id: app }),
        yield* start(ask, { kind: "passkey.remove", target_id: key }),
      ]
      assert.deepStrictEqual(one.challenge, { type: "confirm", summary: `Remove "Phone"` })
      const answers = yield* Effect.all(
        [complete(ask, one.intent_id, confirm), complete(ask, two.intent_id, confirm)],
        { concurrency: 2 },
      )
      assert.sameMembers(answers.map(({ status }) => status), [200, 409])
      assert.strictEqual(bodyOf(yield* ask("GET", "/v1/me/authenticators")).total, 1)
    }))

  it.effect("a person has at most twenty, however many enrollments were started", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const ask = yield* asking(me, strong)
      yield* sql`
        insert into authenticators (id, person_id, kind, label, created_at, credential_id, public_key)
        select gen_random_uuid(), ${me}, 'passkey', 'Old', ${new Date()}, md5(${me} || n), '\\x00'
        from generate_series(1, 19) n`
      const app = yield* start(ask, { kind: "totp.enroll" })
      bodyOf(yield* passkey(ask))
      const late = yield* complete(ask, app.intent_id, totp(app.challenge.secret))
      assert.deepStrictEqual([...codeOf(late), late.body.state], [409, "invalid_state", "limit_reached"])
      const more = yield* ask("POST", actions, { kind: "totp.enroll" })
      assert.deepStrictEqual([...codeOf(more), more.body.state], [409, "invalid_state", "limit_reached"])
    }))

  it.effect("recovery codes are shown once, ten of 128 bits, kept as HMACs, and replaced as a set", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const vault = yield* Vault
      const ask = yield* asking(yield* person())
      const generate = Effect.gen(function* () {
        const { intent_id } = yield* start(ask, { kind: "recovery_codes.generate" })
        return [intent_id as string, yield* complete(ask, intent_id, confirm, { "idempotency-key": "once" })] as const
      })
      const [intent, told] = yield* generate
      const { authenticator, recovery_codes: codes } = bodyOf(told)
      assert.deepInclude(authenticator, {
        kind: "recovery_codes",
        credential_type: "recovery-codes",
        codes_remaining: 10,
        removable: false,
        not_removable_reason: "policy",
      })
      assert.strictEqual(new Set(codes).size, 10)
      for (const one of codes) assert.match(one, /^[a-z2-7]{5}(-[a-z2-7]{5}){4}-[a-z2-7]$/)
      const rows = yield* sql<{ hash: Uint8Array; kid: string }>`
        select hash, kid from recovery_codes where authenticator_id = ${authenticator.authenticator_id}::uuid`
      const hashes = rows.map(({ hash }) => Buffer.from(hash).toString("hex"))
      assert.sameMembers(
        codes.map((one: string) =>
          Buffer.from(hashOf(vault, authenticator.authenticator_id, one.toUpperCase()).hash).toString("hex")
        ),
        hashes,
      )
      const replayed = yield* complete(ask, intent, confirm, { "idempotency-key": "once" })
      assert.strictEqual(replayed.headers.get("idempotency-replayed"), "true")
      assert.deepStrictEqual(bodyOf(replayed), { ...told.body, recovery_codes: null })
      const receipts = yield* sql<{ body: string }>`select body from idempotency_receipts`
      for (const one of codes) assert.isFalse(receipts.some(({ body }) => body.includes(one)))
      const [, again] = yield* generate
      assert.notStrictEqual(bodyOf(again).authenticator.authenticator_id, authenticator.authenticator_id)
      const list = bodyOf(yield* ask("GET", "/v1/me/authenticators"))
      assert.deepStrictEqual([list.total, list.items[0].codes_remaining], [1, 10])
    }))

  it.effect("each project is told once of each change of credentials, recovery and sessions", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const fern = yield* institution()
      const [one, two] = [yield* project(fern), yield* project(fern)]
      for (const id of [one, two]) yield* access(fern, id, me)
      const mine = yield* asking(me, { ...strong, sid: `mine ${me}` })
      yield* (yield* asking(me, { sid: `other ${me}` }))("GET", "/v1/me")
      // Its token was revoked with the session, and may be refreshed.
      yield* (yield* asking(me, { sid: `idle ${me}`, ttl: "-30 seconds" }))("GET", "/v1/me")
      const { challenge, intent_id } = yield* start(mine, { kind: "totp.enroll" })
      const enrolled = bodyOf(yield* complete(mine, intent_id, totp(challenge.secret)))
      const key = bodyOf(yield* passkey(mine))
      const target_id = key.authenticator.authenticator_id
      const third = bodyOf(yield* (yield* asking(me, { sid: `third ${me}` }))("GET", "/v1/me/sessions")).items
        .find(({ current }: { current: boolean }) => current).session_id
      const done = [enrolled, key]
      for (
        const action of [
          { kind: "authenticator.rename", target_id, label: "Stick" },
          { kind: "passkey.remove", target_id },
          { kind: "recovery_codes.generate" },
          { kind: "recovery_codes.generate" },
          { kind: "session.revoke", target_id: third },
          { kind: "sessions.revoke_others" },
        ]
      ) done.push(bodyOf(yield* complete(mine, (yield* start(mine, action)).intent_id, confirm)))
      assert.deepStrictEqual(done.map(({ event_ids: ids }) => ids.length), [2, 2, 2, 2, 4, 4, 2, 4])
      assert.deepStrictEqual(done.map(({ sessions_revoked: n }) => n), [0, 0, 0, 0, 0, 0, 1, 2])
      const events = yield* sql<{ kind: string; sub_id: unknown; payload: Record<string, unknown> }>`
        select kind, sub_id, payload from lifecycle_events
        where project_id = ${one} and person_id = ${me} and kind <> 'access-granted' order by position`
      const user = { format: "iss_sub", iss: "https://id.example", sub: me }
      const session = (sid: string) => ({ format: "complex", user, session: { format: "opaque", id: `${sid} ${me}` } })
      const fido2_aaguid = "00000000-0000-0000-0000-000000000000"
      const change = (credential_type: string, change_type: string, more = {}) =>
        ["credential-change", { initiating_entity: "user", credential_type, change_type, ...more }, user] as const
      const recovery = ["recovery-information-changed", { initiating_entity: "user" }, user] as const
      const heard = events.map((
        { kind, payload: { event_timestamp: _, ...payload }, sub_id },
      ) => [kind, payload, sub_id])
      const ended = (sid: string) => ["session-revoked", { initiating_entity: "user" }, session(sid)]
      assert.deepStrictEqual(
        heard.slice(0, 9),
        [
          change("app", "create"),
          change("fido2-platform", "create", { fido2_aaguid }),
          change("fido2-platform", "update", { fido2_aaguid }),
          change("fido2-platform", "delete", { fido2_aaguid }),
          change("recovery-codes", "create"),
          recovery,
          change("recovery-codes", "update"),
          recovery,
          ended("third"),
        ].map((event) => [...event]),
      )
      assert.sameDeepMembers(heard.slice(9), [ended("idle"), ended("other")])
    }))

  it.effect("capabilities list the possible actions, and the reason for each impossible one", () =>
    Effect.gen(function* () {
      const ask = yield* asking(yield* person())
      const known = bodyOf(yield* ask("GET", actions))
      assert.strictEqual(known.intent_ttl_seconds, 600)
      assert.isTrue(known.second_factor)
      assert.deepStrictEqual(
        known.actions.map(({ available, kind, proof_type, target, unavailable_reason }: Record<string, unknown>) => [
          ...[kind, available, unavailable_reason, target, proof_type],
        ]),
        [
          ["passkey.register", true, null, "none", "webauthn.create"],
          ["passkey.remove", false, "none_enrolled", "authenticator", "confirm"],
          ["totp.enroll", true, null, "none", "totp"],
          ["totp.remove", false, "none_enrolled", "authenticator", "confirm"],
          ["recovery_codes.generate", true, null, "none", "confirm"],
          ["authenticator.rename", false, "none_enrolled", "authenticator", "confirm"],
          ["session.revoke", true, null, "session", "confirm"],
          ["sessions.revoke_others", true, null, "none", "confirm"],
        ],
      )
      const { ask: strongly } = yield* withApp
      const now = bodyOf(yield* strongly("GET", actions)).actions
      const removal = now.find(({ kind }: { kind: string }) => kind === "totp.remove")
      assert.deepInclude(removal, {
        available: false,
        unavailable_reason: "last_authenticator",
        satisfied: true,
        acr_values: ["urn:service:aal2"],
        max_age_seconds: 300,
      })
    }))
})

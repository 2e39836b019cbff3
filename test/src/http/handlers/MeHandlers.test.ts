import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { OwnAccount } from "../../../../schemas/identity/IdentityAccount.ts"
import { PeopleRetention } from "../../../../services/people/PeopleRetention.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { leastIdAt } from "../../../../services/platform/Ids.ts"
import { Clients } from "../../../../src/http/edge/Clients.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { access, institution, issuer, member, owner, person, project, tell } from "../../../support/TestIdentity.ts"
import { asking, bodyOf, fixture } from "./MeFixture.ts"

const now = () => Math.floor(Date.now() / 1_000)

layer(fixture(), { excludeTestServices: true })("/v1/me", (it) => {
  it.effect("a person's own account shows memberships and projects", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person({ display_name: "Ada", email: "ada@fern.example", operator: true })
      const fern = yield* institution({ name: "Fern" })
      const moss = yield* institution({ name: "Moss", status: "suspended" })
      const effective = (i: string, role: string, memberships: ReadonlyArray<Record<string, unknown>>) =>
        memberships.find((one) => one["institution_id"] === i && one["role"] === role)?.["effective"]
      yield* member(fern, me, "administrator")
      yield* member(fern, me, "sponsor", { expires_at: "2002-01-01T00:00:00Z" })
      yield* member(fern, me, "member", { effective_from: new Date((now() + 3_600) * 1_000).toISOString() })
      yield* member(moss, me, "member")
      const [owned, used, lost, both] = [
        yield* project(fern, { name: "Owned" }),
        yield* project(fern, { name: "Used" }),
        yield* project(fern, { name: "Lost" }),
        yield* project(moss, { name: "Both" }),
      ]
      yield* owner(owned, me)
      yield* access(fern, used, me)
      yield* access(fern, lost, me, { state: "revoked" })
      yield* owner(both, me)
      yield* access(moss, both, me)
      const ask = yield* asking(me)
      const read = yield* ask("GET", "/v1/me")
      const account = bodyOf(read)
      assert.strictEqual(read.text, JSON.stringify(Schema.encodeSync(OwnAccount)(account)))
      assert.deepStrictEqual(Schema.decodeUnknownSync(OwnAccount, { onExcessProperty: "error" })(account), account)
      const { linked_identities: identities, memberships, projects, ...rest } = account
      assert.deepInclude(rest, {
        person_id: me,
        issuer,
        subject: me,
        display_name: "Ada",
        email: "ada@fern.example",
        email_verified: true,
        status: "active",
        operator: true,
        auditor: false,
      })
      assert.lengthOf(identities, 1)
      assert.deepInclude(identities[0], { issuer, subject: me })
      assert.isTrue(effective(fern, "administrator", memberships))
      assert.isFalse(effective(fern, "sponsor", memberships))
      assert.isFalse(effective(fern, "member", memberships))
      assert.isFalse(effective(moss, "member", memberships))
      assert.sameDeepMembers(projects, [
        { project_id: owned, name: "Owned", relation: "owner", access_state: "none", effective: "not_effective" },
        { project_id: used, name: "Used", relation: "user", access_state: "active", effective: "unknown" },
        { project_id: lost, name: "Lost", relation: "user", access_state: "revoked", effective: "unknown" },
        { project_id: both, name: "Both", relation: "owner", access_state: "active", effective: "unknown" },
      ])

      // A product that acknowledged the Access's current version has put it into effect.
      for (const projectId of [used, lost]) {
        yield* sql`insert into lifecycle_consumers (project_id, consumer, acknowledged_epoch, acknowledged_position)
          select project_id, 'product', epoch, position from lifecycle_heads where project_id = ${projectId}`
      }
      assert.deepStrictEqual(
        new Map(
          bodyOf(yield* ask("GET", "/v1/me")).projects.map((one: Record<string, string>) => [
            ...[one["project_id"], one["effective"]],
          ]),
        ),
        new Map([[owned, "not_effective"], [used, "effective"], [lost, "not_effective"], [both, "unknown"]]),
      )

      // Memberships of a merged person belong to the person it was merged into.
      const old = yield* person()
      yield* member(moss, old, "sponsor")
      yield* member(fern, old, "sponsor")
      yield* sql`update people set merged_into = ${me} where id = ${old}`
      yield* sql`update identities set person_id = ${me} where person_id = ${old}`
      const merged = bodyOf(yield* ask("GET", "/v1/me"))
      assert.sameMembers(merged.linked_identities.map((one: { subject: string }) => one.subject), [me, old])
      assert.lengthOf(merged.memberships, memberships.length + 2)
      // A membership of a merged name gives no right (Roles).
      assert.sameDeepMembers(
        merged.memberships.filter((one: { effective: boolean }) => one.effective),
        memberships.filter((one: { effective: boolean }) => one.effective),
      )
    }))

  it.effect("another person's account is never shown", () =>
    Effect.gen(function* () {
      const [me, other] = [yield* person(), yield* person()]
      yield* (yield* asking(other, { sid: "theirs" }))("GET", "/v1/me/sessions")
      const ask = yield* asking(me, { sid: "mine" })
      for (const path of ["/v1/me", "/v1/me/sessions", "/v1/me/authenticators"]) {
        assert.notInclude((yield* ask("GET", path)).text, other, path)
      }
    }))

  it.effect("a sign-in is fresh for 300 s, and never fresh without `auth_time`", () =>
    Effect.gen(function* () {
      const me = yield* person()
      const freshness = Effect.fnUntraced(function* (options: Parameters<typeof asking>[1]) {
        return bodyOf(yield* (yield* asking(me, options))("GET", "/v1/me/freshness"))
      })
      const at = now() - 100
      const fresh = yield* freshness({ authTime: at, acr: "urn:service:aal2", amr: ["pwd", "otp"] })
      assert.deepInclude(fresh, {
        authenticated_at: new Date(at * 1_000).toISOString(),
        acr: "urn:service:aal2",
        amr: ["pwd", "otp"],
        aal: "aal2",
        fresh: true,
        fresh_until: new Date((at + 300) * 1_000).toISOString(),
      })
      assert.isTrue(fresh.age_seconds >= 100 && fresh.age_seconds < 110, String(fresh.age_seconds))
      assert.isTrue(Date.parse(fresh.token_expires_at) > Date.parse(fresh.server_time))
      const removal = fresh.requirements.find((one: { operation: string }) => one.operation === "passkey.remove")
      assert.deepStrictEqual(removal, {
        operation: "passkey.remove",
        acr_values: [],
        max_age_seconds: 300,
        satisfied: true,
      })
      const stale = yield* freshness({ authTime: now() - 301 })
      assert.isFalse(stale.fresh)
      assert.isFalse(stale.requirements.some((one: { satisfied: boolean }) => one.satisfied))
      const silent = yield* freshness({ authTime: null })
      assert.deepInclude(silent, { authenticated_at: null, age_seconds: null, fresh: false, fresh_until: null })
      assert.isFalse(silent.requirements.some((one: { satisfied: boolean }) => one.satisfied))
      assert.strictEqual((yield* freshness({ acr: "gold" })).aal, "unknown")
    }))

  it.effect("sessions are learned from tokens, and the current one is always listed", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const at = now() - 30
      const then = new Date((at - 60) * 1_000)
      const first = yield* asking(me, { sid: `a ${me}`, authTime: at, acr: "urn:service:aal2", amr: ["pwd", "otp"] })
      const second = yield* asking(me, { sid: `b ${me}`, clientId: "cli" })
      yield* second("GET", "/v1/me", undefined, { "user-agent": `Agent\t${"x".repeat(400)}` })
      const list = bodyOf(yield* first("GET", "/v1/me/sessions", undefined, { "user-agent": "Portal/1" }))
      assert.strictEqual(list.total, 2)
      const [mine, other] = [true, false].map((current) =>
        list.items.find((item: { current: boolean }) => item.current === current)
      )
      assert.deepInclude(mine, {
        state: "active",
        authenticated_at: new Date(at * 1_000).toISOString(),
        aal: "aal2",
        client_id: "portal",
        user_agent: "Portal/1",
        ip_prefix: "127.0.0.0/24",
        revoked_at: null,
      })
      assert.deepStrictEqual(mine.authentication_methods, [
        { method: "pwd", aal: "aal1", completed_at: mine.authenticated_at },
        { method: "otp", aal: "aal2", completed_at: mine.authenticated_at },
      ])
      assert.deepInclude(other, { client_id: "cli", aal: "unknown", authentication_methods: [] })
      assert.strictEqual(other.user_agent, `Agent ${"x".repeat(250)}`)
      const silent = yield* asking(me)
      // This session was ended by its client's end before its row was written (ClientSessions).
      yield* sql`insert into client_floors (client_id, before) values ('cli', ${new Date()})`
      const ended = bodyOf(yield* silent("GET", "/v1/me/sessions"))
      assert.sameMembers(ended.items.map(({ client_id, state }: Record<string, string>) => `${client_id} ${state}`), [
        "portal active",
        "cli revoked",
      ])
      yield* sql`
        insert into sessions (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr)
        select gen_random_uuid(), 'many', ${me} || n, ${me}, 'portal', ${then}, ${then}, ${then}, 'unknown', '{}'
        from generate_series(1, 1000) n`
      const many = bodyOf(yield* silent("GET", "/v1/me/sessions"))
      assert.deepStrictEqual([many.total, many.items.length], [1_002, 1_000])
      assert.deepStrictEqual([many.items[0].state, many.items.at(-1).state], ["active", "expired"])
    }))

  it.effect("sessions expired for ninety days are deleted page by page, and an ended session stays ended", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const me = yield* person()
      const recent = (now() - 89 * 86_400) * 1_000
      const then = recent - 2 * 86_400_000
      const sessions = [["left", then], ["in use", recent], ["ended", then], ["left too", then], ["left three", then]]
      for (const [i, [sid, seen]] of sessions.entries()) {
        yield* sql`
          insert into sessions (id, issuer, sid, person_id, client_id, issued_at, last_seen_at, expires_at, aal, amr,
            revoked_at)
          values (${leastIdAt(then + i)}::uuid, ${issuer}, ${`${sid} ${me}`}, ${me}, 'portal', ${new Date(then)},
            ${new Date(seen!)}, ${new Date(then)}, 'unknown', '{}',
            ${sid === "ended" ? new Date(then) : null}::timestamptz)`
      }
      for (
        const [i, [state, made]] of ([["completed", then], ["pending", then], ["expired", recent]] as const).entries()
      ) {
        const at = new Date(made)
        yield* sql`
          insert into credential_intents (id, person_id, kind, target_id, state, created_at, expires_at, ended_at)
          values (${leastIdAt(made + i)}::uuid, ${me}, 'session.revoke', ${state}, ${state}, ${at}, ${at},
            ${state === "pending" ? null : at}::timestamptz)`
      }
      for (const [jti, made, consumed] of [["a", then, true], ["b", then + 1, false], ["c", recent, true]] as const) {
        const at = new Date(made)
        yield* sql`
          insert into link_proofs (id, person_id, issuer, subject, jti, created_at, expires_at, consumed_at)
          values (${leastIdAt(made)}::uuid, ${me}, ${me}, 'other', ${jti}, ${at}, ${at},
            ${consumed ? at : null}::timestamptz)`
      }
      const prune = Effect.provide(
        Effect.flatMap(PeopleRetention, (all) => all.prune),
        PeopleRetention.layer({ page: 2 }),
      )
      assert.strictEqual(yield* prune, 6)
      assert.strictEqual(yield* prune, 0)
      assert.deepStrictEqual(
        yield* sql`select sid from sessions where person_id = ${me} order by id`,
        [{ sid: `in use ${me}` }, { sid: `ended ${me}` }],
      )
      assert.deepStrictEqual(
        yield* sql`select state from credential_intents where person_id = ${me} order by id`,
        [{ state: "pending" }, { state: "expired" }],
      )
      assert.deepStrictEqual(yield* sql`select jti from link_proofs where person_id = ${me}`, [{ jti: "c" }])
      const ended = yield* asking(me, { sid: `ended ${me}` })
      assert.deepStrictEqual(codeOf(yield* ended("GET", "/v1/me")), [401, "invalid_token"])
      bodyOf(yield* (yield* asking(me, { sid: `left ${me}` }))("GET", "/v1/me"))
    }))

  it.effect("a person's choice of mails is kept, audited once, and its own", () =>
    Effect.gen(function* () {
      const { sql } = yield* Database
      const [me, other] = [yield* person(), yield* person()]
      const [ask, asks] = [yield* asking(me), yield* asking(other)]
      const path = "/v1/me/notice-settings"
      assert.deepStrictEqual(bodyOf(yield* ask("GET", path)), { delivery: "digest" })
      for (const delivery of ["off", "off", "immediately"]) {
        assert.deepStrictEqual(bodyOf(yield* ask("PUT", path, { delivery })), { delivery })
        assert.deepStrictEqual(bodyOf(yield* ask("GET", path)), { delivery })
      }
      assert.deepStrictEqual(bodyOf(yield* asks("GET", path)), { delivery: "digest" })
      for (const body of [{ delivery: "weekly" }, {}, { delivery: "off", person_id: other }]) {
        assert.strictEqual((yield* ask("PUT", path, body)).status, 422)
      }
      const audited = yield* sql`
        select details from audit_records where action = 'notice-settings.changed' and actor = ${`person:${me}`}
        order by at, id`
      assert.deepStrictEqual(audited, [
        { details: { delivery: "off" } },
        { details: { delivery: "immediately" } },
      ])
    }))

  it.effect("the feed's changes of an account show at once", () =>
    Effect.gen(function* () {
      const me = yield* person()
      const ask = yield* asking(me)
      bodyOf(yield* ask("GET", "/v1/me"))
      yield* tell("person", {
        id: me,
        version: 2,
        issuer,
        subject: me,
        display_name: "Gone",
        status: "disabled",
        email: null,
      })
      assert.deepStrictEqual(codeOf(yield* ask("GET", "/v1/me")), [401, "invalid_token"])
    }))
})

const proxied = fixture().pipe(Layer.provide(Clients.layer(["127.0.0.1/32"])))

layer(proxied, { excludeTestServices: true })("/v1/me behind a trusted proxy", (it) => {
  it.effect("sessions show the clients' own addresses", () =>
    Effect.gen(function* () {
      const me = yield* person()
      for (
        const [from, prefix] of [["198.51.100.7, 203.0.113.9", "203.0.113.0/24"], ["2001:db8:1::7", "2001:db8:1::/48"]]
      ) {
        const ask = yield* asking(me, { sid: `${from} ${me}` })
        const headers = { "x-forwarded-for": from! }
        bodyOf(yield* ask("GET", "/v1/me", undefined, headers))
        const { items } = bodyOf(yield* ask("GET", "/v1/me/sessions", undefined, headers))
        assert.strictEqual(items.find(({ current }: { current: boolean }) => current).ip_prefix, prefix)
      }
    }))
})

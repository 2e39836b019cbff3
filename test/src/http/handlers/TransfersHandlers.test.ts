import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { HttpApi, HttpApiBuilder } from "effect/http-api"
import { randomUUID } from "node:crypto"
import type { AccountId } from "../../../../schemas/BrandedIds.ts"
import { TransfersApi } from "../../../../schemas/api/TransfersApi.ts"
import {
  AcceptEligibility,
  DomainDkim,
  DomainTransfer,
  DomainTransferPage,
  PlatformTransferPage,
} from "../../../../schemas/mail/Transfer.ts"
import { ApiKeys } from "../../../../services/accounts/ApiKeys.ts"
import { Database } from "../../../../services/platform/database/Database.ts"
import { Idempotency } from "../../../../services/platform/security/Idempotency.ts"
import { pruneAccountReceipts } from "../../../../services/platform/security/ReceiptRetention.ts"
import { domainActor } from "../../../../src/actors/DomainEntity.ts"
import { singleProcess } from "../../../../src/actors/Cluster.ts"
import { EmbeddedIssuer } from "../../../../src/embedded/EmbeddedIssuer.ts"
import { authenticated, presented } from "../../../../src/http/auth/AccountAuth.ts"
import { RejectionAudit } from "../../../../src/http/edge/RejectionAudit.ts"
import { Server } from "../../../../src/http/Server.ts"
import { transfers } from "../../../../src/http/handlers/TransfersHandlers.ts"
import {
  domain,
  domainLine,
  feed,
  person,
  seat,
  service,
  tokenOf,
} from "../../../services/transfers/TransferFixture.ts"
import { codeOf } from "../../../support/Fixtures.ts"
import { sessions } from "../../../support/TestAccounts.ts"

const publicUrl = new URL("https://mail.example")
const Api = HttpApi.make("bailiwick").add(TransfersApi)

const app = HttpApiBuilder.layer(Api).pipe(
  Layer.provide(transfers),
  Layer.provide([authenticated(publicUrl), presented(publicUrl)]),
  Layer.provide(domainActor),
  Layer.provide(singleProcess),
)

const served = Server.layer(app, { host: "127.0.0.1", port: 0, publicUrl: publicUrl.href }).pipe(
  Layer.provide(RejectionAudit.layer),
  Layer.provide(Idempotency.layer),
  Layer.provideMerge(ApiKeys.layer),
  Layer.provideMerge(service({ initiateLimit: 5 })),
  Layer.provideMerge(sessions),
)

interface Answer {
  readonly status: number
  readonly headers: globalThis.Headers
  readonly body: unknown
}
type Headers = Record<string, string>

const call = Effect.fnUntraced(function* (method: string, path: string, headers: Headers = {}, body?: unknown) {
  const { url } = yield* Server
  return yield* Effect.promise(async (): Promise<Answer> => {
    const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body)
    const response = await fetch(url + path, {
      method,
      headers: { ...(text === null ? {} : { "content-type": "application/json" }), ...headers },
      body: text,
    })
    return { status: response.status, headers: response.headers, body: await response.json() }
  })
})

const transferOf = (answer: Answer) => {
  assert.strictEqual(answer.status, 200, JSON.stringify(answer.body))
  return Schema.decodeUnknownSync(DomainTransfer)(answer.body)
}
const listOf = ({ body }: Answer) => Schema.decodeUnknownSync(Schema.Array(DomainTransfer))(body)

const receivedOf = ({ body }: Answer) => Schema.decodeUnknownSync(DomainTransferPage)(body)

const signedIn = Effect.fnUntraced(function* (accountId: AccountId, authTime?: number) {
  const session = { accountId, ...(authTime === undefined ? {} : { authTime }) }
  return { cookie: `mail_session=${yield* (yield* EmbeddedIssuer).mintSession(session)}` }
})

/** The headers of a signed-in account. */
const someone = Effect.fnUntraced(function* (fields: Record<string, unknown> = {}) {
  const who = yield* person(fields)
  return { ...who, session: yield* signedIn(who.id) }
})

const by = (id: string) => `/v1/domain-transfers/by-id/${id}/accept`

layer(served, { excludeTestServices: true, timeout: "2 minutes" })("/v1/domain-transfers", (it) => {
  it.effect("a domain is offered, listed, accepted by token and stopped without a credential, by cookie and key", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* someone(), yield* someone()]
      const domainId = yield* domain(alice)
      const { key } = yield* (yield* ApiKeys).create(
        { accountId: alice.id, plan: "free", platformAdmin: false, via: "cookie", keyId: null, authTime: null },
        { name: "CI", permissions: ["send"] },
      )
      const byKey = { authorization: `Bearer ${key}` }
      const made = transferOf(
        yield* call("POST", `/v1/domains/${domainId}/transfer/`, byKey, { target_email: bob.email, more: 1 }),
      )
      assert.deepStrictEqual([made.status, made.note], ["pending", null])
      assert.deepStrictEqual(listOf(yield* call("GET", "/v1/domain-transfers/outgoing", byKey)), [made])
      assert.deepStrictEqual(listOf(yield* call("GET", "/v1/domain-transfers/incoming/", bob.session)), [made])
      const eligible = yield* call("GET", "/v1/domain-transfers/accept-eligibility", bob.session)
      assert.deepStrictEqual(Schema.decodeUnknownSync(AcceptEligibility)(eligible.body), {
        can_accept: true,
        code: null,
        message: null,
        current_domains: 0,
        domain_limit: 1,
      })
      const token = yield* tokenOf("accept", made.id)
      const path = `/v1/domain-transfers/${token}/accept`
      assert.deepStrictEqual(codeOf(yield* call("POST", path)), [401, "invalid_credentials"])
      const accepted = transferOf(yield* call("POST", path, bob.session))
      assert.deepStrictEqual([accepted.status, accepted.target_org_id], ["accepted", bob.workspaceId])
      const used = yield* call("POST", path, bob.session, { rotate_dkim: null, target_org_id: null })
      assert.deepStrictEqual(codeOf(used), [404, "not_found"])
      assert.notInclude(JSON.stringify(used.body), token)
      const stopToken = yield* tokenOf("stop", made.id)
      const stopped = transferOf(yield* call("POST", `/v1/domain-transfers/stop/${stopToken}`))
      assert.strictEqual(stopped.status, "reversed")
      assert.deepStrictEqual(codeOf(yield* call("POST", `/v1/domain-transfers/stop/${stopToken}`)), [404, "not_found"])
      assert.deepStrictEqual(listOf(yield* call("GET", "/v1/domain-transfers/incoming", bob.session)), [])
    }))

  it.effect("one transfer is read by its parties after it has ended, and is 404 to others", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* someone(), yield* someone(), yield* someone()]
      const domainId = yield* domain(alice)
      const made = transferOf(
        yield* call("POST", `/v1/domains/${domainId}/transfer`, alice.session, { target_email: bob.email }),
      )
      const path = `/v1/domain-transfers/${made.id}`
      assert.deepStrictEqual(transferOf(yield* call("GET", path, bob.session)), made)
      const cancelled = transferOf(yield* call("DELETE", path, alice.session))
      for (const { session } of [alice, bob]) {
        const read = yield* call("GET", `/v1/domain-transfers/${made.id.toUpperCase()}/`, session)
        assert.deepStrictEqual(transferOf(read), cancelled)
      }
      for (const missing of [path, `/v1/domain-transfers/${randomUUID()}`, "/v1/domain-transfers/x"]) {
        assert.deepStrictEqual(codeOf(yield* call("GET", missing, eve.session)), [404, "not_found"])
      }
    }))

  it.effect("without a credential everything but stop is 401, before any validation", () =>
    Effect.gen(function* () {
      for (
        const [method, path] of [
          ["POST", `/v1/domains/${randomUUID()}/transfer`],
          ["GET", `/v1/domains/${randomUUID()}/dkim`],
          ["GET", "/v1/domain-transfers/incoming"],
          ["GET", "/v1/domain-transfers/outgoing"],
          ["GET", "/v1/domain-transfers/accept-eligibility"],
          ["GET", "/v1/domain-transfers/x"],
          ["POST", "/v1/domain-transfers/x/accept"],
          ["POST", by("x")],
          ["POST", "/v1/domain-transfers/x/decline"],
          ["DELETE", "/v1/domain-transfers/x"],
          ["POST", `/v1/admin/domain-transfers/${randomUUID()}`],
        ] as const
      ) {
        const answer = yield* call(method, path, {}, method === "POST" ? { target_email: 1 } : undefined)
        assert.deepStrictEqual(codeOf(answer), [401, "invalid_credentials"], path)
        assert.strictEqual(answer.headers.get("www-authenticate"), "Bearer")
      }
      assert.deepStrictEqual(codeOf(yield* call("POST", "/v1/domain-transfers/stop/x")), [404, "not_found"])
    }))

  it.effect("a domain's DKIM keys are shown to its parties, by cookie and by key, and 404 to others", () =>
    Effect.gen(function* () {
      const [alice, bob, carol] = [yield* someone(), yield* someone(), yield* someone()]
      const domainId = yield* domain(alice)
      const made = transferOf(
        yield* call("POST", `/v1/domains/${domainId}/transfer`, alice.session, { target_email: bob.email }),
      )
      const path = `/v1/domains/${domainId}/dkim`
      assert.deepStrictEqual(codeOf(yield* call("GET", path, bob.session)), [404, "not_found"])
      const accepted = transferOf(yield* call("POST", by(made.id), bob.session, { rotate_dkim: true }))
      for (const party of [alice, bob]) {
        const { body, status } = yield* call("GET", path, party.session)
        assert.strictEqual(status, 200)
        const { domain_id, domain_name, keys } = Schema.decodeUnknownSync(DomainDkim)(body)
        assert.deepStrictEqual([domain_id, domain_name], [domainId, made.domain_name])
        assert.deepStrictEqual(keys.map((key) => [key.status, key.transfer_id, key.effective_at]), [
          ["active", null, null],
          ["prepared", made.id, accepted.cooloff_until],
        ])
        assert.strictEqual(keys[1]!.record_name, `${keys[1]!.selector}._domainkey.${made.domain_name}`)
        assert.match(keys[1]!.record_value!, /^v=DKIM1; k=(rsa|ed25519); p=[A-Za-z0-9+/]+=*$/)
      }
      for (const gone of [path, `/v1/domains/${randomUUID()}/dkim`, "/v1/domains/x/dkim"]) {
        assert.deepStrictEqual(codeOf(yield* call("GET", gone, carol.session)), [404, "not_found"])
      }
    }))

  it.effect("initiate: 422 before 404, 404, 403, 429 with its headers, and 409s with blockers", () =>
    Effect.gen(function* () {
      const [alice, bob, member] = [yield* someone(), yield* someone(), yield* someone()]
      yield* seat(alice.workspaceId, member.id, "member")
      const domainId = yield* domain(alice, { verified_at: null })
      const path = `/v1/domains/${domainId}/transfer`
      const offer = (body: unknown, who = alice.session, to = path) => call("POST", to, who, body)
      const faults = Effect.fnUntraced(function* (body: unknown, to = path) {
        const answer = yield* offer(body, alice.session, to)
        assert.strictEqual(answer.status, 422)
        return (answer.body as { detail: ReadonlyArray<{ loc: unknown; type: string }> }).detail
          .map(({ loc, type }) => [loc, type])
      })
      assert.deepStrictEqual(yield* faults(undefined), [[["body"], "missing"]])
      assert.deepStrictEqual(yield* faults({ note: "\u{1f511}".repeat(1001) }, "/v1/domains/none/transfer"), [
        [["body", "target_email"], "missing"],
        [["body", "note"], "string_too_long"],
      ])
      const good = { target_email: bob.email, note: "\u{1f511}".repeat(1000) }
      for (const id of ["none", randomUUID()]) {
        const answer = yield* offer(good, alice.session, `/v1/domains/${id}/transfer`)
        assert.deepStrictEqual(codeOf(answer), [404, "not_found"])
      }
      assert.deepStrictEqual(codeOf(yield* offer(good, bob.session)), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* offer(good, member.session)), [403, "forbidden"])
      assert.deepStrictEqual(codeOf(yield* offer(good)), [409, "domain_not_verified"])
      yield* feed(domainLine(domainId, alice))
      assert.deepStrictEqual(codeOf(yield* offer({ target_email: "nobody" })), [404, "target_not_found"])
      assert.deepStrictEqual(codeOf(yield* offer({ target_email: alice.email })), [409, "self_transfer"])
      yield* feed({
        kind: "broadcast",
        id: randomUUID(),
        domain_id: domainId,
        name: "News",
        status: "scheduled",
        scheduled_at: "2026-04-01T10:00:00Z",
      })
      const blocked = yield* offer(good)
      assert.deepStrictEqual(codeOf(blocked), [409, "broadcasts_in_flight"])
      assert.strictEqual((blocked.body as { blockers: ReadonlyArray<unknown> }).blockers.length, 1)
      assert.strictEqual((yield* offer(good)).status, 409)
      const limited = yield* offer(good)
      assert.deepStrictEqual(codeOf(limited), [429, "rate_limited"])
      assert.match(limited.headers.get("retry-after")!, /^[1-9]\d?$/)
      assert.strictEqual(limited.headers.get("ratelimit-policy"), `"default";q=5;w=60`)
      // The limit counts per account: 404, 403 and 422 of the domain are answered as before.
      assert.deepStrictEqual(codeOf(yield* offer(good, alice.session, "/v1/domains/none/transfer")), [404, "not_found"])
      assert.deepStrictEqual(yield* faults({}), [[["body", "target_email"], "missing"]])
    }))

  it.effect("accept, decline and cancel: the documented refusals", () =>
    Effect.gen(function* () {
      const [alice, bob, eve] = [yield* someone({ plan: "pro" }), yield* someone(), yield* someone()]
      const offered = Effect.gen(function* () {
        const id = yield* domain(alice)
        return transferOf(yield* call("POST", `/v1/domains/${id}/transfer`, alice.session, { target_email: bob.email }))
      })
      const [first, second, third] = [yield* offered, yield* offered, yield* offered]
      for (const id of ["none", randomUUID()]) {
        assert.deepStrictEqual(codeOf(yield* call("POST", by(id), bob.session)), [404, "not_found"])
        const declined = yield* call("POST", `/v1/domain-transfers/${id}/decline`, bob.session)
        assert.deepStrictEqual(codeOf(declined), [404, "not_found"])
        const cancelled = yield* call("DELETE", `/v1/domain-transfers/${id}`, bob.session)
        assert.deepStrictEqual(codeOf(cancelled), [404, "not_found"])
      }
      const body = yield* call("POST", by(first.id), bob.session, { rotate_dkim: "maybe", target_org_id: 1 })
      assert.strictEqual(body.status, 422)
      assert.deepStrictEqual(codeOf(yield* call("POST", by(first.id), eve.session)), [403, "wrong_recipient"])
      const elsewhere = { target_org_id: alice.workspaceId }
      assert.deepStrictEqual(codeOf(yield* call("POST", by(first.id), bob.session, elsewhere)), [
        403,
        "org_access_lost",
      ])
      const here = { target_org_id: bob.workspaceId.toUpperCase() }
      assert.strictEqual(transferOf(yield* call("POST", by(first.id), bob.session, here)).status, "accepted")
      assert.deepStrictEqual(codeOf(yield* call("POST", by(first.id), bob.session)), [409, "not_pending"])
      assert.deepStrictEqual(codeOf(yield* call("POST", by(second.id), bob.session)), [403, "domain_limit"])
      const path = `/v1/domain-transfers/${second.id}`
      assert.deepStrictEqual(codeOf(yield* call("POST", `${path}/decline`, eve.session)), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* call("POST", `${path}/decline`, alice.session)), [403, "wrong_recipient"])
      assert.strictEqual(transferOf(yield* call("POST", `${path}/decline`, bob.session)).status, "declined")
      assert.deepStrictEqual(codeOf(yield* call("POST", `${path}/decline`, bob.session)), [409, "not_pending"])
      assert.deepStrictEqual(codeOf(yield* call("DELETE", path, eve.session)), [404, "not_found"])
      assert.deepStrictEqual(codeOf(yield* call("DELETE", path, bob.session)), [403, "forbidden"])
      assert.deepStrictEqual(codeOf(yield* call("DELETE", path, alice.session)), [409, "not_pending"])
      const { sql } = yield* Database
      yield* sql`update transfers set expires_at = initiated_at where id = ${third.id}::uuid`
      assert.deepStrictEqual(codeOf(yield* call("POST", by(third.id), bob.session)), [410, "expired"])
      yield* sql`update transfers set cooloff_until = accepted_at where id = ${first.id}::uuid`
      const late = yield* call("POST", `/v1/domain-transfers/stop/${yield* tokenOf("stop", first.id)}`)
      assert.deepStrictEqual(codeOf(late), [409, "not_stoppable"])
    }))

  it.effect("what has ended is listed to its recipient, and everything to a platform administrator, over pages", () =>
    Effect.gen(function* () {
      const [alice, bob] = [yield* someone(), yield* someone()]
      const carol = { ...bob, session: yield* signedIn((yield* person({ platform_admin: true })).id, 0) }
      const made: Array<DomainTransfer> = []
      for (let n = 0; n < 4; n++) {
        const id = yield* domain(alice)
        made.unshift(
          transferOf(yield* call("POST", `/v1/domains/${id}/transfer`, alice.session, { target_email: bob.email })),
        )
      }
      const [live, over, refused, taken] = made
      const { sql } = yield* Database
      yield* sql`update transfers set expires_at = initiated_at where id = ${over!.id}::uuid`
      transferOf(yield* call("POST", `/v1/domain-transfers/${refused!.id}/decline`, bob.session))
      transferOf(yield* call("DELETE", `/v1/domain-transfers/${taken!.id}`, alice.session))

      const received = "/v1/domain-transfers/received"
      const first = receivedOf(yield* call("GET", `${received}?limit=2`, bob.session))
      const second = receivedOf(yield* call("GET", `${received}?limit=2&after_id=${first.next_after_id}`, bob.session))
      assert.deepStrictEqual(
        [...first.items, ...second.items].map(({ id, status }) => [id, status]),
        [[over!.id, "expired"], [refused!.id, "declined"], [taken!.id, "cancelled"]],
      )
      assert.isNull(second.next_after_id)
      assert.deepStrictEqual(receivedOf(yield* call("GET", received, alice.session)).items, [])

      const all = "/v1/admin/domain-transfers"
      assert.deepStrictEqual(codeOf(yield* call("GET", all, bob.session)), [403, "forbidden"])
      const named = (query: string) =>
        Effect.map(
          call("GET", `${all}?name=${live!.domain_name.toUpperCase()}${query}`, carol.session),
          ({ body }) => Schema.decodeUnknownSync(PlatformTransferPage)(body).items,
        )
      const [item] = yield* named("")
      assert.deepInclude(item, { id: live!.id, source_email: alice.email, forced: false, status: "pending" })
      assert.lengthOf(yield* named("&status=pending"), 1)
      assert.lengthOf(yield* named("&status=expired"), 0)
      const expired = yield* call("GET", `${all}?status=expired&name=${over!.domain_name}`, carol.session)
      assert.deepStrictEqual(
        Schema.decodeUnknownSync(PlatformTransferPage)(expired.body).items.map(({ id }) => id),
        [over!.id],
      )
      const page = yield* call("GET", `${all}?limit=1&after_id=${live!.id}`, carol.session)
      assert.strictEqual(Schema.decodeUnknownSync(PlatformTransferPage)(page.body).items[0]!.id, over!.id)
      assert.strictEqual((yield* call("GET", `${all}?status=gone`, carol.session)).status, 422)
    }))

  it.effect("force: a platform administrator by cookie, who has just signed in", () =>
    Effect.gen(function* () {
      const [alice, bob, carol] = [yield* someone(), yield* someone(), yield* someone({ platform_admin: true })]
      const domainId = yield* domain(alice)
      const path = `/v1/admin/domain-transfers/${domainId}`
      const body = { target_email: bob.email }
      assert.deepStrictEqual(codeOf(yield* call("POST", path, bob.session, body)), [403, "forbidden"])
      const { key } = yield* (yield* ApiKeys).create(
        { accountId: carol.id, plan: "free", platformAdmin: true, via: "cookie", keyId: null, authTime: null },
        { name: "CI", permissions: ["send"] },
      )
      const byKey = { authorization: `Bearer ${key}` }
      assert.deepStrictEqual(codeOf(yield* call("POST", path, byKey, body)), [403, "forbidden"])
      const seconds = Math.floor(Date.now() / 1_000)
      const stale = yield* call("POST", path, yield* signedIn(carol.id, seconds - 310), body)
      assert.deepStrictEqual(codeOf(stale), [401, "insufficient_user_authentication"])
      assert.strictEqual(
        stale.headers.get("www-authenticate"),
        `Bearer error="insufficient_user_authentication", max_age="300"`,
      )
      assert.strictEqual((yield* call("POST", path, carol.session, {})).status, 422)
      const fresh = yield* signedIn(carol.id, seconds - 290)
      const unknown = yield* call("POST", `/v1/admin/domain-transfers/${randomUUID()}`, fresh, body)
      assert.deepStrictEqual(codeOf(unknown), [404, "not_found"])
      const nobody = yield* call("POST", path, fresh, { target_email: "nobody@example.com" })
      assert.deepStrictEqual(codeOf(nobody), [404, "target_not_found"])
      const { sql } = yield* Database
      yield* sql`update installation set state = 'held', held_since = 'epoch', held_reason = 'restored'`
      const held = yield* call("POST", path, fresh, { ...body, rotate_dkim: false })
      yield* sql`update installation set state = 'open', held_since = null, held_reason = null`
      assert.deepStrictEqual([...codeOf(held), held.headers.get("retry-after")], [503, "held", "5"])
      const forced = transferOf(yield* call("POST", path, fresh, { ...body, rotate_dkim: false }))
      assert.deepStrictEqual([forced.status, forced.cooloff_until], ["completed", null])
      assert.deepStrictEqual(codeOf(yield* call("POST", path, fresh, body)), [409, "self_transfer"])
      const keys = yield* sql`select from dkim_keys where domain_id = ${domainId}::uuid`
      assert.strictEqual(keys.length, 0)
    }))

  it.effect("CSRF: a foreign origin may do nothing with a cookie", () =>
    Effect.gen(function* () {
      const alice = yield* someone()
      const headers = { ...alice.session, origin: "https://evil.example" }
      for (const [method, path] of [["POST", by(randomUUID())], ["DELETE", `/v1/domain-transfers/${randomUUID()}`]]) {
        assert.deepStrictEqual(codeOf(yield* call(method!, path!, headers)), [403, "csrf_rejected"])
      }
    }))

  it.effect("under a key each command is done once, and answered the same whatever happens since", () =>
    Effect.gen(function* () {
      const [alice, bob, carol] = [
        yield* someone({ plan: "pro" }),
        yield* someone({ plan: "pro" }),
        yield* someone({ platform_admin: true }),
      ]
      const { sql } = yield* Database
      const key = randomUUID()
      const sent: Array<() => Effect.Effect<void, never, Server>> = []
      /** Sends a command five times at once, and remembers to send it again. */
      const once = Effect.fnUntraced(
        function* (method: string, path: string, headers: Headers, body?: unknown, other: unknown = { other: true }) {
          const keyed = { ...headers, "idempotency-key": key }
          const all = yield* Effect.all(Array.from({ length: 5 }, () => call(method, path, keyed, body)), {
            concurrency: "unbounded",
          })
          const shown = transferOf(all[0]!)
          for (const answer of all) assert.deepStrictEqual(transferOf(answer), shown)
          assert.lengthOf(all.filter((answer) => !answer.headers.has("idempotency-replayed")), 1)
          sent.push(Effect.fnUntraced(function* () {
            const again = yield* call(method, path, keyed, body)
            assert.deepStrictEqual(again.body, all[0]!.body, path)
            assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
            const reused = yield* call(method, path, keyed, other)
            if (other !== null) assert.deepStrictEqual(codeOf(reused), [409, "idempotency_key_reused"], path)
          }))
          return shown
        },
      )
      const offered = Effect.gen(function* () {
        const domainId = yield* domain(alice)
        const body = { target_email: bob.email }
        const other = { target_email: carol.email }
        return yield* once("POST", `/v1/domains/${domainId}/transfer`, alice.session, body, other)
      })
      const [first, second, third, fourth] = [yield* offered, yield* offered, yield* offered, yield* offered]
      const token = yield* tokenOf("accept", first.id)
      const byToken = yield* once(
        "POST",
        `/v1/domain-transfers/${token}/accept`,
        bob.session,
        { rotate_dkim: true },
        {},
      )
      assert.strictEqual(byToken.status, "accepted")
      const stop = yield* tokenOf("stop", first.id)
      assert.strictEqual(
        (yield* once("POST", `/v1/domain-transfers/stop/${stop}`, {}, undefined, null)).status,
        "reversed",
      )
      assert.strictEqual((yield* once("POST", by(second.id), bob.session)).status, "accepted")
      const declined = yield* once("POST", `/v1/domain-transfers/${third.id}/decline`, bob.session, undefined, null)
      assert.strictEqual(declined.status, "declined")
      const path = `/v1/domain-transfers/${fourth.id}`
      // A refusal leaves no receipt.
      const refused = yield* call("DELETE", path, { ...bob.session, "idempotency-key": key })
      assert.deepStrictEqual(codeOf(refused), [403, "forbidden"])
      assert.strictEqual((yield* once("DELETE", path, alice.session, undefined, null)).status, "cancelled")
      const forcing = [`/v1/admin/domain-transfers/${fourth.domain_id}`, { target_email: bob.email }] as const
      const forced = yield* once("POST", forcing[0], carol.session, forcing[1], { target_email: alice.email })
      assert.strictEqual(forced.status, "completed")
      // A repetition asks neither for rights nor for a fresh sign-in, unlike another key.
      const stale = yield* signedIn(carol.id, Math.floor(Date.now() / 1_000) - 310)
      const again = yield* call("POST", forcing[0], { ...stale, "idempotency-key": key }, forcing[1])
      assert.deepStrictEqual(again.body, forced)
      const unsigned = yield* call("POST", forcing[0], { ...stale, "idempotency-key": randomUUID() }, forcing[1])
      assert.deepStrictEqual(codeOf(unsigned), [401, "insufficient_user_authentication"])

      for (const repeat of sent) yield* repeat()
      const receipts = yield* sql<{ path: string }>`select path from idempotency_receipts where key = ${key}`
      assert.lengthOf(receipts, 10)
      for (const secret of [token, stop]) assert.notInclude(JSON.stringify(receipts), secret)
      const [counted] = yield* sql`
        select count(*)::int as n from audit_records where details ->> 'transfer_id' = ${first.id}`
      assert.deepStrictEqual(counted, { n: 6 }, "offered, accepted and stopped, once for each side")
      const used = yield* call("POST", path, { ...bob.session, "idempotency-key": "two words" })
      assert.strictEqual(used.status, 405)
      const faulty = yield* call("POST", `${path}/decline`, { ...bob.session, "idempotency-key": "two words" })
      assert.strictEqual(faulty.status, 422)

      yield* sql`update idempotency_receipts set created_at = created_at - interval '8 days' where key = ${key}`
      yield* pruneAccountReceipts
      assert.deepStrictEqual(yield* sql`select from idempotency_receipts where key = ${key}`, [])
    }))
})

import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Result, Schema } from "effect"
import { TestClock } from "effect/testing"
import { createHash, randomUUID } from "node:crypto"
import { type AccountId, ApiKeyId } from "../../../schemas/BrandedIds.ts"
import type { Principal } from "../../../schemas/api/CredentialsApi.ts"
import { apiKeyLimits, type Plan } from "../../../schemas/mail/MailAccount.ts"
import { ApiKeyView, CreatedApiKey } from "../../../schemas/mail/ApiKey.ts"
import { ApiKeys } from "../../../services/accounts/ApiKeys.ts"
import { Cookies } from "../../../services/authentication/Cookies.ts"
import { encode } from "../../../services/accounts/KeySecret.ts"
import { KeyUses } from "../../../services/authentication/KeyUses.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { Database } from "../../../services/platform/database/Database.ts"
import { sizeOf } from "../../support/SizeOf.ts"
import { account, ground } from "../../support/TestAccounts.ts"

const services = ApiKeys.layer.pipe(
  Layer.provideMerge(Principals.layer),
  Layer.provideMerge(KeyUses.layer),
  Layer.provide(Cookies.layer([])),
  Layer.provideMerge(ground),
)

const principalOf = (accountId: AccountId, plan: Plan): Principal["Service"] => ({
  accountId,
  plan,
  platformAdmin: false,
  via: "cookie",
  keyId: null,
  authTime: null,
})
const send = { name: "CI", permissions: ["send"] } as const
const decodeList = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(ApiKeyView)))
const bearer = (key: string) => ({ authorization: `Bearer ${key}`, cookie: undefined })

layer(services)("ApiKeys", (it) => {
  it.effect("a new key is shown once, and only its SHA-256 is stored", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { sql } = yield* Database
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const made = yield* keys.create(me, { name: "CI", permissions: ["send", "send"] })
      assert.isTrue(Schema.is(CreatedApiKey)(made))
      assert.deepStrictEqual(made.permissions, ["send"])
      assert.strictEqual(made.key.slice(7, 15), made.key_prefix)
      const [row] = yield* sql<{ text: string; hash: Uint8Array }>`
        select k::text as text, hash from api_keys k where id = ${made.id}::uuid`
      assert.notInclude(row!.text, made.key.slice(15))
      assert.strictEqual(
        Buffer.from(row!.hash).toString("hex"),
        createHash("sha256").update(made.key).digest("hex"),
      )
      const [leak] = yield* sql<{ found: boolean }>`
        select exists (select from outbox where payload like ${`%${made.key.slice(15)}%`})
          or exists (select from audit_records a where a::text like ${`%${made.key.slice(15)}%`}) as found`
      assert.isFalse(leak!.found)
    }))

  it.effect("at most 50,000 last uses wait to be written, of which the newest are kept", () =>
    Effect.gen(function* () {
      const uses = yield* KeyUses
      const { sql } = yield* Database
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const { id } = yield* (yield* ApiKeys).create(me, { name: "CI", permissions: ["send"] })
      for (let n = 0; n < 50_500; n++) yield* uses.add(ApiKeyId.make(randomUUID()))
      yield* uses.add(id)
      assert.strictEqual(yield* sizeOf("uses of keys"), 50_000)
      yield* uses.flush
      assert.strictEqual(yield* sizeOf("uses of keys"), 0)
      const [row] = yield* sql<{ used: boolean }>`
        select last_used_at is not null as used from api_keys where id = ${id}::uuid`
      assert.isTrue(row!.used)
    }))

  for (const plan of ["free", "starter", "pro", "business"] as const) {
    it.effect(`${plan}: ${apiKeyLimits[plan]} active keys, not counting revoked ones`, () =>
      Effect.gen(function* () {
        const keys = yield* ApiKeys
        const me = principalOf(yield* account({ plan }), plan)
        const made = []
        for (let i = 0; i < apiKeyLimits[plan]; i++) made.push(yield* keys.create(me, send))
        const refused = yield* Effect.flip(keys.create(me, send))
        assert.strictEqual(refused._tag === "ApiKeyLimit" ? refused.code : refused._tag, "api_key_limit")
        yield* keys.revoke(me, made[0]!.id)
        yield* keys.create(me, send)
        assert.strictEqual((yield* Effect.flip(keys.create(me, send)))._tag, "ApiKeyLimit")
      }))
  }

  it.effect("20 concurrent creations make exactly as many keys as the plan allows", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { sql } = yield* Database
      const me = principalOf(yield* account({ plan: "starter" }), "starter")
      const results = yield* Effect.all(
        Array.from({ length: 20 }, () => Effect.result(keys.create(me, send))),
        { concurrency: "unbounded" },
      )
      assert.lengthOf(results.filter(Result.isSuccess), 5)
      assert.isTrue(results.every((result) => Result.isSuccess(result) || result.failure._tag === "ApiKeyLimit"))
      assert.lengthOf(yield* sql`select from api_keys where account_id = ${me.accountId}::uuid and is_active`, 5)
    }))

  it.effect("an account's active keys are listed newest first, in the wire's shape", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { present } = yield* Principals
      const me = principalOf(yield* account({ plan: "pro" }), "pro")
      const stranger = principalOf(yield* account({ plan: "pro" }), "pro")
      const made = []
      for (const name of ["one", "two", 'three "quoted" \u{1f511}']) {
        made.push(yield* keys.create(me, { ...send, name }))
        yield* TestClock.adjust("1 second")
      }
      const foreign = yield* keys.create(stranger, send)
      yield* keys.revoke(me, made[1]!.id)
      const list = decodeList(yield* keys.list(yield* present(bearer(made[0]!.key))))
      assert.deepStrictEqual(list.map(({ id }) => id), [made[2]!.id, made[0]!.id])
      assert.strictEqual(list[0]!.name, 'three "quoted" \u{1f511}')
      assert.deepStrictEqual(list[0], {
        id: made[2]!.id,
        name: made[2]!.name,
        key_prefix: made[2]!.key_prefix,
        permissions: ["send"],
        is_active: true,
        last_used_at: null,
        created_at: made[2]!.created_at,
      })
      assert.lengthOf(decodeList(yield* keys.list(yield* present(bearer(foreign.key)))), 1)
      const empty = { via: "cookie", accountId: yield* account({ plan: "free" }), authTime: null } as const
      assert.strictEqual(yield* keys.list(empty), "[]")
    }))

  it.effect("a revoked key is refused at once, and revoking it again succeeds", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { authenticate, present } = yield* Principals
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const made = yield* keys.create(me, send)
      const credential = yield* present(bearer(made.key))
      const principal = yield* authenticate(credential)
      assert.deepStrictEqual(principal, { ...me, via: "key", keyId: made.id })
      yield* keys.revoke(me, made.id)
      assert.strictEqual((yield* Effect.flip(authenticate(credential)))._tag, "InvalidCredentials")
      assert.strictEqual((yield* Effect.flip(keys.list(credential)))._tag, "InvalidCredentials")
      yield* keys.revoke(me, made.id)
    }))

  it.effect("an unknown key and another account's key get the same 404", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const other = principalOf(yield* account({ plan: "free" }), "free")
      const theirs = yield* keys.create(other, send)
      for (const id of [theirs.id, "00000000-0000-4000-8000-000000000000"]) {
        assert.strictEqual((yield* Effect.flip(keys.revoke(me, ApiKeyId.make(id))))._tag, "ApiKeyNotFound")
      }
      const { authenticate, present } = yield* Principals
      yield* authenticate(yield* present(bearer(theirs.key)))
    }))

  it.effect("a disabled or removed account is refused by key and by cookie, and makes no key", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { authenticate, present } = yield* Principals
      const { sql } = yield* Database
      for (const change of ["status = 'disabled'", "removed = true"]) {
        const me = principalOf(yield* account({ plan: "free" }), "free")
        const credential = yield* present(bearer((yield* keys.create(me, send)).key))
        yield* sql`update accounts set ${sql.literal(change)} where id = ${me.accountId}::uuid`
        assert.strictEqual((yield* Effect.flip(authenticate(credential)))._tag, "InvalidCredentials")
        const session = { via: "cookie", accountId: me.accountId, authTime: null } as const
        assert.strictEqual((yield* Effect.flip(authenticate(session)))._tag, "InvalidCredentials")
        assert.strictEqual((yield* Effect.flip(keys.create(me, send)))._tag, "InvalidCredentials")
      }
    }))

  it.effect("only a well-formed key in a Bearer header is a credential", () =>
    Effect.gen(function* () {
      const { present } = yield* Principals
      const key = `mail_k_${"a".repeat(43)}`
      assert.strictEqual((yield* present({ authorization: `bearer  ${key}`, cookie: "x" })).via, "key")
      for (
        const authorization of [
          "",
          key,
          `Basic ${key}`,
          `Bearer ${key}a`,
          `Bearer ${key.slice(1)}`,
          `Bearer eyJhbGciOiJub25lIn0.e30.`,
          `Bearer ${key} ${key}`,
          `Bearer ${key.slice(0, -1)}-`,
        ]
      ) {
        const refused = yield* Effect.flip(present({ authorization, cookie: undefined }))
        assert.strictEqual(refused._tag, "InvalidCredentials", authorization)
      }
    }))

  it.effect("last_used_at is written after the requests, exact to a minute", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const uses = yield* KeyUses
      const { authenticate, present } = yield* Principals
      const { sql } = yield* Database
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const made = yield* keys.create(me, send)
      const credential = yield* present(bearer(made.key))
      const used = Effect.map(
        sql<{ at: Date | null }>`select last_used_at as at from api_keys where id = ${made.id}::uuid`,
        ([row]) => row!.at?.getTime() ?? null,
      )
      const start = Date.parse(made.created_at)
      yield* authenticate(credential)
      assert.isNull(yield* used)
      yield* uses.flush
      assert.strictEqual(yield* used, start)
      yield* TestClock.adjust("20 seconds")
      yield* authenticate(credential)
      yield* uses.flush
      assert.strictEqual(yield* used, start)
      yield* TestClock.adjust("40 seconds")
      yield* keys.list(credential)
      yield* uses.flush
      assert.strictEqual(yield* used, start + 60_000)
    }))

  it.effect("each change of a key is audited and announced to the account, in its transaction", () =>
    Effect.gen(function* () {
      const keys = yield* ApiKeys
      const { sql } = yield* Database
      const me = principalOf(yield* account({ plan: "free" }), "free")
      const made = yield* keys.create(me, { ...send, name: "secret project" })
      yield* keys.revoke(me, made.id)
      yield* keys.revoke(me, made.id)
      const audit = yield* sql`
        select action, actor from audit_records where subject = ${`api-key:${made.id}`} order by id`
      assert.deepStrictEqual(audit.map(({ action, actor }) => [action, actor]), [
        ["api-key.created", `account:${me.accountId}`],
        ["api-key.revoked", `account:${me.accountId}`],
      ])
      const told = yield* sql<{ stream: string; payload: string }>`
        select stream, payload from outbox where subject = ${`notifications.v1.${me.accountId}.alerts`} order by id`
      assert.deepStrictEqual(told.map(({ stream, payload }) => [stream, JSON.parse(payload).title]), [
        ["NOTIFICATIONS", "API key created"],
        ["NOTIFICATIONS", "API key revoked"],
      ])
      assert.isFalse(told.some(({ payload }) => payload.includes("secret project")))
    }))

  it("256 bits fill 43 base62 digits", () => {
    assert.strictEqual(encode(new Uint8Array(32)), "0".repeat(43))
    assert.match(encode(new Uint8Array(32).fill(255)), /^[0-9A-Za-z]{43}$/)
    const value = [...encode(Uint8Array.from({ length: 32 }, (_, i) => i + 1))].reduce(
      (sum, digit) =>
        sum * 62n +
        BigInt("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(digit)),
      0n,
    )
    assert.strictEqual(value.toString(16).padStart(64, "0").slice(0, 8), "01020304")
  })
})

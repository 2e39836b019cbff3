/**
 * API keys (docs/api/mail.md). A key is shown once; only its SHA-256 is stored. The plan's limit counts active keys and
 * is exact under concurrent creates, because each create locks the account's row from its count to its commit.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { type AccountId, ApiKeyId } from "../../schemas/BrandedIds.ts"
import { decisionMessage } from "../../schemas/bus/Decisions.ts"
import type { Credential, Principal } from "../../schemas/api/CredentialsApi.ts"
import { apiKeyLimits, type Plan } from "../../schemas/mail/MailAccount.ts"
import type { CreatedApiKey, Permission } from "../../schemas/mail/ApiKey.ts"
import { ApiKeyLimit, ApiKeyNotFound } from "../../schemas/problems/AccountProblems.ts"
import { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { Audit } from "../platform/observability/Audit.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { Outbox } from "../platform/messaging/Outbox.ts"
import { keyNotices } from "./KeyNotices.ts"
import { newKey } from "./KeySecret.ts"
import { hashOf, Principals, whoText } from "../authentication/Principals.ts"

export interface NewApiKey {
  readonly name: string
  readonly permissions: ReadonlyArray<Permission>
}

/** A row of the list; all columns from `id` on are null where the account has no active key. */
type ListedKey = readonly [
  usedKeyId: ApiKeyId | null,
  id: string | null,
  name: string,
  keyPrefix: string,
  permissions: ReadonlyArray<string>,
  createdAt: Date,
  lastUsedAt: Date | null,
]

/** The JSON is made here: PostgreSQL's row_to_json and to_char took more time than the rest of the statement. */
const listing = (via: Credential["Service"]["via"]) =>
  `select who.key_id as used_key_id, k.id, k.name, k.key_prefix, k.permissions, k.created_at, k.last_used_at
  from (${whoText(via)}) who left join api_keys k on k.account_id = who.account_id and k.is_active
  order by k.created_at desc, k.id desc`

const listByKey = listing("key")
const listByCookie = listing("cookie")

const listed = ([, id, name, keyPrefix, permissions, createdAt, lastUsedAt]: ListedKey) =>
  `{"id":"${id}","name":${JSON.stringify(name)},"key_prefix":"${keyPrefix}",` +
  `"permissions":${JSON.stringify(permissions)},"created_at":"${createdAt.toISOString()}","is_active":true,` +
  `"last_used_at":${lastUsedAt === null ? "null" : `"${lastUsedAt.toISOString()}"`}}`

export class ApiKeys extends Context.Service<ApiKeys, {
  /** Makes a key for the principal's account. Only this answer holds the secret in clear. */
  readonly create: (
    principal: Principal["Service"],
    key: NewApiKey,
  ) => Effect.Effect<CreatedApiKey & { readonly key: string }, ApiKeyLimit | InvalidCredentials>
  /** The active keys of the credential's account, newest first, as JSON text of an array of `ApiKeyView`. */
  readonly list: (credential: Credential["Service"]) => Effect.Effect<string, InvalidCredentials>
  /** Revokes a key of the principal's account for good. May be repeated. */
  readonly revoke: (principal: Principal["Service"], keyId: ApiKeyId) => Effect.Effect<void, ApiKeyNotFound>
}>()("bailiwick/services/accounts/ApiKeys") {
  static readonly layer = Layer.effect(
    ApiKeys,
    Effect.gen(function* () {
      const { reads, sql } = yield* Database
      const audit = yield* Audit
      const outbox = yield* Outbox
      const principals = yield* Principals
      const notices = yield* keyNotices

      // The account's row stays locked until the commit, so the next create counts this key.
      const room = Effect.fnUntraced(function* (accountId: AccountId) {
        const [account] = yield* sql<{ plan: Plan }>`
          select plan from accounts
          where id = ${accountId}::uuid and status = 'active' and not removed for no key update`
        if (account === undefined) return yield* new InvalidCredentials()
        const [active] = yield* sql<{ keys: number }>`
          select count(*)::int as keys from api_keys where account_id = ${accountId}::uuid and is_active`
        const limit = apiKeyLimits[account.plan]
        if (active!.keys >= limit) {
          return yield* new ApiKeyLimit({ detail: `The plan ${account.plan} allows ${limit} active API keys.` })
        }
      })

      const create = Effect.fn("ApiKeys.create")(
        function* ({ accountId }: Principal["Service"], { name, permissions }: NewApiKey) {
          yield* room(accountId)
          const now = new Date(yield* Clock.currentTimeMillis)
          const id = ApiKeyId.make(yield* (yield* Ids).next)
          const { key, prefix } = yield* newKey
          const granted = [...new Set(permissions)]
          yield* sql`insert into api_keys (id, account_id, name, hash, key_prefix, permissions, is_active, created_at)
            values (${id}::uuid, ${accountId}::uuid, ${name}, ${hashOf(key)}, ${prefix},
              array(select jsonb_array_elements_text(${sql.json(granted)})), true, ${now})`
          yield* audit.append({
            action: "api-key.created",
            actor: `account:${accountId}`,
            subject: `api-key:${id}`,
            outcome: "done",
          })
          yield* notices.created(accountId, prefix)
          return { id, name, key, key_prefix: prefix, permissions: granted, created_at: now.toISOString() }
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
      )

      // A hot read: Effect.fn would take a stack trace at each call.
      const list = Effect.fnUntraced(function* (credential: Credential["Service"]) {
        const [text, sent] = credential.via === "key"
          ? [listByKey, credential.hash]
          : [listByCookie, credential.accountId]
        const rows = (yield* Effect.orDie(reads.unsafe(text, [sent]).values)) as ReadonlyArray<ListedKey>
        yield* principals.seen(rows[0] === undefined ? undefined : { key_id: rows[0][0] })
        return `[${rows.flatMap((row) => row[1] === null ? [] : [listed(row)]).join(",")}]`
      })

      const revoke = Effect.fn("ApiKeys.revoke")(
        function* ({ accountId }: Principal["Service"], keyId: ApiKeyId) {
          const now = new Date(yield* Clock.currentTimeMillis)
          const [ended] = yield* sql<{ key_prefix: string }>`
            update api_keys set is_active = false, revoked_at = ${now}
            where id = ${keyId}::uuid and account_id = ${accountId}::uuid and is_active
            returning key_prefix`
          if (ended === undefined) {
            const [known] = yield* sql`
              select from api_keys where id = ${keyId}::uuid and account_id = ${accountId}::uuid`
            return known === undefined ? yield* new ApiKeyNotFound() : undefined
          }
          yield* audit.append({
            action: "api-key.revoked",
            actor: `account:${accountId}`,
            subject: `api-key:${keyId}`,
            outcome: "done",
          })
          yield* outbox.add(decisionMessage({
            kind: "api_key",
            id: keyId,
            account_id: accountId,
            revoked_at: now.toISOString(),
          }))
          yield* notices.revoked(accountId, ended.key_prefix)
        },
        sql.withTransaction,
        Effect.catchTag("SqlError", Effect.die),
      )

      return ApiKeys.of({ create, list, revoke })
    }),
  )
}

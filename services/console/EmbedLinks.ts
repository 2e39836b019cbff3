/**
 * Links by which a product shows its users their webhooks in a frame. An API key makes a link; its token opens one
 * session, once, before it expires. The session speaks for the key's account, reaches `embeddedRoutes` alone, and lasts
 * an hour.
 *
 * Both are 256 random bits that no row holds: a row has their SHA-256. A session ends with its key, with its account, and
 * with a new epoch after a restore; each request reads the row again, so an end holds from its commit on.
 */
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { createHash, randomBytes } from "node:crypto"
import type { AccountId, ApiKeyId } from "../../schemas/BrandedIds.ts"
import { InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { prune } from "../platform/database/Prune.ts"
import { Ids } from "../platform/Ids.ts"
import { Audit } from "../platform/observability/Audit.ts"

const tokenFormat = /^mail_l_[A-Za-z0-9_-]{43}$/
const sessionFormat = /^bearer +(mail_e_[A-Za-z0-9_-]{43})$/i

/** Milliseconds for which a session lasts. */
export const embeddedMillis = 3_600_000

const hashOf = (text: string): Uint8Array => new Uint8Array(createHash("sha256").update(text).digest())
const random = (prefix: string) => prefix + randomBytes(32).toString("base64url")

/** The templates of the paths that an embedded session may ask. */
const embeddedRoutes: ReadonlySet<string> = new Set([
  "/v1/webhooks/",
  "/v1/webhooks/{webhook_id}",
  "/v1/webhooks/{webhook_id}/rotate-secret",
  "/v1/webhooks/{webhook_id}/test",
  "/v1/webhooks/{webhook_id}/replay",
  "/v1/webhooks/{webhook_id}/stats",
  "/v1/webhooks/{webhook_id}/deliveries",
  "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
  "/v1/webhook-deliveries",
  "/v1/webhook-deliveries/{delivery_id}",
  "/v1/webhook-deliveries/{delivery_id}/replay",
  "/v1/webhook-deliveries/{delivery_id}/retry",
  "/v1/webhook-deliveries/{delivery_id}/cancel",
  "/v1/webhook-stats",
  "/v1/webhook-stats/hours",
  "/v1/event-types",
])

export const reachesEmbedded = (route: string | null): boolean => route !== null && embeddedRoutes.has(route)

/** The session token of an Authorization header; null where it holds another credential. */
export const embedTokenOf = (authorization: string | undefined): string | null =>
  authorization === undefined ? null : sessionFormat.exec(authorization)?.[1] ?? null

export interface EmbedSession {
  readonly id: string
  readonly accountId: AccountId
  /** In milliseconds since the epoch. */
  readonly endsAt: number
}

export class EmbedLinks extends Context.Service<EmbedLinks, {
  /** Makes a link for the account of an API key; `expiresAt` in milliseconds since the epoch. */
  readonly create: (
    by: { readonly accountId: AccountId; readonly keyId: ApiKeyId },
    seconds: number,
  ) => Effect.Effect<{ readonly token: Redacted.Redacted; readonly expiresAt: number }>
  /** Opens the session of a link, once. */
  readonly open: (
    token: string,
  ) => Effect.Effect<{ readonly session: EmbedSession; readonly token: Redacted.Redacted }, InvalidCredentials>
  /** The live session of a token that `open` gave. */
  readonly find: (token: string) => Effect.Effect<EmbedSession, InvalidCredentials>
}>()("bailiwick/services/console/EmbedLinks") {
  static readonly layer = Layer.suspend(() => Layer.effect(EmbedLinks, make))
}

/** Rows of one statement of a pruning. */
const batch = 1_000

/** Deletes links that were not used in time, and sessions that have ended. Returns how many went. */
export const pruneEmbedLinks = Effect.gen(function* () {
  const { sql } = yield* Database
  const now = new Date(yield* Clock.currentTimeMillis)
  const ends = sql`coalesce(session_ends_at, expires_at)`
  return yield* prune(sql, { table: "embed_links", where: sql`${ends} <= ${now}`, order: ends, batch })
}).pipe(Effect.withSpan("EmbedLinks.prune"))

const make = Effect.gen(function* () {
  const { reads, sql } = yield* Database
  const audit = yield* Audit

  const record = (accountId: AccountId, action: string, id: string) =>
    audit.append({ action, actor: `account:${accountId}`, subject: `embed-link:${id}`, outcome: "done" })

  const create: EmbedLinks["Service"]["create"] = Effect.fn("EmbedLinks.create")(
    function* ({ accountId, keyId }, seconds) {
      const now = yield* Clock.currentTimeMillis
      const id = yield* (yield* Ids).next
      const token = random("mail_l_")
      const expiresAt = now + seconds * 1_000
      yield* sql`insert into embed_links (id, account_id, key_id, token_hash, created_at, expires_at)
        values (${id}::uuid, ${accountId}::uuid, ${keyId}::uuid, ${hashOf(token)}, ${new Date(now)},
          ${new Date(expiresAt)})`
      yield* record(accountId, "embed-link.created", id)
      return { token: Redacted.make(token, { label: "embed link" }), expiresAt }
    },
    sql.withTransaction,
    Effect.orDie,
  )

  const open: EmbedLinks["Service"]["open"] = Effect.fn("EmbedLinks.open")(
    function* (token) {
      if (!tokenFormat.test(token)) return yield* new InvalidCredentials()
      const now = yield* Clock.currentTimeMillis
      const session = random("mail_e_")
      const endsAt = now + embeddedMillis
      const [row] = yield* sql<{ id: string; account_id: AccountId }>`
        update embed_links l set session_hash = ${hashOf(session)}, session_ends_at = ${new Date(endsAt)}
        from api_keys k join accounts a on a.id = k.account_id
        where l.token_hash = ${hashOf(token)} and l.session_hash is null and l.expires_at > ${new Date(now)}
          and k.id = l.key_id and k.is_active and a.status = 'active' and not a.removed
          and not coalesce((select sessions_before from installation) >= l.created_at, false)
        returning l.id::text, l.account_id::text`
      if (row === undefined) return yield* new InvalidCredentials()
      yield* record(row.account_id, "embed-session.opened", row.id)
      const opened = { id: row.id, accountId: row.account_id, endsAt }
      return { session: opened, token: Redacted.make(session, { label: "embed session" }) }
    },
    sql.withTransaction,
    Effect.catchTag("SqlError", Effect.die),
  )

  const find: EmbedLinks["Service"]["find"] = Effect.fn("EmbedLinks.find")(function* (token) {
    const now = new Date(yield* Clock.currentTimeMillis)
    const [row] = yield* reads<{ id: string; account_id: AccountId; session_ends_at: Date }>`
      select l.id::text, l.account_id::text, l.session_ends_at
      from embed_links l join api_keys k on k.id = l.key_id
      where l.session_hash = ${hashOf(token)} and l.session_ends_at > ${now} and k.is_active
        and not coalesce((select sessions_before from installation) >= l.created_at, false)`.pipe(Effect.orDie)
    if (row === undefined) return yield* new InvalidCredentials()
    return { id: row.id, accountId: row.account_id, endsAt: row.session_ends_at.getTime() }
  })

  return EmbedLinks.of({ create, open, find })
})

/**
 * Authenticates the callers of the mail API. Nothing is kept between requests: once any process has revoked a key or
 * disabled an account, it is refused from the next statement on.
 */
import type { PgClient } from "@effect/sql-pg"
import { Context, Effect, Layer } from "effect"
import { createHash } from "node:crypto"
import type { AccountId, ApiKeyId } from "../../schemas/BrandedIds.ts"
import type { Credential, Principal } from "../../schemas/api/CredentialsApi.ts"
import type { Plan } from "../../schemas/mail/MailAccount.ts"
import { type DependencyUnavailable, InvalidCredentials } from "../../schemas/problems/HttpProblems.ts"
import { Database } from "../platform/database/Database.ts"
import { Cookies } from "./Cookies.ts"
import { KeyUses } from "./KeyUses.ts"

const keyFormat = /^mail_k_[0-9A-Za-z]{43}$/
const bearer = /^bearer +(\S+)$/i

/** The hash under which an API key is stored. */
export const hashOf = (key: string): Uint8Array => new Uint8Array(createHash("sha256").update(key).digest())

const account = "a.id as account_id, a.plan, a.platform_admin"

/** The statement of `who` as a constant text; its first parameter is the key's hash or the account's id. */
export const whoText = (via: Credential["Service"]["via"]): string =>
  via === "key"
    ? `select ${account}, k.id as key_id from api_keys k join accounts a on a.id = k.account_id
        where k.hash = $1 and k.is_active and a.status = 'active' and not a.removed`
    : `select ${account}, null::uuid as key_id from accounts a
        where a.id = $1::uuid and a.status = 'active' and not a.removed`

/**
 * SQL that selects `account_id, plan, platform_admin, key_id` of the active account behind a credential, or no row:
 * `with who as (${who(reads, credential)}) select … from who`. The caller hands the row to `Principals.seen`.
 */
export const who = (sql: PgClient.PgClient, credential: Credential["Service"]) =>
  credential.via === "key"
    ? sql`select a.id as account_id, a.plan, a.platform_admin, k.id as key_id
        from api_keys k join accounts a on a.id = k.account_id
        where k.hash = ${credential.hash} and k.is_active and a.status = 'active' and not a.removed`
    : sql`select a.id as account_id, a.plan, a.platform_admin, null::uuid as key_id
        from accounts a
        where a.id = ${credential.accountId}::uuid and a.status = 'active' and not a.removed`

/** The credentials of a request: the values of the Authorization header and of the session cookie, where present. */
export interface Sent {
  readonly authorization: string | undefined
  readonly cookie: string | undefined
}

export class Principals extends Context.Service<Principals, {
  /** Parses the credentials, and verifies a cookie's signature; asks no database. */
  readonly present: (
    sent: Sent,
  ) => Effect.Effect<Credential["Service"], InvalidCredentials | DependencyUnavailable>
  /** The active account behind a credential, in one statement. */
  readonly authenticate: (credential: Credential["Service"]) => Effect.Effect<Principal["Service"], InvalidCredentials>
  /** Checks the row of a statement that joined `who`: no row is a refusal, a key's row is noted as a use of the key. */
  readonly seen: <A extends { readonly key_id: ApiKeyId | null }>(
    row: A | undefined,
  ) => Effect.Effect<A, InvalidCredentials>
}>()("bailiwick/services/authentication/Principals") {
  static readonly layer = Layer.effect(
    Principals,
    Effect.gen(function* () {
      const { reads } = yield* Database
      const cookies = yield* Cookies
      const uses = yield* KeyUses
      const refused = Effect.fail(new InvalidCredentials())

      // Runs for each request: Effect.fn would take a stack trace at each call.
      const present = Effect.fnUntraced(
        function* ({ authorization, cookie }: Sent): Effect.fn.Return<
          Credential["Service"],
          InvalidCredentials | DependencyUnavailable
        > {
          if (authorization !== undefined) {
            const key = bearer.exec(authorization)?.[1]
            if (key === undefined || !keyFormat.test(key)) return yield* refused
            return { via: "key", hash: hashOf(key) }
          }
          if (cookie === undefined || cookie === "") return yield* refused
          return { via: "cookie", ...(yield* cookies.verify(cookie)) }
        },
      )

      const seen = <A extends { readonly key_id: ApiKeyId | null }>(row: A | undefined) =>
        row === undefined ? refused : row.key_id === null ? Effect.succeed(row) : Effect.as(uses.add(row.key_id), row)

      const authenticate = Effect.fn("Principals.authenticate")(
        function* (credential: Credential["Service"]) {
          const [row] = yield* reads<
            { account_id: AccountId; plan: Plan; platform_admin: boolean; key_id: ApiKeyId | null }
          >`
            with who as (${who(reads, credential)})
            select account_id::text, plan, platform_admin, key_id::text from who`.pipe(Effect.orDie)
          const found = yield* seen(row)
          return {
            accountId: found.account_id,
            plan: found.plan,
            platformAdmin: found.platform_admin,
            via: credential.via,
            keyId: found.key_id,
            authTime: credential.via === "cookie" ? credential.authTime : null,
          }
        },
      )

      return Principals.of({ present, authenticate, seen })
    }),
  )
}

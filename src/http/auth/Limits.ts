/**
 * Rate limits per minute: of a principal on the identity API, of an account on the mail API. A write counts once for
 * each 16 KiB of its body, or part of it, since the cost of a refusal grows with the body.
 */
import { Context, Effect, Layer } from "effect"
import type { HttpServerRequest } from "effect/http"
import type { AccountId } from "../../../schemas/BrandedIds.ts"
import { type Credential } from "../../../schemas/api/CredentialsApi.ts"
import { type InvalidCredentials, RateLimited } from "../../../schemas/problems/HttpProblems.ts"
import { Principals } from "../../../services/authentication/Principals.ts"
import { BoundedMap } from "../../../services/platform/BoundedMap.ts"
import { counted } from "../../../services/platform/MapSizes.ts"
import { RateLimits } from "../../../services/platform/security/RateLimits.ts"
import { maxBody } from "../edge/Body.ts"
import { actsAs, chargedTo } from "../edge/RequestActor.ts"

/** Requests a minute; 0: no limit. */
export interface Rates {
  readonly writes: number
  readonly reads: number
}

type Request = HttpServerRequest.HttpServerRequest

const windowMillis = 60_000
const portion = 16 * 1_024

/** How many requests a request counts as. A body without a stated length counts as the longest allowed. */
const weightOf = ({ headers }: Request): number => {
  const bytes = headers["transfer-encoding"] === undefined ? Number(headers["content-length"] ?? 0) : maxBody
  return Math.max(1, Math.ceil(Math.min(bytes, maxBody) / portion))
}

/** Counts a request against its principal's limit; returns the refusal beyond the limit. */
const counting = (api: "management" | "mail", limits: RateLimits["Service"], rates: Rates) =>
  Effect.fnUntraced(function* (principal: string, request: Request, follows = false) {
    const isRead = request.method === "GET" || request.method === "HEAD"
    const kind = follows ? "follows" : isRead ? "reads" : "writes"
    const limit = kind === "writes" ? rates.writes : rates.reads
    if (limit === 0) return undefined
    const tokens = isRead ? 1 : weightOf(request)
    const bucket = { key: `${api}.${kind}:${principal}`, limit, windowMillis }
    const seconds = yield* Effect.orDie(limits.spend(bucket, tokens))
    return seconds === 0
      ? undefined
      : new RateLimited({ retry_after: seconds, limit, window_seconds: windowMillis / 1_000 })
  })

/** The limits of the identity API. Requests with `follows` have a limit of their own, as large as that of reads. */
export const spending = (limits: RateLimits["Service"], rates: Rates) => {
  const count = counting("management", limits, rates)
  return Effect.fnUntraced(function* (principal: string, request: Request, follows?: boolean) {
    const refusal = yield* count(principal, request, follows)
    if (refusal !== undefined) return yield* refusal
  })
}

type Refusal<E = never> = Effect.Effect<RateLimited | undefined, E>

/** The most keys whose account is remembered; the oldest are forgotten first. */
const maxRemembered = 10_000

/** The limits of the mail API. */
export interface Accounts {
  /** Counts a request of an account; returns the refusal beyond the limit. */
  readonly count: (accountId: AccountId, request: Request) => Refusal
  /** `count` for a credential that is not checked yet: the read's own statement checks it. */
  readonly countFor: (credential: Credential["Service"], request: Request) => Refusal<InvalidCredentials>
  /** Call where the credential was refused: its account is not charged for it again. */
  readonly forget: (credential: Credential["Service"]) => void
  /** Marks a request as counted that is about to run again on the ordinary path. */
  readonly counted: (request: Request) => void
}

const none: Accounts = {
  count: () => Effect.succeed(undefined),
  countFor: () => Effect.succeed(undefined),
  forget: () => {},
  counted: () => {},
}

/** Without its layer there are no limits. */
export class AccountLimits
  extends Context.Reference<Accounts>("bailiwick/http/auth/Limits/AccountLimits", { defaultValue: () => none }) {
  static readonly layer = (rates: Rates) =>
    Layer.effect(
      AccountLimits,
      Effect.gen(function* () {
        const principals = yield* Principals
        const spend = counting("mail", yield* RateLimits, rates)
        // A key belongs to one account for good, so this map is never out of date. It only decides which account is
        // charged.
        const remembered = new BoundedMap<string, AccountId>(maxRemembered)
        yield* counted("accounts of keys", () => remembered.size)
        const again = new WeakSet<object>()
        const nameOf = (hash: Uint8Array) => String.fromCharCode(...hash)

        const accountOf = Effect.fnUntraced(function* (credential: Credential["Service"]) {
          if (credential.via === "cookie") return credential.accountId
          const name = nameOf(credential.hash)
          const known = remembered.get(name)
          if (known !== undefined) return known
          const { accountId } = yield* principals.authenticate(credential)
          remembered.set(name, accountId)
          return accountId
        })

        const count = (accountId: AccountId, request: Request) =>
          again.has(request.source) ? Effect.succeed(undefined) : spend(`account:${accountId}`, request)

        return {
          count,
          countFor: Effect.fnUntraced(function* (credential: Credential["Service"], request: Request) {
            if (rates.reads === 0 && rates.writes === 0) return undefined
            const accountId = yield* accountOf(credential)
            yield* chargedTo(`account:${accountId}`)
            const refusal = yield* count(accountId, request)
            if (refusal !== undefined) yield* actsAs(`account:${accountId}`)
            return refusal
          }),
          forget: (credential) => {
            if (credential.via === "key") remembered.delete(nameOf(credential.hash))
          },
          counted: (request) => {
            again.add(request.source)
          },
        }
      }),
    )
}

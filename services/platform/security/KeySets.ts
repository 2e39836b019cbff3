/**
 * The public keys of issuers. A set is fetched when first needed, kept ten minutes, and fetched again before that for a
 * token whose key it lacks, at most once in 30 s (5 s after a failure), so that neither a rotation nor a flood of
 * made-up key ids hurts. While an issuer does not answer, the known set stays in use. One fetch at a time for each
 * issuer: a token whose key is missing waits for it and uses its result, all other tokens use the known set.
 */
import { Clock, Effect, Option, Ref, Schema, Semaphore } from "effect"
import {
  createLocalJWKSet,
  decodeJwt,
  errors,
  type JSONWebKeySet,
  jwtVerify,
  type JWTVerifyOptions,
  type JWTVerifyResult,
  type LocalJWKSet,
} from "jose"
import { DependencyUnavailable } from "../../../schemas/problems/HttpProblems.ts"
import { Outbound } from "../Outbound.ts"

const kept = 600_000
const cooldown = 30_000
const afterFailure = 5_000

const KeySet = Schema.Struct({ keys: Schema.Array(Schema.Record(Schema.String, Schema.Unknown)) })
const decode = Schema.decodeUnknownEffect(KeySet)

export interface KeySource {
  /** The known set, fetched first where there is none or it is too old. */
  readonly current: Effect.Effect<LocalJWKSet, DependencyUnavailable>
  /** A set newer than the one that lacked a key, or null where it is too early to fetch again. */
  readonly renewed: Effect.Effect<LocalJWKSet | null, DependencyUnavailable>
}

/** Keys that never change while this process lives: the embedded issuer's. */
export const fixedKeys = (keys: JSONWebKeySet): KeySource => {
  const set = createLocalJWKSet(keys)
  return { current: Effect.succeed(set), renewed: Effect.succeed(null) }
}

/** Keys behind `jwks_uri`; `fetch` returns the parsed body. */
export const fetchedKeys = Effect.fnUntraced(function* <E>(fetch: Effect.Effect<unknown, E>) {
  const state = yield* Ref.make<{ readonly set: LocalJWKSet | null; readonly askedAt: number }>({
    set: null,
    askedAt: -Infinity,
  })
  const one = yield* Semaphore.make(1)
  const unavailable = new DependencyUnavailable({ detail: "The issuer's keys cannot be had now." })

  const ask = Effect.fnUntraced(function* () {
    const before = yield* Ref.get(state)
    // A caller that waited for the same fetch uses its result.
    if ((yield* Clock.currentTimeMillis) - before.askedAt < cooldown) return before.set
    const { keys } = yield* fetch.pipe(
      Effect.flatMap(decode),
      Effect.tapError((error) => Effect.logWarning("The keys of an issuer cannot be had", error)),
      Effect.orElseSucceed(() => ({ keys: null })),
    )
    const set = keys === null
      ? before.set
      : createLocalJWKSet({ keys: keys.map((key) => ({ ...key })) } as JSONWebKeySet)
    // Counted from the end of the fetch: an issuer that hangs for long is not asked again by each waiting caller.
    const now = yield* Clock.currentTimeMillis
    yield* Ref.set(state, { set, askedAt: keys === null ? now - cooldown + afterFailure : now })
    return set
  })

  const current = Effect.gen(function* () {
    const { set, askedAt } = yield* Ref.get(state)
    if (set !== null && (yield* Clock.currentTimeMillis) - askedAt < kept) return set
    if (set === null) return (yield* one.withPermit(ask())) ?? (yield* unavailable)
    return Option.getOrNull(yield* one.withPermitsIfAvailable(1)(ask())) ?? set
  })
  const renewed = Effect.gen(function* () {
    const { askedAt } = yield* Ref.get(state)
    if ((yield* Clock.currentTimeMillis) - askedAt < cooldown) return null
    return (yield* one.withPermit(ask())) ?? (yield* unavailable)
  })
  return { current, renewed } satisfies KeySource
})

/** Keys at a URL of the operator's configuration. */
export const keysAt = Effect.fnUntraced(function* (jwksUri: string) {
  const outbound = yield* Outbound
  return yield* fetchedKeys(
    outbound.ask(jwksUri, { trusted: true, headers: { accept: "application/json" } }).pipe(
      Effect.flatMap(({ body, status }) =>
        status === 200
          ? Effect.try({ try: () => JSON.parse(new TextDecoder().decode(body)) as unknown, catch: () => "not JSON" })
          : Effect.fail(`status ${status}`)
      ),
    ),
  )
})

/** The issuer that a token names, not verified yet; null where it names none. */
export const issuerOf = (token: string): string | null => {
  try {
    return decodeJwt(token).iss ?? null
  } catch {
    return null
  }
}

/** Why a token is refused. `refused`: for anything but its key, algorithm and signature. */
export type TokenFault = "unknown key" | "wrong algorithm" | "wrong signature" | "refused"

const faultOf = (cause: unknown): TokenFault => {
  if (cause instanceof errors.JWKSNoMatchingKey || cause instanceof errors.JWKSMultipleMatchingKeys) {
    return "unknown key"
  }
  if (cause instanceof errors.JOSEAlgNotAllowed) return "wrong algorithm"
  return cause instanceof errors.JWSSignatureVerificationFailed ? "wrong signature" : "refused"
}

/**
 * A token's header and claims, verified by a key of the source and by `options` (at Effect's Clock), or why the token
 * is refused. A key that the known set lacks is fetched once. DependencyUnavailable only where no set was ever fetched.
 */
export const judged = Effect.fnUntraced(function* (
  token: string,
  source: KeySource,
  options: Omit<JWTVerifyOptions, "currentDate">,
) {
  const currentDate = new Date(yield* Clock.currentTimeMillis)
  const by = (set: LocalJWKSet) =>
    Effect.tryPromise({ try: () => jwtVerify(token, set, { ...options, currentDate }), catch: (cause) => cause }).pipe(
      Effect.catch((cause) => Effect.succeed(faultOf(cause))),
    )
  let found: JWTVerifyResult | TokenFault = yield* by(yield* source.current)
  if (found === "unknown key") {
    const renewed = yield* source.renewed
    if (renewed !== null) found = yield* by(renewed)
  }
  return found
})

/** The same for callers who need not know why a token is refused: null. */
export const verified = Effect.fnUntraced(function* (
  token: string,
  source: KeySource,
  options: Omit<JWTVerifyOptions, "currentDate">,
) {
  const found = yield* judged(token, source, options)
  return typeof found === "string" ? null : found
})

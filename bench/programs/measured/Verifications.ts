/**
 * Verifies access tokens, each a different one: by the program's own verifier, which has cached none or all of them, or
 * by bare jose. An order is a line of JSON; so many at a time.
 */
import "../../../src/process/HideAsyncHooks.ts"
import { Effect, References } from "effect"
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose"
import process from "node:process"
import { createInterface } from "node:readline"
import { accessTokens } from "../../../services/people/AccessTokens.ts"
import { fixedKeys } from "../../../services/platform/security/KeySets.ts"
import { issuer } from "../../harness/IdentityFixture.ts"
import type { Algorithm } from "../../harness/PeopleTokens.ts"
import { say, variable } from "../ChildProtocol.ts"
import { signer } from "../load/SignTokens.ts"

export type Way = "first seen" | "seen before" | "bare jose"

export interface Order {
  readonly alg: Algorithm
  readonly way: Way
  /** How many of the tokens, and how many times. */
  readonly tokens: number
  readonly times: number
}

const atOnce = 32
const jwks = JSON.parse(variable("JWKS")) as JSONWebKeySet
const keys = JSON.parse(variable("KEYS")) as Readonly<Record<Algorithm, Parameters<typeof signer>[0]>>
const count = Number(variable("TOKENS"))

const made = async (alg: Algorithm) => {
  const sign = await signer(keys[alg])
  const tokens: Array<string> = []
  for (let n = 0; n < count; n++) tokens.push(await sign(`person-${n}`))
  return tokens
}
const all: Readonly<Record<Algorithm, ReadonlyArray<string>>> = {
  RS256: await made("RS256"),
  ES256: await made("ES256"),
}

const source = fixedKeys(jwks)
const fresh = () =>
  Effect.runSync(Effect.scoped(accessTokens({ audience: "service-management", issuers: () => ({ keys: source }) })))
/** As in the program without a collector. */
const run = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.runPromise(Effect.provideService(effect, References.TracerEnabled, false))

const set = createLocalJWKSet(jwks)
const options = {
  issuer,
  audience: "service-management",
  typ: "at+jwt",
  algorithms: ["RS256", "ES256"],
  clockTolerance: 60,
  requiredClaims: ["iss", "aud", "exp", "iat", "jti", "client_id", "sub"],
}

const inParallel = async (tokens: ReadonlyArray<string>, verify: (token: string) => Promise<unknown>) => {
  let next = 0
  const worker = async () => {
    for (let n = next++; n < tokens.length; n = next++) await verify(tokens[n]!)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

const own = (tokens: ReadonlyArray<string>, { verify }: ReturnType<typeof fresh>) =>
  run(Effect.forEach(tokens, verify, { concurrency: atOnce, discard: true }))

/** Prepares a way to verify; returns one round over the tokens. */
const ways: Readonly<Record<Way, (tokens: ReadonlyArray<string>) => () => Promise<unknown>>> = {
  "first seen": (tokens) => () => own(tokens, fresh()),
  "seen before": (tokens) => {
    const verifier = fresh()
    return () => own(tokens, verifier)
  },
  "bare jose": (tokens) => () => inParallel(tokens, (token) => jwtVerify(token, set, options)),
}

const obey = async ({ alg, times, tokens, way }: Order) => {
  const some = all[alg].slice(0, tokens)
  const round = ways[way](some)
  await round()
  const used = process.cpuUsage()
  const from = performance.now()
  for (let n = 0; n < times; n++) await round()
  const seconds = (performance.now() - from) / 1_000
  const { system, user } = process.cpuUsage(used)
  const verified = some.length * times
  say("verified", { rate: verified / seconds, micros: (system + user) / verified })
}

createInterface({ input: process.stdin }).on("line", (line) => void obey(JSON.parse(line)))
  .on("close", () => process.exit(0))
say("ready", {})

/**
 * Verifies a pack of evidence (docs/evidence.md) without the program that made it, by two keys that the verifier got
 * beforehand: one that signs lifecycle messages, for the pack as a whole, and the log's, for each decision.
 *
 * What holds after that: the pack's lines are those that the program signed, all of them, in their order and of one
 * scope; and each decision with a proof is the record that the transparency log committed to when it was taken.
 */
import { createHash } from "node:crypto"
import { digestOf, type Json } from "./Canonical.ts"
import { type Jwk, keyCache } from "./Keys.ts"
import { Refusal } from "./Refusal.ts"
import { type Claims, claimsOf, isObject, issuedAt, type Pins, refuse } from "./TokenEnvelope.ts"
import { type LogPolicy, verifyInclusion } from "./TransparencyLog.ts"

export interface PackPolicy {
  /** `https://HOST/lifecycle`. */
  readonly issuer: string
  /** The institution's id. */
  readonly institution: string
  /** The keys that are trusted: a set that the verifier got from `/v1/lifecycle/jwks` and kept. */
  readonly jwks: { readonly keys: ReadonlyArray<Jwk & { readonly kid?: unknown }> }
  /** Seconds since the epoch; by default of the system's clock. */
  readonly now?: () => number
  /** The transparency log. Without it the proofs are not looked at, and no decision counts as proved. */
  readonly log?: LogPolicy
}

export interface VerifiedPack {
  readonly institutionId: string
  readonly scope: Claims
  /** RFC 3339: the pack shows what was decided before. */
  readonly asOf: string
  readonly parts: number
  /** The lines of Access, requests and reviews. */
  readonly items: ReadonlyArray<Claims>
  readonly decisions: ReadonlyArray<{
    readonly record: Claims
    /** The entry's place in the log; null: not in a checkpoint yet when the pack was made. */
    readonly provedAt: number | null
  }>
}

const pinsOf = ({ institution, issuer, jwks, now = () => Date.now() / 1_000 }: PackPolicy): Pins => ({
  issuer,
  audience: `urn:bailiwick:institution:${institution}`,
  keys: keyCache(() => Promise.resolve(jwks))(jwks.keys.map(({ kid }) => String(kid))),
  now,
})

const maxSignature = 16 * 1024
const kinds = new Set(["access", "request", "review", "decision"])

const lineOf = (text: string): Claims => {
  try {
    const value: Json = JSON.parse(text)
    if (isObject(value) && typeof value["line"] === "string") return value
  } catch {
    // Refused below.
  }
  return refuse("pack", "a line is not an object with a name")
}

const textIn = (line: Claims, name: string): string => {
  const value = line[name]
  return typeof value === "string" ? value : refuse("pack", `${name} is not a text`)
}

const bytesIn = (line: Claims, name: string, length: number): Uint8Array => {
  const bytes = Buffer.from(textIn(line, name), "base64")
  return bytes.length === length ? bytes : refuse("pack", `${name} does not have ${length} bytes`)
}

/** A decision fits its entry, and the entry is in the log. */
const decisionOf = (line: Claims, log: LogPolicy | undefined) => {
  const { proof, record } = line
  if (!isObject(record)) return refuse("pack", "a decision without its record")
  const entry = bytesIn(line, "entry", 32)
  bytesIn(line, "salt", 16)
  const made = digestOf({ record, salt: textIn(line, "salt") })
  if (made !== `sha256:${Buffer.from(entry).toString("hex")}`) {
    refuse("digest", "a record that does not fit its entry")
  }
  if (typeof proof !== "string" || log === undefined) return { record, provedAt: null }
  return { record, provedAt: verifyInclusion(proof, entry, log).index }
}

interface Part {
  readonly head: Claims
  readonly lines: ReadonlyArray<Claims>
  /** Of the text before the signature's line. */
  readonly digest: string
  readonly signature: Claims
}

/** Cuts a pack into its parts. A part begins with its `pack` line and ends with its `signature`. */
const partsOf = (pack: string): ReadonlyArray<Part> => {
  const texts = pack.split("\n")
  if (texts.pop() !== "") return refuse("pack", "it ends within a line")
  const parts: Array<Part> = []
  let open: { readonly hash: ReturnType<typeof createHash>; readonly lines: Array<Claims> } | null = null
  for (const text of texts) {
    const line = lineOf(text)
    const { line: name } = line
    if ((name === "pack") === (open !== null)) return refuse("pack", "a part without its first or its last line")
    open ??= { hash: createHash("sha256"), lines: [] }
    if (name === "signature") {
      const [head, ...lines] = open.lines
      parts.push({ head: head!, lines, digest: `sha256:${open.hash.digest("hex")}`, signature: line })
      open = null
      continue
    }
    open.hash.update(`${text}\n`)
    open.lines.push(line)
  }
  return open === null && parts.length > 0 ? parts : refuse("pack", "its end is missing")
}

const same = (a: Json | undefined, b: Json | undefined): boolean =>
  digestOf({ of: a ?? null }) === digestOf({ of: b ?? null })

/** The claims of a part's signature, which sign each of its lines. */
const signedOf = async (part: Part, pins: Pins): Promise<Claims> => {
  const { digest, head, lines, signature } = part
  const { claims } = await claimsOf(textIn(signature, "jws"), "evidence-pack+jwt", maxSignature, pins)
  issuedAt(claims, pins.now())
  if (claims["digest"] !== digest || claims["lines"] !== lines.length + 1) refuse("digest", "other lines were signed")
  const { line: _, ...said } = head
  if (Object.keys(said).some((name) => !same(said[name], claims[name]))) refuse("pack", "another beginning was signed")
  if (!same(signature["next"], claims["next"])) refuse("pack", "another end was signed")
  return claims
}

/**
 * Verifies a whole pack: its parts as they came, one after the other. Rejects with Refusal: what the envelope of a
 * message is refused for, `pack` (not a pack, a part that is missing or of another scope), `digest` (changed lines, or
 * a record that is not the entry's) or what a proof is refused for.
 */
export const verifyEvidencePack = async (pack: string, policy: PackPolicy): Promise<VerifiedPack> => {
  const { log } = policy
  const pins = pinsOf(policy)
  const parts = partsOf(pack)
  const items: Array<Claims> = []
  const decisions: Array<VerifiedPack["decisions"][number]> = []
  let first: Claims | null = null
  let next: Json = null
  for (const part of parts) {
    const claims = await signedOf(part, pins)
    first ??= claims
    if (!same(claims["after"], next)) throw new Refusal("pack", "a part is missing")
    if (["pack_id", "institution_id", "scope", "as_of"].some((name) => !same(claims[name], first![name]))) {
      throw new Refusal("pack", "parts of different packs")
    }
    for (const line of part.lines) {
      if (!kinds.has(textIn(line, "line"))) throw new Refusal("pack", "a line of an unknown kind")
      if (line["line"] === "decision") decisions.push(decisionOf(line, log))
      else items.push(line)
    }
    next = claims["next"] ?? null
  }
  if (next !== null) throw new Refusal("pack", "the last parts are missing")
  const scope = first!["scope"]
  return {
    institutionId: textIn(first!, "institution_id"),
    scope: isObject(scope) ? scope : refuse("pack", "without a scope"),
    asOf: textIn(first!, "as_of"),
    parts: parts.length,
    items,
    decisions,
  }
}

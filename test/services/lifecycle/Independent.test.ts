/**
 * Every event kind as the real signer sends it, verified by a JWT library used nowhere else, and compared with
 * an independent table of what RFC 8417, the Shared Signals Framework, CAEP, RISC and docs/api/identity.md require.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { createVerifier } from "fast-jwt"
import { createHash, createPublicKey } from "node:crypto"
import type { LifecycleEventKind } from "../../../schemas/identity/LifecycleEventKinds.ts"
import { EventLog } from "../../../services/lifecycle/EventLog.ts"
import { SigningKeys } from "../../../services/lifecycle/SigningKeys.ts"
import { runOnce } from "../../../services/platform/database/UnitOfWork.ts"
import { diceOf, eventOf, kinds } from "./RandomEvents.ts"
import { everything, scene, signAll, transmitter } from "./LifecycleFixture.ts"

const own = "https://schemas.bailiwick.dev/secevent/lifecycle/event-type/"
const caep = "https://schemas.openid.net/secevent/caep/event-type/"
const risc = "https://schemas.openid.net/secevent/risc/event-type/"

/** The base of the event type, and the formats of its subject's members; `iss_sub` alone where it has none. */
const access = "application opaque, tenant opaque, user iss_sub"
const project = "application opaque, tenant opaque"
const table: Readonly<Record<LifecycleEventKind, readonly [base: string, subject: ReadonlyArray<string>]>> = {
  "access-granted": [own, [access]],
  "access-revoked": [own, [access]],
  "token-claims-change": [caep, ["tenant opaque, user iss_sub"]],
  "account-disabled": [risc, ["iss_sub"]],
  "account-enabled": [risc, ["iss_sub"]],
  "account-purged": [risc, ["iss_sub"]],
  "session-revoked": [caep, ["iss_sub", "session opaque, user iss_sub"]],
  "credential-change": [caep, ["iss_sub"]],
  "credential-compromise": [risc, ["iss_sub"]],
  "recovery-information-changed": [risc, ["iss_sub"]],
  "assurance-level-change": [caep, ["iss_sub"]],
  "identity-linked": [own, ["iss_sub"]],
  "project-registered": [own, [project]],
  "project-launched": [own, [project]],
  "project-withdrawn": [own, [project]],
  "project-owner-changed": [own, [project]],
  "service-grant-approved": [own, [project]],
  "service-grant-revoked": [own, [project]],
  "access-review-approved": [own, [access]],
  "access-review-revoked": [own, [access]],
  "key-transition": [own, [project]],
}

/** Claims that an event type demands. */
const demanded: Partial<Record<LifecycleEventKind, ReadonlyArray<string>>> = {
  "token-claims-change": ["claims"],
  "credential-change": ["credential_type", "change_type"],
  "credential-compromise": ["credential_type"],
  "assurance-level-change": ["namespace", "current_level"],
}

interface Subject {
  readonly format: string
  readonly [member: string]: unknown
}

interface Claims {
  readonly jti: string
  readonly iat: number
  readonly txn: string
  readonly sub_id: Subject
  readonly events: Readonly<Record<string, Readonly<Record<string, unknown>>>>
}

/** RFC 9493: an identifier has its format's members, and no others. */
const membersOf: Readonly<Record<string, ReadonlyArray<string>>> = {
  iss_sub: ["format", "iss", "sub"],
  opaque: ["format", "id"],
}

const shapeOf = ({ format, ...members }: Subject): string => {
  if (format !== "complex") {
    assert.deepStrictEqual(["format", ...Object.keys(members)].sort(), [...membersOf[format]!].sort())
    return format
  }
  const named = Object.entries(members) as ReadonlyArray<readonly [string, Subject]>
  return named.map(([name, subject]) => `${name} ${shapeOf(subject)}`).sort().join(", ")
}

layer(transmitter, { excludeTestServices: true })("an independent library", (it) => {
  it.effect("an independent verifier accepts every event kind and finds exactly the required claims in it", () =>
    Effect.gen(function* () {
      const { append } = yield* EventLog
      const made = yield* scene
      const dice = diceOf(Math.floor(Math.random() * 2 ** 32))
      for (const kind of [...kinds, ...kinds, ...kinds]) yield* runOnce(append(eventOf(dice, kind, made)))
      yield* signAll
      const { items } = yield* everything(made.asking, undefined, 200)
      const { keys } = yield* (yield* SigningKeys).jwks
      const verifiers = new Map(keys.map(({ e, kty, n }) => [
        // RFC 7638, by hand.
        createHash("sha256").update(JSON.stringify({ e, kty, n })).digest("base64url"),
        createVerifier({
          key: String(
            createPublicKey({ key: { e: e!, kty: kty!, n: n! }, format: "jwk" }).export({
              type: "spki",
              format: "pem",
            }),
          ),
          algorithms: ["RS256"],
          checkTyp: "secevent+jwt",
          complete: true,
          cache: false,
          allowedIss: "https://id.example/lifecycle",
          allowedAud: `urn:bailiwick:project:${made.project}`,
          requiredClaims: ["iss", "aud", "iat", "jti", "txn", "sub_id", "events"],
        }),
      ]))
      const verify = (set: string) => {
        const { kid, ...header } = JSON.parse(Buffer.from(set.split(".")[0]!, "base64url").toString())
        assert.deepStrictEqual(header, { alg: "RS256", typ: "secevent+jwt" })
        return verifiers.get(kid)!(set) as { readonly payload: Claims }
      }

      const seen = new Map<LifecycleEventKind, Set<string>>()
      const jtis = new Set<string>()
      for (const { jti, set } of items) {
        const { payload } = verify(set)
        assert.deepStrictEqual(Object.keys(payload).sort(), ["aud", "events", "iat", "iss", "jti", "sub_id", "txn"])
        assert.strictEqual(payload.jti, jti)
        assert.isFalse(jtis.has(jti))
        jtis.add(jti)
        assert.isTrue(Number.isSafeInteger(payload.iat))

        const [[type, event], ...others] = Object.entries(payload.events) as [[string, Claims["events"][string]]]
        assert.lengthOf(others, 0)
        const kind = type.slice(type.lastIndexOf("/") + 1) as LifecycleEventKind
        const [base, subjects] = table[kind]
        assert.strictEqual(type, `${base}${kind}`)
        const shape = shapeOf(payload.sub_id)
        assert.include([...subjects], shape, kind)
        seen.set(kind, (seen.get(kind) ?? new Set()).add(shape))

        // The subject is outside of the event; times are seconds, codes are not prose.
        assert.notProperty(event, "subject")
        assert.isTrue(Number.isSafeInteger(event["event_timestamp"]))
        assert.oneOf(event["initiating_entity"], ["admin", "user", "policy", "system"])
        const reason = event["reason_admin"]
        if (reason !== undefined) assert.match(Object.values(reason as object).join(), /^[A-Z_]+$/)
        for (const claim of demanded[kind] ?? []) assert.property(event, claim, kind)
        const place = event["lifecycle"] as object
        assert.deepStrictEqual(Object.keys(place).sort(), ["cursor", "digest", "epoch", "position", "prev_digest"])
      }
      assert.deepStrictEqual([...seen.keys()].sort(), [...kinds].sort())

      // The verifier refuses a changed token: its acceptance above means something.
      const [one, other] = items
      const mixed = [...one!.set.split(".").slice(0, 2), other!.set.split(".")[2]].join(".")
      assert.throws(() => verify(mixed))
    }))
})

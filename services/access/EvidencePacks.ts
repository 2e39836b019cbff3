/**
 * Packs of evidence: who may act in an institution, who asked and who signed, with the audit's record of each decision
 * and its proof in the transparency log. An auditor verifies a pack by the kit alone (docs/evidence.md).
 *
 * A part has at most `itemsOfPart` items of the sections that it comes to, and is signed by itself; it names where the next
 * part begins. It looks at a bounded number of objects (PackSections.ts), so it may have few
 * items, or none. All parts of a pack show what was decided before the time at which the first was made. A decision whose transaction commits while the pack is made may be missing.
 */
import { createHash } from "node:crypto"
import { Clock, Context, Effect, Layer, Option } from "effect"
import type { SqlError } from "effect/sql"
import type { AccessId, InstitutionId, PersonId } from "../../schemas/BrandedIds.ts"
import {
  decodePlace,
  encodePlace,
  type PackPlace,
  type PackScope,
  packSections,
} from "../../schemas/identity/EvidencePack.ts"
import { NotFound } from "../../schemas/problems/HttpProblems.ts"
import { institutionAudience, lifecycleIssuer } from "../lifecycle/EventSigner.ts"
import { SigningKeys } from "../lifecycle/SigningKeys.ts"
import { reviewsReader } from "../people/InstitutionReader.ts"
import { Database } from "../platform/database/Database.ts"
import { Ids } from "../platform/Ids.ts"
import { type DecisionProof, DecisionProofs } from "../transparency/DecisionProofs.ts"
import { type PackFilter, type PackItem, type PackPage, packPages } from "./EvidencePacks/PackSections.ts"

/** Items of a part at most. */
export const itemsOfPart = 100

/** The `typ` of a part's signature. */
export const packType = "evidence-pack+jwt"

export interface AskedPack extends PackScope {
  readonly personId: PersonId
  readonly institutionId: InstitutionId
  /** The `next` of the part before; undefined: the first part. */
  readonly after: string | undefined
}

type Refused = Exclude<Effect.Error<ReturnType<ReturnType<typeof reviewsReader>>>, SqlError.SqlError>

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

const decisionLine = ({ entry, proved, record, salt }: DecisionProof) => ({
  line: "decision",
  record,
  salt: base64(salt),
  entry: base64(entry),
  index: proved?.index ?? null,
  proof: proved?.proof ?? null,
})

/** The place after a page of its section; null where nothing is left. */
const placeAfter = (place: PackPlace, { end }: PackPage): PackPlace | null => {
  if (end !== null) return { ...place, afterId: end }
  const section = packSections[packSections.indexOf(place.section) + 1]
  return section === undefined ? null : { ...place, section, afterId: "" }
}

export class EvidencePacks extends Context.Service<EvidencePacks, {
  /**
   * One part, as text. For Sponsors, effective administrators and auditors; NotFound where the institution has no such
   * review.
   */
  readonly part: (asked: AskedPack) => Effect.Effect<string, Refused>
}>()("bailiwick/services/access/EvidencePacks") {
  static readonly layer = (publicUrl: URL) =>
    Layer.effect(
      EvidencePacks,
      Effect.gen(function* () {
        const { wide } = yield* Database
        const ids = yield* Ids
        const keys = yield* SigningKeys
        const { about } = yield* DecisionProofs
        const mayRead = reviewsReader(wide)
        const pages = packPages(wide)

        const reviewOf = Effect.fnUntraced(function* ({ institutionId, review_id: id }: AskedPack) {
          if (id === null) return null
          const [found] = yield* wide<{ access_id: AccessId }>`
            select access_id from access_reviews where id = ${id}::uuid and institution_id = ${institutionId}`
          return found === undefined ? yield* new NotFound() : { id, access_id: found.access_id }
        })

        /** The items of one part, over as many sections as it takes to fill it. */
        const itemsFrom = Effect.fnUntraced(function* (filter: PackFilter, from: PackPlace) {
          const items: Array<PackItem> = []
          let place: PackPlace | null = from
          let read: PackPage
          // A page that ends within its section is full, or has looked at as much as a part may: it is the part's last.
          do {
            read = yield* pages[place.section](filter, place.afterId, itemsOfPart - items.length)
            items.push(...read.items)
            place = placeAfter(place, read)
          } while (place !== null && read.end === null && items.length < itemsOfPart)
          return { items, next: place === null ? null : encodePlace(place) }
        })

        /** Each item's line, and after all of them the decisions on their objects. */
        const linesFrom = Effect.fnUntraced(function* (filter: PackFilter, from: PackPlace) {
          const { items, next } = yield* itemsFrom(filter, from)
          const decisions = yield* about(filter.institutionId, items.flatMap(({ subjects }) => subjects), filter.until)
          return { lines: [...items.map(({ line }) => line), ...decisions.map(decisionLine)], next }
        })

        const signed = Effect.fnUntraced(function* (head: object, text: string, lines: number, next: string | null) {
          const signer = yield* keys.active
          const claims = {
            ...head,
            iat: Math.floor((yield* Clock.currentTimeMillis) / 1_000),
            jti: yield* ids.next,
            lines,
            digest: `sha256:${createHash("sha256").update(text).digest("hex")}`,
            next,
          }
          const jws = yield* Effect.promise(() => signer.sign(packType, JSON.stringify(claims)))
          return JSON.stringify({ line: "signature", next, jws })
        })

        const part = Effect.fn("EvidencePacks.part")(function* (asked: AskedPack) {
          const { after, institutionId, person_id, review_id, since, until } = asked
          yield* mayRead(asked.personId, institutionId)
          const now = yield* Clock.currentTimeMillis
          const start: PackPlace = {
            packId: yield* ids.next,
            section: packSections[0],
            afterId: "",
            // What was decided in this millisecond is in the pack.
            asOf: Math.min(now + 1, until === null ? Infinity : Date.parse(until)),
          }
          const from = after === undefined ? start : Option.getOrElse(decodePlace(after), () => start)
          const filter: PackFilter = {
            institutionId,
            personId: person_id,
            review: yield* reviewOf(asked),
            since: since === null ? null : new Date(since),
            until: new Date(from.asOf),
          }
          const head = {
            iss: lifecycleIssuer(publicUrl),
            aud: institutionAudience(institutionId),
            pack_id: from.packId,
            institution_id: institutionId,
            scope: { person_id, review_id, since, until },
            as_of: new Date(from.asOf).toISOString(),
            after: after ?? null,
          }
          const { lines, next } = yield* linesFrom(filter, from)
          const text = [{ line: "pack", ...head }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("")
          return `${text}${yield* signed(head, text, lines.length + 1, next)}\n`
        }, Effect.catchTag("SqlError", Effect.die))

        return EvidencePacks.of({ part })
      }),
    ).pipe(Layer.provide(DecisionProofs.layer))
}

/**
 * Packs of evidence (docs/evidence.md): who may act in an institution and why, as text that is verified without this
 * program. A pack has one or more parts; each part is newline-delimited JSON, and its last line signs the lines before it.
 */
import { Option, Schema } from "effect"
import { HttpApiSchema } from "effect/http-api"
import { AccessReviewId, PersonId } from "../BrandedIds.ts"
import { complains, valueError } from "../Validation/Fault.ts"
import { QueryUuid, Text } from "../Validation/Scalars.ts"
import { AskedTime, ForeignId, isUuid } from "../Wire.ts"

/** What a part tells of, in this order. */
export const packSections = ["access", "requests", "reviews"] as const
export type PackSection = typeof packSections[number]

/** Where a part begins: behind an item of a section, of a pack that shows what was decided before `asOf`. */
export interface PackPlace {
  /** The pack's id, the same in all of its parts. */
  readonly packId: string
  readonly section: PackSection
  /** The id of the last item before the part; empty at the beginning of a section. */
  readonly afterId: string
  /** Milliseconds since the epoch. */
  readonly asOf: number
}

export const encodePlace = ({ afterId, asOf, packId, section }: PackPlace): string =>
  Buffer.from(`${asOf} ${packId} ${section} ${afterId}`).toString("base64url")

/** None for a text that this program never made. */
export const decodePlace = (text: string): Option.Option<PackPlace> => {
  const decoded = Buffer.from(text, "base64url").toString()
  const match = /^(\d{1,13}) ([0-9a-f-]{36}) ([a-z]+) ([A-Za-z0-9_-]{0,128})$/.exec(decoded)
  const section = packSections.find((name) => name === match?.[3])
  if (match === null || section === undefined || Buffer.from(decoded).toString("base64url") !== text) {
    return Option.none()
  }
  const [, asOf, packId, , afterId] = match as unknown as [string, string, string, string, string]
  // Ids of Access are of the directory; the others are made here.
  const known = section === "access" || afterId === "" || isUuid(afterId)
  return known ? Option.some({ packId, section, afterId, asOf: Number(asOf) }) : Option.none()
}

const Place = Text(1, 256).check(
  Schema.makeFilter<string>((text) => Option.isSome(decodePlace(text)), {
    expected: "the `next` of a part",
    toJsonSchema: () => [{}, true],
    ...complains(valueError("not the next part of a pack of this service")),
  }),
)

/** Conditions that all have to hold; without any the pack is the institution's. */
export const packQuery = {
  person_id: Schema.optionalKey(
    ForeignId.pipe(Schema.brand("PersonId")).annotate({ description: "What this person may do" }),
  ),
  review_id: Schema.optionalKey(
    QueryUuid.pipe(Schema.brand("AccessReviewId")).annotate({ description: "One review, and the Access it is about" }),
  ),
  since: Schema.optionalKey(
    AskedTime.annotate({ description: "What was in force, or waiting, at this time or later" }),
  ),
  until: Schema.optionalKey(AskedTime.annotate({ description: "What was decided before this time" })),
  after: Schema.optionalKey(
    Place.annotate({ description: "The `next` of the part before; by default the first part" }),
  ),
}

export interface PackScope {
  readonly person_id: PersonId | null
  readonly review_id: AccessReviewId | null
  /** RFC 3339. */
  readonly since: string | null
  readonly until: string | null
}

export const PackPart = Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/x-ndjson" })).annotate({
  description: "Lines of JSON; the last one has `next`, which asks for the next part, and the signature",
})

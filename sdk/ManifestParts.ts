/**
 * A state that comes in parts: consecutive pieces of its canonical JSON, each but the last cut just before an item of a
 * list. Part by part each is what its digest says, and all of them together are what the state's digest says; no more
 * than one of them is ever held.
 */
import { createHash } from "node:crypto"
import { type Json, sha256 } from "./Canonical.ts"
import { type Fact, factsOf } from "./EventProjection.ts"
import { Refusal } from "./Refusal.ts"

/** What a manifest says of one part. */
export interface Part {
  readonly digest: string
  readonly bytes: number
}

/** Bytes of a part that is believed. */
export const mostPartBytes = 4 * 1024 * 1024

type Members = { readonly [name: string]: Json }

const refuse = (step: "digest" | "state", message: string): never => {
  throw new Refusal(step, message)
}

/** The members that a piece holds, whole or in part; `open` is the list in which the piece before it ended. */
const membersOf = (text: string, open: string | null, last: boolean): Members => {
  const before = open === null ? "" : `{${JSON.stringify(open)}:[`
  const after = last ? text : `${text.replace(/,$/, "")}]}`
  try {
    const value: unknown = JSON.parse(before + after)
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as Members
  } catch {
    // Said below.
  }
  return refuse("state", "a part that is no piece of a state")
}

/** Takes the texts of a manifest's parts in their order. Throws Refusal. */
export const partsReader = (parts: ReadonlyArray<Part>, stateDigest: string) => {
  const whole = createHash("sha256")
  let nth = 0
  let open: string | null = null
  return {
    /** The facts that the next part holds. */
    next: (text: string): ReadonlyArray<Fact> => {
      const part = parts[nth] ?? refuse("state", "more parts than were named")
      if (Buffer.byteLength(text) !== part.bytes || sha256(text) !== part.digest) refuse("digest", "not of this part")
      whole.update(text)
      nth += 1
      const members = membersOf(text, open, nth === parts.length)
      open = Object.keys(members).at(-1) ?? null
      return factsOf(members)
    },
    /** After the last part: that they are all of the state. */
    end: (): void => {
      if (nth !== parts.length) refuse("state", "fewer parts than were named")
      if (`sha256:${whole.digest("hex")}` !== stateDigest) refuse("digest", "not of this state")
    },
  }
}
